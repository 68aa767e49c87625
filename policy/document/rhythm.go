// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"cmp"
	"slices"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/feedpollard/pollard/internal/namespace"
	"github.com/feedpollard/pollard/policy"
)

// entry is what is kept of an item or entry.
type entry struct {
	id         uint64     // hash of what identifies it; 0: unknown
	identifier identifier // what the id was made from
	published  int64      // Unix time; 0: not known
	updated    int64      // likewise
}

// identifier is the kind of an ID. Greater kinds are better.
type identifier byte

const (
	byNothing identifier = iota
	byAbout              // rdf:about of RSS 1.0
	byLink
	byID // guid, atom:id or the id of JSON Feed
)

// identify sets the ID, unless a better one is known.
func (e *entry) identify(by identifier, value []byte) {
	if by > e.identifier && len(value) > 0 {
		e.identifier, e.id = by, xxhash.Sum64(value)
	}
}

// date returns the date of the entry that an element holds; nil: it holds none.
func (e *entry) date(space namespace.Vocabulary, name string) *int64 {
	switch space {
	case namespace.RSS:
		if name == "pubdate" {
			return &e.published
		}
	case namespace.Atom, namespace.DublinCore:
		switch name {
		case "published", "date", "available", "issued", "created": // the last two are Atom 0.3's too
			return &e.published
		case "updated", "modified":
			return &e.updated
		}
	}
	return nil
}

// earliest is before the first feeds: earlier dates are ignored.
var earliest = time.Date(1990, time.January, 1, 0, 0, 0, 0, time.UTC)

// setDate sets a date of an entry. The first valid one counts.
func setDate(date *int64, text string) {
	if date == nil || *date != 0 {
		return
	}
	if at := policy.ParseDate(text); !at.Before(earliest) {
		*date = at.Unix()
	}
}

// rhythm measures how often entries appear. It reorders the entries: one feed in
// eight does not list the newest first.
//
// Each entry counts once, at its publication or, if that is unknown, its last change.
// Dates more than a day in the future announce events or are wrong, and are ignored. A
// rhythm needs three dated entries, and is that of the newest 20.
//
// It also returns the IDs of the entries, in order.
func rhythm(entries []entry, now time.Time) (r policy.Rhythm, ids []uint64) {
	r.Entries, ids = len(entries), make([]uint64, 0, len(entries))
	latest := now.Add(24 * time.Hour).Unix()
	usable := func(at int64) bool { return at != 0 && at <= latest }

	slices.SortStableFunc(entries, func(a, b entry) int { return cmp.Compare(a.id, b.id) })
	var times []int64
	var changed int64
	for i, e := range entries {
		ids = append(ids, e.id)
		for _, at := range []int64{e.published, e.updated} {
			if usable(at) {
				changed = max(changed, at)
			}
		}
		if i > 0 && e.id != 0 && e.id == entries[i-1].id {
			continue
		}
		r.IDs += uint32(e.id)
		if usable(e.published) {
			times = append(times, e.published)
		} else if usable(e.updated) {
			times = append(times, e.updated)
		}
	}
	slices.Sort(times)
	if len(times) > 0 {
		r.Newest, r.Changed = time.Unix(times[len(times)-1], 0).UTC(), time.Unix(changed, 0).UTC()
	}
	r.Dated, r.Median = len(times), medianGap(times[max(0, len(times)-maxRhythm):])
	return r, ids
}

// maxRhythm is how many entries, the newest, make the rhythm: a show may have been weekly for
// years and be daily now.
const maxRhythm = 20

// medianGap is the median of the gaps between neighbouring times, which are in order; 0 for fewer
// than three.
func medianGap(times []int64) time.Duration {
	if len(times) < 3 {
		return 0
	}
	gaps := make([]int64, len(times)-1)
	for i := range gaps {
		gaps[i] = times[i+1] - times[i]
	}
	slices.Sort(gaps)
	middle := len(gaps) / 2
	median := time.Duration(gaps[middle]) * time.Second
	if len(gaps)%2 == 0 {
		median = time.Duration(gaps[middle-1]+gaps[middle]) * time.Second / 2
	}
	return median
}
