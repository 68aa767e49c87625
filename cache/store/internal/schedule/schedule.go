// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

// Package schedule is what the stores that run inside one process have in common:
// the rules of granting polls, the index of what is due, and the log of changes.
// Such a store keeps feeds (it is a [Keeper]), knows the time, and lets a
// [Schedule] decide.
//
// Each call changes the schedule at once. Before the next one, the store either
// confirms what it has been given to keep, or has the schedule undo it:
//
//	lease, err := s.Claim(now, claim)  // the keeper gets what has changed
//	...                                // and writes it down
//	s.Confirm()                        // or s.Undo(mark)
package schedule

import (
	"bytes"
	"maps"
	"slices"

	"github.com/feedpollard/pollard/cache/store"
)

// Keeper holds the feeds of a schedule, and notes.
type Keeper interface {
	// Get returns nil where the feed is not known.
	Get(id store.ID) (*Feed, error)
	// Put takes a feed, of which a poll has been granted just now or not; nil removes it,
	// with its text.
	Put(id store.ID, f *Feed, granted bool)
	// Text returns the zero Text where there is none.
	Text(id store.ID) (Text, error)
	// PutText takes the text of a feed that has been put as well, before or after.
	PutText(id store.ID, text Text)
	// Each visits all feeds, in any order.
	Each(visit func(store.ID, *Feed)) error
	// Note takes a few bytes that [New] needs again; nil removes them.
	Note(key string, value []byte)
}

// Schedule decides which polls are granted. It is not safe for concurrent use.
type Schedule struct {
	keeper Keeper
	Log    Log

	token   store.Token // the last that was given
	started map[string]start
	pauses  map[string]pause // by scope
	hops    map[store.ID]hop
	index   index
	totals  store.Totals

	undo    []func()
	changes []store.Change
}

// New makes the schedule of what the keeper holds. notes are those that it was
// given before, and last is the highest token in use.
func New(now Time, keeper Keeper, notes map[string][]byte, last store.Token) (*Schedule, error) {
	s := &Schedule{
		keeper: keeper, token: last,
		started: make(map[string]start), pauses: make(map[string]pause), hops: make(map[store.ID]hop),
		totals: store.Totals{Feeds: make(map[store.State]int64)},
	}
	for key, value := range notes {
		s.recall(key, value)
	}
	s.index.reset()
	err := keeper.Each(func(id store.ID, f *Feed) {
		s.count(f, 1)
		s.index.add(now, id, f)
		s.token = max(s.token, f.Token)
		if f.Here && f.Polled.Add(f.Host.Spacing) > now {
			s.start(f.Host, f.Polled)
		}
	})
	s.undo = nil
	return s, err
}

// Token is the last that was given. The keeper of what has been granted must know
// it, whatever becomes of the feed.
func (s *Schedule) Token() store.Token { return s.token }

// Confirm makes everything since the last Confirm final, and announces it.
func (s *Schedule) Confirm() {
	clear(s.undo)
	s.undo = s.undo[:0]
	s.Log.add(s.changes)
	s.changes = s.changes[:0]
}

// Mark is a place in what has been done since the last Confirm.
type Mark struct{ undo, changes int }

// Mark returns the present place, for [Schedule.Undo].
func (s *Schedule) Mark() Mark { return Mark{len(s.undo), len(s.changes)} }

// Undo takes back everything since m, except that tokens stay spent.
func (s *Schedule) Undo(m Mark) {
	undo := slices.Clone(s.undo[m.undo:])
	for _, back := range slices.Backward(undo) {
		back()
	}
	clear(s.undo[m.undo:]) // which undoing has added to
	if len(undo) > 0 {
		s.index.wake()
	}
	s.undo, s.changes = s.undo[:m.undo], s.changes[:m.changes]
}

// put replaces old by f, either of which may be nil. granted says that a poll of
// the feed is under way.
func (s *Schedule) put(now Time, id store.ID, old, f *Feed, granted bool) {
	s.count(old, -1)
	s.count(f, 1)
	s.keeper.Put(id, f, granted)
	s.index.moved(now, id, old, f, granted)
	s.undo = append(s.undo, func() { s.put(now, id, f, old, false) })
}

func (s *Schedule) putText(id store.ID, old, text Text) {
	s.keeper.PutText(id, text)
	s.undo = append(s.undo, func() { s.keeper.PutText(id, old) })
}

func (s *Schedule) count(f *Feed, by int64) {
	if f == nil {
		return
	}
	s.totals.Feeds[f.State] += by
	s.totals.Bytes += by * f.Size
	if f.unread() {
		s.totals.Unread += by
	}
}

func (s *Schedule) changed(c store.Change) { s.changes = append(s.changes, c) }

// Totals returns the figures of the store. Overdue may count a feed that need not
// be polled, or one twice.
func (s *Schedule) Totals(now Time) store.Totals {
	t := s.totals
	t.Feeds = maps.Clone(t.Feeds)
	maps.DeleteFunc(t.Feeds, func(_ store.State, n int64) bool { return n == 0 })
	s.overtaken(now)
	t.Overdue = int64(s.index.overdue(now))
	return t
}

