// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

// Package queue decides which feed is polled next. It is pure: it reads no clock, knows no store and starts nothing.
//
// A feed is in the queue because a reader waits for it, or because it is due, or both. Feeds belong to a site, which is
// what is paced and paused as one, and count for an owner. All orders follow from one idea: owners take turns, the
// operator has every second one, and what an owner does not need is for the others.
//
// At a site, a poll may start when the site is free: its last one is as long ago as its spacing, and no pause holds.
// A redirect that waits takes the next slot, but only every second one while other polls wait. Of the others the
// operator has every second slot, and the other owners have theirs in turn. Of an owner, feeds for which a reader waits
// come first, in the order in which they were asked for, and then those that have been due the longest.
//
// Two kinds of feeds are exceptions. Feeds whose last answer paused the site come after all others of it, those of the
// operator too. And feeds without a version have a pause of their own, during which the others of the site go on; after it the
// owner whose URL caused it comes last of them. Of those for which a reader waits, the one that was asked for most
// recently comes first, so that many addresses that lead nowhere do not keep a new one of the same owner from its poll.
//
// Among sites, owners take turns as well. An owner chooses first a site at which a reader waits for one of its feeds,
// then the one at which it has been due the longest; at that site the poll goes to the owner whose turn it is there.
// So an owner with thousands of sites takes nothing from one that has a few.
//
// Polls of sites start at 16 a second at most, or a 120th of all feeds that are due if that is more: after a restart
// no resolver or uplink sees a burst. Feeds without a site, which are those of a shield, wait for nothing.
//
// Moments are durations since the process began. They may be negative: a feed may have been due before.
package queue

import (
	"container/heap"
	"math"
	"slices"
	"time"
)

// ID identifies a feed.
type ID = [16]byte

// Owner is the party for which a feed counts.
type Owner = int64

// Feed is a feed that is due, or for which a reader waits.
type Feed struct {
	ID    ID
	Site  string // what is paced as one; if empty, the feed is not paced and waits for nothing
	Owner Owner
	New   bool          // it has no version
	Due   time.Duration // since when it is due; for more than 73 years counts as 73 years

	// Waiting reports whether it was taken because a reader waits for it. [Queue.Next] sets it and [Queue.Back] reads it.
	Waiting bool

	place int64 // if it was Waiting: the key of its entry
}

// Queue holds feeds and decides their order. It must not be used by several goroutines at once.
type Queue struct {
	// Room returns how many more polls of an owner may start now: Next takes no more feeds of it. New sets one that
	// allows any number. It is called by Next and When, and must not call the queue.
	Room func(Owner) int

	operator Owner
	waiters  map[ID]waiter
	places   int64 // how many places were given to feeds for which a reader waits
	due      int   // feeds in the queue that are only due

	sites map[string]*site
	timed moments // sites with feeds, by the moment at which one may be taken
	idle  moments // sites without feeds, by the moment at which nothing about them needs to be known

	owners map[Owner]*owner // those that have feeds in the queue
	active []*owner         // those of which a feed may be taken now, but for the operator, by ID
	turn   turn             // among sites
	starts starts
	paused marks
}

// waiter is a feed for which a reader waits.
type waiter struct {
	line *line
	key  int64 // of its entry in the line
	due  time.Duration
}

// New returns an empty queue. The operator is the owner that has every second turn.
func New(operator Owner) *Queue {
	return &Queue{
		Room:     func(Owner) int { return math.MaxInt },
		operator: operator,
		waiters:  make(map[ID]waiter),
		sites:    make(map[string]*site),
		owners:   make(map[Owner]*owner),
	}
}

// Wait puts a feed into the queue because a reader waits for it, or because it is wanted as though one did. It goes
// before feeds of its owner that are only due. If it waits already it keeps its place, unless it has no version: then
// it is now the one asked for most recently.
func (q *Queue) Wait(f Feed) {
	q.places++
	key := firstPlace + q.places
	if w, ok := q.waiters[f.ID]; ok {
		if !f.New {
			key = w.key
		}
		q.Leave(f.ID) // its site, its owner or whether it has a version may have changed
	}
	q.wait(f, key)
}

