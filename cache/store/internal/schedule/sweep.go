// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"bytes"
	"cmp"
	"slices"
	"time"

	"github.com/feedpollard/pollard/cache/store"
)

// Candidate is a feed that may have to go, as it was when that was found out.
type Candidate struct {
	ID     store.ID
	size   int64
	wanted Time
}

// each visits all feeds of a store.
type each func(visit func(store.ID, *Feed)) error

// Unwanted finds what a sweep has to remove. It is a walk over all feeds, of which
// the store does not have to stand still.
func Unwanted(now Time, q store.SweepQuery, walk each) ([]Candidate, error) {
	var gone, unread []Candidate
	err := walk(func(id store.ID, f *Feed) {
		c := Candidate{ID: id, wanted: f.wanted()}
		switch quiet := now.Sub(c.wanted); {
		case q.Keep != nil && q.Keep(id):
		case f.Version != 0:
			if q.Idle > 0 && quiet >= q.Idle {
				gone = append(gone, c)
			}
		// Until then its failures have to be remembered, for the back-off.
		case q.Unread > 0 && quiet >= q.Unread && now.Sub(f.Next) > f.Hold:
			gone = append(gone, c)
		case !f.Configured:
			unread = append(unread, c)
		}
	})
	if q.MaxUnread > 0 && len(unread) > q.MaxUnread {
		longest(unread)
		gone = append(gone, unread[:len(unread)-q.MaxUnread]...)
	}
	return gone, err
}

// Excess finds the feeds whose bodies have to go so that the others take at most
// budget bytes.
func Excess(budget int64, walk each) ([]Candidate, error) {
	var all []Candidate
	var size int64
	err := walk(func(id store.ID, f *Feed) {
		if f.Size > 0 {
			all = append(all, Candidate{ID: id, size: f.Size, wanted: f.wanted()})
			size += f.Size
		}
	})
	longest(all)
	n := 0
	for ; n < len(all) && size > budget; n++ {
		size -= all[n].size
	}
	return all[:n], err
}

// longest sorts candidates: those that nobody has wanted for the longest time first.
func longest(all []Candidate) {
	slices.SortFunc(all, func(a, b Candidate) int {
		return cmp.Or(cmp.Compare(a.wanted, b.wanted), a.ID.Compare(b.ID))
	})
}

// Removed is what a call has removed.
type Removed struct {
	IDs   []store.ID
	Files []uint64 // of the bodies, in the same order; 0: none
}

func (r *Removed) add(id store.ID, f *Feed) {
	r.IDs = append(r.IDs, id)
	r.Files = append(r.Files, f.File)
}

// Sweep removes candidates, unless somebody has wanted them since.
func (s *Schedule) Sweep(now Time, candidates []Candidate) (r Removed, err error) {
	for _, c := range candidates {
		f, err := s.keeper.Get(c.ID)
		if err != nil {
			return r, err
		}
		if f == nil || f.wanted() > c.wanted {
			continue
		}
		r.add(c.ID, f)
		s.remove(now, c.ID, f)
	}
	return r, nil
}

// Forget removes a feed.
func (s *Schedule) Forget(now Time, id store.ID) (r Removed, err error) {
	f, err := s.keeper.Get(id)
	if err != nil {
		return r, err
	}
	if f == nil {
		return r, store.ErrNoRecord
	}
	r.add(id, f)
	s.remove(now, id, f)
	return r, nil
}

func (s *Schedule) remove(now Time, id store.ID, f *Feed) {
	s.keepStart(now, f)
	// A text that cannot be read is no loss now.
	text, _ := s.keeper.Text(id)
	s.undo = append(s.undo, func() { s.keeper.PutText(id, text) })
	s.put(now, id, f, nil, false)
	s.changed(store.Change{ID: id, Forgotten: true})
}

// Trim drops the bodies of candidates, unless somebody has wanted them since.
func (s *Schedule) Trim(now Time, candidates []Candidate) (r Removed, err error) {
	for _, c := range candidates {
		old, err := s.keeper.Get(c.ID)
		if err != nil {
			return r, err
		}
		if old == nil || old.Size == 0 || old.wanted() > c.wanted {
			continue
		}
		r.add(c.ID, old)
		f := *old
		f.Version, f.Size, f.File = 0, 0, 0
		s.put(now, c.ID, old, &f, false)
		s.changed(store.Change{ID: c.ID})
	}
	return r, nil
}

// Touch notes when readers have asked for feeds.
func (s *Schedule) Touch(now Time, asked map[store.ID]time.Duration) error {
	for id, ago := range asked {
		old, err := s.keeper.Get(id)
		if err != nil {
			return err
		}
		if at := before(now, ago); old != nil && at > old.Asked {
			f := *old
			f.Asked = at
			s.put(now, id, old, &f, false)
		}
	}
	return nil
}

// Restore takes a record as it is given; its body, if any, is in file. It returns
// the file that is needed no more.
func (s *Schedule) Restore(now Time, saved store.Saved, file uint64) (unneeded uint64, err error) {
	old, err := s.keeper.Get(saved.ID)
	if err != nil {
		return 0, err
	}
	if old != nil && saved.New {
		return file, nil
	}
	f := Feed{
		Next: now.Add(saved.In), Hold: saved.Hold,
		Polled: before(now, saved.Polled), Asked: before(now, saved.Asked),
		State: saved.State, Configured: saved.Configured, Host: saved.Host, Facts: bytes.Clone(saved.Facts),
	}
	var text Text
	if old != nil {
		f.Next = max(f.Next, old.Next)
		if text, err = s.keeper.Text(saved.ID); err != nil {
			return 0, err
		}
		s.keepStart(now, old)
		unneeded = old.File
	}
	if f.Polled != Never {
		s.token++ // of its own, so that no lease from before fits
		f.Token = s.token
	}
	if saved.Body != nil {
		f.Version, f.Size, f.File = saved.Body.Version, int64(len(saved.Body.Data)), file
	}
	s.putText(saved.ID, text, Text{URL: saved.URL, Memo: bytes.Clone(saved.Memo)})
	s.put(now, saved.ID, old, &f, false)
	s.changed(store.Change{ID: saved.ID, Version: f.Version})
	return unneeded, nil
}
