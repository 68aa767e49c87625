// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"math"
	"time"

	"github.com/feedpollard/pollard/cache/store"
)

// maxWait is the longest time after which ClaimDue wants to be called again: a
// feed that is due sooner may have come by then.
const maxWait = time.Minute

// usualHold is for feeds that come without one: until it has passed, an outcome
// that never came is waited for.
const usualHold = time.Hour

// index finds the feeds that are due. Each feed that is to be polled at some time
// is in one of its three places at least, at that time or before. What is found
// there is a hint: the feed itself is asked whether it is due. So an entry that
// has been overtaken need not be looked for; it goes when its time comes.
type index struct {
	due     heap[store.ID]    // feeds by when they are due
	granted map[store.ID]Time // feeds that are being polled, and until when
	lines   map[string]*line  // feeds that are due and wait for their host
	waiting heap[*line]       // all lines, by when their hosts are free
	idle    time.Duration     // feeds that nobody has asked for so long are not in it
	feeds   int               // all that the store has

	counted   int // how many were overdue at
	countedAt Time
}

// line is the feeds of one host that are due, the longest overdue first.
type line struct {
	host  string
	free  Time // when the host may be asked, as far as is known
	feeds heap[store.ID]
}

func (x *index) reset() {
	*x = index{due: x.due[:0], granted: make(map[store.ID]Time), lines: make(map[string]*line), idle: x.idle}
	if x.idle == 0 {
		x.idle = math.MaxInt64
	}
}

// wake has all lines looked at in the next round: their hosts may be free sooner than
// was known.
func (x *index) wake() {
	for i := range x.waiting {
		x.waiting[i].at = Never
	}
}

// add takes in a feed that has been there before.
func (x *index) add(now Time, id store.ID, f *Feed) {
	x.feeds++
	if f.Next != End && !x.sleeps(now, f) {
		x.due.push(f.Next, id)
	}
}

// build fills the index anew.
func (s *Schedule) build(now Time) error {
	s.index.reset()
	return s.keeper.Each(func(id store.ID, f *Feed) { s.index.add(now, id, f) })
}

// compact drops entries that have been overtaken, where they are more than those of
// feeds.
func (s *Schedule) compact(now Time) error {
	if len(s.index.due) <= 2*s.index.feeds+1024 {
		return nil
	}
	return s.build(now)
}

// sleeps tells whether a feed is not polled before somebody asks for it. Its own
// polls do not count as that, or it would be polled because it is polled.
func (x *index) sleeps(now Time, f *Feed) bool {
	return f.unread() || x.idle != math.MaxInt64 && now.Sub(f.Asked) >= x.idle
}

// moved keeps the index true when a feed changes; each of old and f may be nil.
func (x *index) moved(now Time, id store.ID, old, f *Feed, granted bool) {
	switch {
	case old == nil:
		x.feeds++
	case f == nil:
		x.feeds--
	}
	if f == nil || old != nil && old.Next != f.Next {
		delete(x.granted, id)
	}
	switch {
	case f == nil || f.Next == End || x.sleeps(now, f):
	case old != nil && old.Next == f.Next && !x.sleeps(now, old) && (old.Host.Name == f.Host.Name || f.Next > now):
		// It is where it was: behind others of its host, if it is due.
	case granted:
		x.granted[id] = f.Next
	default:
		x.due.push(f.Next, id)
	}
}

// overtaken drops entries that have been overtaken from where the next one due is
// looked for, so that they do not count as overdue where nobody claims what is due.
func (s *Schedule) overtaken(now Time) {
	for x := &s.index; x.due.first() <= now; {
		f, err := s.keeper.Get(x.due[0].value)
		if err != nil || f != nil && f.Next <= now && !x.sleeps(now, f) {
			return
		}
		x.due.pop()
	}
}

// overdue counts what is due. A large number is only counted now and then.
func (x *index) overdue(now Time) int {
	if x.counted > manyOverdue && now.Sub(x.countedAt) < countEvery {
		return x.counted
	}
	n := x.due.until(now)
	for _, l := range x.lines {
		n += len(l.feeds)
	}
	x.counted, x.countedAt = n, now
	return n
}

const (
	manyOverdue = 10_000
	countEvery  = 10 * time.Second
)

// round is one call of ClaimDue.
type round struct {
	*Schedule
	now    Time
	except map[string]bool // hosts that are not asked in this round
	asked  map[string]bool // hosts that this round has asked
	ready  heap[*line]     // whose hosts seem to be free, the longest overdue first
	aside  []*line         // whose hosts are excepted
	leases []store.Lease
}

