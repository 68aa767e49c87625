// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// owner is an owner that has feeds in the queue.
type owner struct {
	id      Owner
	lines   int      // those it has
	ready   lines    // those of which a feed may be taken now, but for the unpaced
	unpaced [2]*line // with a version and without
	active  bool     // it is in the active ones
	room    int      // how many more polls of it may start now, as of the last call of Room
}

func (q *Queue) owner(id Owner) *owner {
	o := q.owners[id]
	if o == nil {
		o = &owner{id: id}
		q.owners[id] = o
	}
	return o
}

// newLine returns a line that has no feeds yet.
func (o *owner) newLine() *line {
	o.lines++
	return &line{owner: o, index: -1}
}

// first returns the line of an owner whose next feed is first, or nil if no poll of it may start. Unless paced is set,
// it looks at unpaced ones only.
func (o *owner) first(paced bool) (l *line) {
	if o.room <= 0 {
		return nil
	}
	if paced && len(o.ready) > 0 {
		l = o.ready[0]
	}
	for _, u := range o.unpaced {
		if u != nil && (l == nil || u.first() < l.first()) {
			l = u
		}
	}
	return l
}

// activate puts an owner into the active ones or takes it out of them, after its lines have changed.
func (q *Queue) activate(o *owner) {
	active := o.id != q.operator && (len(o.ready) > 0 || o.unpaced != [2]*line{})
	if active == o.active {
		return
	}
	o.active = active
	i, _ := slices.BinarySearchFunc(q.active, o.id, compareOwner)
	if active {
		q.active = slices.Insert(q.active, i, o)
	} else {
		q.active = slices.Delete(q.active, i, i+1)
	}
}

func compareOwner(o *owner, id Owner) int { return cmp.Compare(o.id, id) }

// turn is who had the last turn among sites.
type turn struct {
	operator bool
	last     Owner // of the others
}

// Next takes feeds out of the queue whose turn it is, n at most, and one of a site. It takes none of a site that is not
// free, that is paused or whose next slot is for a redirect, and no more than polls may start now. A site of which a
// feed was taken is busy until [Queue.Asked], [Queue.Free] or [Queue.Back] is called for it.
func (q *Queue) Next(now time.Duration, n int) []Feed {
	q.wake(now)
	q.starts.pass(now, q.due)
	q.findRoom()
	var feeds []Feed
	for len(feeds) < n {
		before := q.turn
		l := q.nextLine(q.starts.may(q.due))
		if l == nil {
			break
		}
		if s := l.site; s != nil {
			if s.hopFirst(now) { // it is placed again when the redirect has had the slot
				q.withdraw(s)
				q.turn = before
				continue
			}
			l = q.turnOf(s)
			s.busy = true
			q.starts.spent++
		}
		l.owner.room--
		feeds = append(feeds, q.takeFirst(l))
	}
	return feeds
}

// findRoom asks how many polls of each owner may start.
func (q *Queue) findRoom() {
	for _, o := range q.owners {
		o.room = q.Room(o.id)
	}
}

// nextLine returns the first line of the owner whose turn it is, or nil.
func (q *Queue) nextLine(paced bool) *line {
	operator, other := q.firstLines(paced)
	switch {
	case operator != nil && (other == nil || !q.turn.operator):
		q.turn.operator = true
		return operator
	case other != nil:
		q.turn = turn{last: other.owner.id}
	}
	return other
}

// firstLines returns the first line of the operator and that of the next other owner in turn, or nil.
func (q *Queue) firstLines(paced bool) (operator, other *line) {
	if o := q.owners[q.operator]; o != nil {
		operator = o.first(paced)
	}
	start, found := slices.BinarySearchFunc(q.active, q.turn.last, compareOwner)
	if found {
		start++
	}
	for i := range q.active {
		if other = q.active[(start+i)%len(q.active)].first(paced); other != nil {
			break
		}
	}
	return operator, other
}

// takeFirst takes the first feed of a line.
func (q *Queue) takeFirst(l *line) Feed {
	f := Feed{Owner: l.owner.id, New: l.fresh}
	if l.site != nil {
		f.Site = l.site.name
	}
	e := l.feeds[0]
	if f.ID, f.Due, f.Waiting = e.id, time.Duration(e.key), e.waits(); f.Waiting {
		f.Due, f.place = q.waiters[e.id].due, e.key
		delete(q.waiters, e.id)
	} else {
		q.due--
	}
	q.remove(l, 0)
	return f
}

// When returns the moment from which on Next may find a feed, if nothing changes. It is math.MaxInt64 if no feed waits
// for a moment: for those of owners that have no room, the moment is when some is made.
func (q *Queue) When(now time.Duration) time.Duration {
	q.findRoom()
	at := time.Duration(math.MaxInt64)
	if len(q.timed) > 0 {
		at = q.timed[0].at
	}
	if operator, other := q.firstLines(true); operator != nil || other != nil {
		at = now
	}
	if at < math.MaxInt64 {
		at = max(at, q.starts.next(now, q.due))
	}
	if operator, other := q.firstLines(false); operator != nil || other != nil {
		at = now
	}
	return max(at, now)
}

const (
	// minRate is how many polls of sites may start in a second at least.
	minRate = 16
	// backlog is in what time all feeds that are due may be started, in seconds, if there are many.
	backlog = 120
)

// starts bounds how many polls start. Its zero value allows a burst.
type starts struct {
	spent float64 // of the burst
	at    time.Duration
}

// rate returns how many polls may start in a second, and how many at once.
func rate(due int) (perSecond, burst float64) {
	perSecond = max(minRate, float64(due)/backlog)
	return perSecond, max(1, perSecond/2)
}

// pass lets time pass.
func (s *starts) pass(now time.Duration, due int) {
	perSecond, _ := rate(due)
	s.spent = max(0, s.spent-perSecond*max(0, now-s.at).Seconds())
	s.at = now
}

// may reports whether a poll may start now.
func (s *starts) may(due int) bool {
	_, burst := rate(due)
	return s.spent <= burst-1+1e-6
}

// back takes a start back that was not made.
func (s *starts) back() { s.spent = max(0, s.spent-1) }

// next is the moment at which a poll may start.
func (s *starts) next(now time.Duration, due int) time.Duration {
	perSecond, burst := rate(due)
	over := s.spent - perSecond*max(0, now-s.at).Seconds() - (burst - 1)
	if over <= 0 {
		return now
	}
	return now + time.Duration(math.Ceil(over/perSecond*float64(time.Second)))
}
