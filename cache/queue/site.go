// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"container/heap"
	"time"
)

// site is what is known of a site. It is forgotten when it has no feeds in the queue and all its moments have passed.
type site struct {
	name string
	line *line // the first of its lines: a few for each owner

	free    time.Duration // its next poll may start
	held    time.Duration // the end of its pause
	heldNew time.Duration // the end of the pause of its feeds without a version
	by      Owner         // whose URL caused that one; 0: unknown
	last    Owner         // the owner other than the operator that had the last turn

	hopUntil time.Duration // the next slot is for another poll than a redirect until then, or until one has had it
	hops     int32         // redirects that wait

	in    *moments      // timed or idle, if it is in one of them
	at    time.Duration // its moment there
	index int32         // its index there

	busy     bool // a feed was taken, and it is not known yet whether it was asked
	ready    bool // its lines are in the heaps of their owners
	operator bool // the operator had the last turn
}

// blamed is for how long after a pause of feeds without a version the owner that caused it comes last of them.
const blamed = time.Hour

// moments is a heap of sites by a moment.
type moments []*site

func (h moments) Len() int           { return len(h) }
func (h moments) Less(i, j int) bool { return h[i].at < h[j].at }

func (h moments) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = int32(i), int32(j)
}

func (h *moments) Push(x any) {
	s := x.(*site)
	s.in, s.index = h, int32(len(*h))
	*h = append(*h, s)
}

func (h *moments) Pop() any {
	last := len(*h) - 1
	s := (*h)[last]
	s.in = nil
	(*h)[last] = nil
	*h = (*h)[:last]
	return s
}

// Asked records that a poll of a site was granted for an owner, whether or not Next returned its feed: turns go on,
// and the next poll may start at the moment free.
func (q *Queue) Asked(name string, owner Owner, _, free time.Duration) {
	if name == "" {
		return
	}
	s := q.site(name)
	s.busy, s.free, s.hopUntil = false, free, 0
	if s.operator = owner == q.operator; !s.operator {
		s.last = owner
	}
	q.place(s)
}

// Free records that the feed of a site that Next returned is not polled after all: another one may be taken at once.
func (q *Queue) Free(name string) {
	if s := q.sites[name]; s != nil {
		q.release(s)
		q.place(s)
	}
}

// release ends the claim of a feed that was taken of a site, which counts for no start.
func (q *Queue) release(s *site) {
	if s.busy {
		s.busy = false
		q.starts.back()
	}
}

// Hold records until when a site is not asked, or if fresh is set, its feeds without a version. The last call counts:
// a moment that is not ahead ends the pause. For a pause of feeds without a version, by is the owner whose URL caused
// it: until an hour after its end that owner comes last of them. If it is 0, it is the owner that was known before.
func (q *Queue) Hold(name string, fresh bool, until time.Duration, by Owner) {
	if name == "" {
		return
	}
	s := q.site(name)
	switch {
	case !fresh:
		s.held = until
	case by != 0:
		s.heldNew, s.by = until, by
	default:
		s.heldNew = until
	}
	q.place(s)
}

// Open returns when a site may be asked next, for a feed that has a version: 0 if nothing is known that forbids it.
func (q *Queue) Open(name string) time.Duration {
	if s := q.sites[name]; s != nil {
		return max(s.free, s.held)
	}
	return 0
}

// site returns a site, and makes it if it is not known.
func (q *Queue) site(name string) *site {
	s := q.sites[name]
	if s == nil {
		s = &site{name: name}
		q.sites[name] = s
	}
	return s
}

// line returns the line to which a feed belongs, and makes it if there is none.
func (q *Queue) line(f Feed) *line {
	o := q.owner(f.Owner)
	if f.Site == "" {
		l := &o.unpaced[kind(f.New)]
		if *l == nil {
			*l = o.newLine()
			(*l).fresh = f.New
		}
		return *l
	}
	s, pausing := q.site(f.Site), q.paused.has(f.ID)
	for l := s.line; l != nil; l = l.next {
		if l.owner == o && l.fresh == f.New && l.pausing == pausing {
			return l
		}
	}
	l := o.newLine()
	l.fresh, l.pausing = f.New, pausing
	s.link(l)
	return l
}

