// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import "time"

// entry is one feed in a line. A million of them are in memory, so they are small.
type entry struct {
	id  ID
	key int64 // since when it is due, in nanoseconds; or firstPlace and its place, if a reader waits for it
}

const (
	// firstPlace is the key before that of the first feed for which a reader waits. Their keys are less than all of
	// those that are due.
	firstPlace int64 = -1 << 62
	// earliestDue is the earliest moment since which a feed may be due, 73 years before the process began.
	earliestDue = firstPlace / 2
)

// keyOf is the key of a feed that is due.
func keyOf(due time.Duration) int64 { return max(int64(due), earliestDue) }

// waits reports whether a reader waits for the feed.
func (e entry) waits() bool { return e.key < earliestDue }

// line holds the feeds of one site that have the same owner and are of the same kind. It is a heap, the next feed first.
type line struct {
	site    *site // nil if they are not paced
	owner   *owner
	next    *line // of the same site
	feeds   []entry
	index   int32 // in the heap of its owner, -1 while none may be taken
	fresh   bool  // they have no version
	pausing bool  // the last answer of each paused the site
}

// first is the key of the next feed.
func (l *line) first() int64 { return l.feeds[0].key }

// before reports whether a goes before b.
func (l *line) before(a, b entry) bool {
	if l.fresh && a.waits() && b.waits() {
		return a.key > b.key
	}
	return a.key < b.key
}

// find returns the index of an entry, looking from i on downwards. It is -1 if there is none.
func (l *line) find(i int, e entry) int {
	switch {
	case i >= len(l.feeds) || l.before(e, l.feeds[i]):
		return -1
	case l.feeds[i] == e:
		return i
	}
	if found := l.find(2*i+1, e); found >= 0 {
		return found
	}
	return l.find(2*i+2, e)
}

func (l *line) Len() int           { return len(l.feeds) }
func (l *line) Less(i, j int) bool { return l.before(l.feeds[i], l.feeds[j]) }
func (l *line) Swap(i, j int)      { l.feeds[i], l.feeds[j] = l.feeds[j], l.feeds[i] }

func (l *line) Push(x any) {
	if n := len(l.feeds); n == cap(l.feeds) { // append would double it
		l.feeds = append(make([]entry, 0, n+n/4+1), l.feeds...)
	}
	l.feeds = append(l.feeds, x.(entry))
}

func (l *line) Pop() any {
	last := len(l.feeds) - 1
	e := l.feeds[last]
	l.feeds = l.feeds[:last]
	return e
}

// lines is a heap of lines of one owner. First is the one whose next feed is first.
type lines []*line

func (h lines) Len() int           { return len(h) }
func (h lines) Less(i, j int) bool { return h[i].first() < h[j].first() }

func (h lines) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = int32(i), int32(j)
}

func (h *lines) Push(x any) {
	l := x.(*line)
	l.index = int32(len(*h))
	*h = append(*h, l)
}

func (h *lines) Pop() any {
	last := len(*h) - 1
	l := (*h)[last]
	l.index = -1
	(*h)[last] = nil
	*h = (*h)[:last]
	return l
}

// maxMarks is how many feeds are remembered at most whose last answer paused their site.
const maxMarks = 10_000

// marks remembers such feeds. Those of the older half are forgotten when there are too many.
type marks struct{ recent, older map[ID]struct{} }

func (m *marks) add(id ID) {
	if len(m.recent) >= maxMarks/2 {
		m.recent, m.older = nil, m.recent
	}
	if m.recent == nil {
		m.recent = make(map[ID]struct{})
	}
	m.recent[id] = struct{}{}
}

func (m *marks) remove(id ID) {
	delete(m.recent, id)
	delete(m.older, id)
}

func (m *marks) has(id ID) bool {
	_, recent := m.recent[id]
	_, older := m.older[id]
	return recent || older
}

// Paused records that the last answer of a feed paused its site: when it is put into the queue again it comes after
// all other feeds of the site. The last 5,000 such feeds are remembered, and 10,000 at most.
func (q *Queue) Paused(id ID) { q.paused.add(id) }

// Answered records that the last answer of a feed did not pause its site.
func (q *Queue) Answered(id ID) { q.paused.remove(id) }