// Claim grants a poll of a named feed, or says why not.
func (s *Schedule) Claim(now Time, c store.Claim) (store.Lease, error) {
	old, err := s.keeper.Get(c.ID)
	if err != nil {
		return store.Lease{}, err
	}
	text, err := s.keeper.Text(c.ID)
	if err != nil {
		return store.Lease{}, err
	}
	var f Feed
	if old == nil {
		f = Feed{Next: now, Polled: Never, Asked: Never, Hold: c.Hold, State: store.StateCold}
	} else {
		f = *old
	}
	f.Configured = c.Configured
	s.moveTo(now, &f, c.Host)

	// A floor brings the poll forward, never back.
	due := f.Next
	if c.Floor > 0 {
		due = min(due, s.asked(c.ID, &f).Add(c.Floor))
	}
	var lease store.Lease
	denied, until, why := s.deny(c.Host, now)
	if due > now {
		denied, until, why = store.DeniedNotDue, max(due, until), ""
	}
	if lease.Denied = denied; denied == "" {
		f.Hold = c.Hold
		s.grant(now, &f)
	} else {
		lease.Wait, lease.Why = until.Sub(now), why
	}
	unnamed := old == nil || text.URL == "" // or its text was damaged
	if unnamed || denied == "" || f.Configured != old.Configured || f.Host != old.Host {
		s.put(now, c.ID, old, &f, denied == "")
	}
	if unnamed {
		was := text
		text.URL = c.URL
		s.putText(c.ID, was, text)
	}
	lease.Record = f.Record(c.ID, text, now)
	return lease, nil
}

// asked is when the URL of a feed was last asked, by its polls or by a redirect to it.
func (s *Schedule) asked(id store.ID, f *Feed) Time {
	last := Never
	if f != nil {
		last = f.Polled
	}
	if h, known := s.hops[id]; known {
		last = max(last, h.at)
	}
	return last
}

// grant moves a feed as a poll does that begins now.
func (s *Schedule) grant(now Time, f *Feed) {
	s.token++
	f.Token, f.Polled, f.Next, f.Here = s.token, now, now.Add(f.Hold), true
	s.start(f.Host, now)
}

// moveTo changes the host of a feed.
func (s *Schedule) moveTo(now Time, f *Feed, host store.Host) {
	if f.Host.Name != host.Name {
		s.keepStart(now, f)
		f.Here = false
	}
	f.Host = host
}

// Hop grants following a redirect, or says why not.
func (s *Schedule) Hop(now Time, h store.Hop) (store.Passage, error) {
	f, err := s.keeper.Get(h.ID)
	if err != nil {
		return store.Passage{}, err
	}
	if f != nil && h.Yield && f.Next != End {
		return store.Passage{Denied: store.DeniedTaken}, nil
	}
	denied, until, _ := s.deny(h.Host, now)
	if free := s.asked(h.ID, f).Add(h.Floor); free > now {
		denied, until = store.DeniedNotDue, max(free, until)
	}
	if denied != "" {
		return store.Passage{Denied: denied, Wait: until.Sub(now)}, nil
	}
	// No record tells of this start.
	s.start(h.Host, now)
	s.keepStart(now, &Feed{Host: h.Host})
	at := hop{at: now, until: now.Add(h.Floor)}
	set(s, s.hops, h.ID, at, noteHop+string(h.ID[:]), encodeHop(at))
	if f != nil && f.Next < at.until {
		moved := *f
		moved.Next = at.until
		s.put(now, h.ID, f, &moved, false)
		s.changed(store.Change{ID: h.ID})
	}
	return store.Passage{}, nil
}

// Commit takes the outcome of a poll, whose body the store has put into file, and
// returns the file that is needed no more.
func (s *Schedule) Commit(now Time, o store.Outcome, file uint64) (unneeded uint64, err error) {
	old, err := s.keeper.Get(o.ID)
	if err != nil {
		return 0, err
	}
	if old == nil || old.Token != o.Token || o.Token == 0 {
		return 0, store.ErrFenced
	}
	f := *old
	f.Next = now.Add(max(0, o.In))
	if o.Hold > 0 {
		f.Hold = o.Hold
	}
	if o.State != "" {
		f.State = o.State
	}
	if o.Facts != nil {
		f.Facts = bytes.Clone(o.Facts)
	}
	change := store.Change{ID: o.ID, Token: o.Token}
	switch {
	case o.Body != nil:
		f.Version, f.Size, f.File = o.Body.Version, int64(len(o.Body.Data)), file
		change.Version = f.Version
	case o.Withdraw:
		f.Version, f.Size, f.File = 0, 0, 0
	}
	s.moveTo(now, &f, o.Host)
	if o.Memo != nil {
		text, err := s.keeper.Text(o.ID)
		if err != nil {
			return 0, err
		}
		s.putText(o.ID, text, Text{URL: text.URL, Memo: bytes.Clone(o.Memo)})
	}
	s.put(now, o.ID, old, &f, false)
	for _, p := range o.Pauses {
		s.pause(now, p)
	}
	s.changed(change)
	if old.File != f.File {
		unneeded = old.File
	}
	return unneeded, nil
}