// wait puts a feed with a place into the queue.
func (q *Queue) wait(f Feed, key int64) {
	l := q.line(f)
	q.waiters[f.ID] = waiter{line: l, key: key, due: f.Due}
	q.put(l, entry{f.ID, key})
}

// Waits reports whether the feed is in the queue because a reader waits for it.
func (q *Queue) Waits(id ID) bool {
	_, ok := q.waiters[id]
	return ok
}

// Leave takes a feed out of the queue if it is there because a reader waits for it. If it is also due, it stays as
// one that is.
func (q *Queue) Leave(id ID) {
	w, ok := q.waiters[id]
	if !ok {
		return
	}
	delete(q.waiters, id)
	q.remove(w.line, w.line.find(0, entry{id, w.key}))
}

// Due puts feeds into the queue that are due.
func (q *Queue) Due(feeds ...Feed) {
	for i := range feeds {
		q.due++
		q.put(q.line(feeds[i]), entry{feeds[i].ID, keyOf(feeds[i].Due)})
	}
}

// DueLen returns the number of feeds in the queue that are due, without those for which a reader waits.
func (q *Queue) DueLen() int { return q.due }

// DropDue forgets all feeds that are only due, so that they can be put into the queue again.
func (q *Queue) DropDue() {
	var lines []*line
	for _, o := range q.owners {
		for _, l := range o.unpaced {
			lines = append(lines, l)
		}
	}
	for _, s := range q.sites {
		lines = s.appendLines(lines)
	}
	for _, l := range lines {
		if l != nil {
			q.dropDue(l)
		}
	}
}

// dropDue forgets those of a line.
func (q *Queue) dropDue(l *line) {
	q.take(l)
	before := len(l.feeds)
	l.feeds = slices.Clone(slices.DeleteFunc(l.feeds, func(e entry) bool { return !e.waits() }))
	heap.Init(l)
	q.due -= before - len(l.feeds)
	q.changed(l)
}

// Back puts a feed that Next returned back where it was: no poll has started. Its site, which is not busy any more, is
// not looked at before the given moment. A feed without a site may be taken again at once. To put a feed back as one that
// is only due, clear its Waiting.
func (q *Queue) Back(f Feed, at time.Duration) {
	key, waits := keyOf(f.Due), f.Waiting && f.place != 0
	if waits {
		key = f.place
		if w, again := q.waiters[f.ID]; again && f.New { // it is the one asked for most recently
			key = w.key
		}
		q.Leave(f.ID)
	}
	l := q.line(f)
	if s := l.site; s != nil {
		q.release(s)
		s.free = max(s.free, at)
	}
	if waits {
		q.waiters[f.ID] = waiter{line: l, key: key, due: f.Due}
	} else {
		q.due++
	}
	q.put(l, entry{f.ID, key})
}

// put adds an entry to a line.
func (q *Queue) put(l *line, e entry) {
	q.take(l)
	heap.Push(l, e)
	q.changed(l)
}

// remove takes the ith entry out of a line.
func (q *Queue) remove(l *line, i int) {
	q.take(l)
	heap.Remove(l, i)
	q.changed(l)
}

// take takes a line that will change out of the order of lines, until changed is called.
func (q *Queue) take(l *line) {
	if l.site != nil {
		q.withdraw(l.site)
	}
}

// changed puts a line back into the order of lines, or drops it if it has become empty.
func (q *Queue) changed(l *line) {
	s, o := l.site, l.owner
	if len(l.feeds) == 0 {
		if s != nil {
			s.unlink(l)
		} else {
			o.unpaced[kind(l.fresh)] = nil
		}
		if o.lines--; o.lines == 0 {
			delete(q.owners, o.id)
		}
	}
	if s != nil {
		q.place(s)
	} else {
		q.activate(o)
	}
}