// ClaimDue grants polls of feeds that are due, the longest overdue first.
func (s *Schedule) ClaimDue(now Time, q store.DueQuery) ([]store.Lease, time.Duration, error) {
	if err := s.prepare(now, q.Idle); err != nil {
		return nil, 0, err
	}
	x := &s.index
	r := round{Schedule: s, now: now, except: make(map[string]bool), asked: make(map[string]bool)}
	for _, host := range q.Except {
		r.except[host] = host != ""
	}
	for x.waiting.first() <= now {
		l := x.waiting.pop().value
		r.ready.push(l.feeds.first(), l)
	}
	more := true
	for more && len(r.leases) < q.Limit {
		switch {
		case len(r.ready) > 0 && r.ready.first() <= x.due.first():
			l := r.ready.pop().value
			if !r.except[l.host] {
				r.offer(l.feeds.pop(), l)
			}
			r.settle(l)
		case x.due.first() <= now:
			r.offer(x.due.pop(), nil)
		default:
			more = false
		}
	}
	var wait time.Duration
	if len(r.leases) < q.Limit {
		// A host that is excepted is no reason to ask again: the node knows when it is free.
		wait = max(time.Millisecond, min(maxWait, x.next().Sub(now)))
	}
	for _, l := range r.ready {
		x.waiting.push(now, l.value)
	}
	for _, l := range r.aside {
		x.waiting.push(now, l)
	}
	return r.leases, wait, nil
}

// prepare brings the index up to date.
func (s *Schedule) prepare(now Time, idle time.Duration) error {
	if idle <= 0 {
		idle = math.MaxInt64
	}
	x := &s.index
	dropped := idle > x.idle // feeds that are idle no more
	x.idle = idle
	if dropped {
		if err := s.build(now); err != nil {
			return err
		}
	}
	for id, until := range x.granted {
		if until <= now { // the outcome never came
			delete(x.granted, id)
			x.due.push(until, id)
		}
	}
	return nil
}

// next is when something in the index is due.
func (x *index) next() Time {
	next := min(x.due.first(), x.waiting.first())
	for _, until := range x.granted {
		next = min(next, until)
	}
	return next
}

// offer grants the poll of a feed that is due, or keeps it in the line of its host.
// from is the line that it comes from, if any.
func (r *round) offer(t turn[store.ID], from *line) {
	id := t.value
	old, err := r.keeper.Get(id)
	if err == nil && (old == nil || old.Next > t.at || r.index.sleeps(r.now, old)) {
		return
	}
	var text Text
	if err == nil {
		text, err = r.keeper.Text(id)
	}
	if err != nil || text.URL == "" {
		// The record is damaged: the poll is put off, and the other feeds go on.
		r.index.due.push(r.now.Add(usualHold), id)
		return
	}
	host := old.Host
	denied, until, _ := r.deny(host, r.now)
	l := r.index.lines[host.Name]
	switch {
	case host.Name == "" && denied != "":
		r.index.due.push(until, id)
		return
	case from != nil && from != l: // the feed has moved to another host
		r.index.due.push(t.at, id)
		return
	case from == nil && l != nil: // it has come to one
		l.feeds.push(t.at, id)
		return
	case denied != "" || r.asked[host.Name] || r.except[host.Name]:
		if l == nil {
			l = &line{host: host.Name}
			r.index.lines[l.host] = l
		}
		l.feeds.push(t.at, id)
		l.free = until
		if from == nil {
			r.settle(l)
		}
		return
	}
	f := *old
	if f.Hold <= 0 {
		f.Hold = usualHold
	}
	r.grant(r.now, &f)
	r.put(r.now, id, old, &f, true)
	if host.Name != "" {
		r.asked[host.Name] = true
	}
	if l != nil {
		l.free = r.now.Add(host.Spacing)
	}
	r.leases = append(r.leases, store.Lease{Record: f.Record(id, text, r.now)})
}

// settle puts a line where it is found when its host is free.
func (r *round) settle(l *line) {
	if len(l.feeds) == 0 {
		delete(r.index.lines, l.host)
		return
	}
	if r.except[l.host] {
		r.aside = append(r.aside, l)
		return
	}
	if r.asked[l.host] || l.free > r.now { // what waits is not looked at in this round
		r.index.waiting.push(l.free, l)
	} else {
		r.ready.push(l.feeds.first(), l)
	}
}