// kind is the index of the unpaced feeds of an owner with or without a version.
func kind(fresh bool) int {
	if fresh {
		return 1
	}
	return 0
}

func (s *site) link(l *line) {
	l.site, l.next, s.line = s, s.line, l
}

func (s *site) unlink(l *line) {
	at := &s.line
	for *at != l {
		at = &(*at).next
	}
	*at = l.next
}

// appendLines appends the lines of a site.
func (s *site) appendLines(to []*line) []*line {
	for l := s.line; l != nil; l = l.next {
		to = append(to, l)
	}
	return to
}

// moment is when a feed of the site may be taken at the earliest.
func (s *site) moment() time.Duration {
	at := max(s.free, s.held)
	for l := s.line; l != nil; l = l.next {
		if !l.fresh {
			return at
		}
	}
	return max(at, s.heldNew)
}

// neededUntil is until when something about the site needs to be kept although no feed waits.
func (s *site) neededUntil() time.Duration {
	until := max(s.free, s.held, s.heldNew, s.hopUntil)
	if s.by != 0 {
		until = max(until, s.heldNew+blamed)
	}
	return until
}

// withdraw takes a site out of all heaps.
func (q *Queue) withdraw(s *site) {
	if s.in != nil {
		heap.Remove(s.in, int(s.index))
	}
	if !s.ready {
		return
	}
	s.ready = false
	for l := s.line; l != nil; l = l.next {
		if l.index >= 0 {
			heap.Remove(&l.owner.ready, int(l.index))
			q.activate(l.owner)
		}
	}
}

// place puts a site where it belongs after something about it has changed. If feeds of it may be taken now, the next
// call of wake finds that.
func (q *Queue) place(s *site) {
	q.withdraw(s)
	switch {
	case s.busy:
	case s.line != nil:
		s.at = s.moment()
		heap.Push(&q.timed, s)
	case s.hops == 0:
		s.at = s.neededUntil()
		heap.Push(&q.idle, s)
	}
}

// wake finds the sites of which a feed may be taken now, and forgets those of which nothing needs to be known.
func (q *Queue) wake(now time.Duration) {
	for len(q.idle) > 0 && q.idle[0].at <= now {
		delete(q.sites, heap.Pop(&q.idle).(*site).name)
	}
	for len(q.timed) > 0 && q.timed[0].at <= now {
		q.open(heap.Pop(&q.timed).(*site), now)
	}
}

// open puts the lines of which a feed may be taken now into the heaps of their owners.
func (q *Queue) open(s *site, now time.Duration) {
	q.withdraw(s)
	s.ready = true
	held := s.heldNew > now
	pausing := true // only feeds are left that pause the site
	for l := s.line; l != nil; l = l.next {
		if !l.fresh || !held {
			pausing = pausing && l.pausing
		}
	}
	others := false // than the one that caused the last pause have feeds without a version
	for l := s.line; l != nil; l = l.next {
		others = others || l.fresh && l.pausing == pausing && l.owner.id != s.by
	}
	last := s.by != 0 && others && now < s.heldNew+blamed
	for l := s.line; l != nil; l = l.next {
		switch {
		case l.fresh && held:
			if s.in == nil { // it is opened again when they are not held any more
				s.at = s.heldNew
				heap.Push(&q.timed, s)
			}
		case l.pausing != pausing:
		case l.fresh && last && l.owner.id == s.by:
		default:
			heap.Push(&l.owner.ready, l)
			q.activate(l.owner)
		}
	}
}

// turnOf returns the line of a site whose turn it is, of those of which a feed may be taken.
func (q *Queue) turnOf(s *site) *line {
	var operator, other *line
	for l := s.line; l != nil; l = l.next {
		switch {
		case l.index < 0 || l.owner.room <= 0:
		case l.owner.id == q.operator:
			if operator == nil || l.first() < operator.first() {
				operator = l
			}
		case other == nil || after(s.last, l.owner.id, other.owner.id) || l.owner == other.owner && l.first() < other.first():
			other = l
		}
	}
	if other == nil || operator != nil && !s.operator {
		return operator
	}
	return other
}

// after reports whether a comes before b in a round of owners that goes on after the last.
func after(last, a, b Owner) bool {
	return uint64(a-last-1) < uint64(b-last-1)
}
