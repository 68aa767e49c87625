// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"slices"
	"time"
)

// Mark names a way in which readers are admitted, such as a token of a gateway. A feed remembers
// for 30 days by whose readers it was asked for, whichever handler served them.
type Mark uint64

// MarkOf returns the mark of a text, which cannot be read from it.
func MarkOf(text string) Mark {
	sum := sha256.Sum256([]byte(text))
	return Mark(binary.BigEndian.Uint64(sum[:]))
}

const (
	markDays = 30 // for how many days a mark counts
	maxMarks = 16 // of a feed; the one that asked the longest ago is forgotten first
)

// markDay is a mark, and the last day on which its readers asked.
type markDay struct {
	Mark Mark  `json:"m"`
	Day  int64 `json:"d"` // counted from 1970
}

func (c *Cache) day() int64 { return c.now().Unix() / int64(24*time.Hour/time.Second) }

// AskedAs records that a reader who is admitted in a way asks for the feed. The store learns of it
// with the outcome of the next poll.
func (f *Feed) AskedAs(m Mark) {
	f = f.use()
	defer f.leave()
	asked := markDay{m, f.cache.day()}
	for {
		pending := f.marks.Load()
		if pending != nil && slices.Contains(*pending, asked) {
			return
		}
		var known []markDay
		if pending != nil {
			known = *pending
		}
		next := mergeMarks(known, []markDay{asked}, asked.Day)
		if f.marks.CompareAndSwap(pending, &next) {
			return
		}
	}
}

// markDays returns the marks of the feed: those of its state, and those that have come since.
func (f *Feed) markDays(s *state) []markDay {
	var pending []markDay
	if p := f.marks.Load(); p != nil {
		pending = *p
	}
	return mergeMarks(s.feed.Marks, pending, f.cache.day())
}

// mergeMarks returns the marks of two lists that count on a day.
func mergeMarks(a, b []markDay, today int64) (all []markDay) {
	for _, m := range slices.Concat(a, b) {
		if today-m.Day >= markDays {
			continue
		}
		if i := slices.IndexFunc(all, func(o markDay) bool { return o.Mark == m.Mark }); i >= 0 {
			all[i].Day = max(all[i].Day, m.Day)
			continue
		}
		all = append(all, m)
	}
	slices.SortStableFunc(all, func(a, b markDay) int { return int(b.Day - a.Day) })
	return all[:min(len(all), maxMarks)]
}

func namesOf(days []markDay) []Mark {
	marks := make([]Mark, 0, len(days))
	for _, m := range days {
		marks = append(marks, m.Mark)
	}
	return marks
}

// marksIn finds the marks in a memo without decoding all of it; see [textIn].
func marksIn(memo []byte) (days []markDay) {
	_, list, found := bytes.Cut(memo, []byte(`"marks":[`))
	if !found {
		return nil
	}
	list, _, _ = bytes.Cut(list, []byte(`]`)) // it holds numbers alone
	_ = json.Unmarshal(slices.Concat([]byte(`[`), list, []byte(`]`)), &days)
	return days
}
