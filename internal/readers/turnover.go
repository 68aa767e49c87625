// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package readers

import (
	"encoding/binary"
	"time"

	"github.com/feedpollard/pollard/figures"
)

// Figures of tallies have the week and the hash of the feed as their key, in 4 and 8
// bytes, the bitmap as their bits, and the feed as their label.

func tallyKey(week int64, feed uint64) string {
	key := binary.BigEndian.AppendUint32(nil, uint32(week))
	return string(binary.BigEndian.AppendUint64(key, feed))
}

// Use sets the key of hashes, which all nodes of a store have in common. It comes
// before anybody is counted.
func (c *Census) Use(seed uint64) { c.seed = seed }

// Take returns the bitmaps with bits that have not been taken yet.
func (c *Census) Take(now time.Time) (taken []figures.Figure) {
	hash := seed(c.seed)
	c.tallies.Range(func(name, value any) bool {
		t := value.(*Tally)
		if !t.news.Swap(false) {
			return true
		}
		t.turn(weekOf(now))
		feed, week := name.(string), t.week.Load()
		current := t.current.Load() & 1
		for i, index := range [...]uint32{current, current ^ 1} {
			bitmap := make([]byte, 0, slots/8)
			empty := true
			for w := range words {
				word := t.maps[index][w].Load()
				bitmap, empty = binary.LittleEndian.AppendUint64(bitmap, word), empty && word == 0
			}
			if !empty {
				taken = append(taken, figures.Figure{
					Ref:   figures.Ref{Kind: figures.Tally, Key: tallyKey(week-int64(i), hash.text(feed))},
					Peaks: []int64{now.Unix()}, Bits: bitmap, Label: []byte(feed),
				})
			}
		}
		return true
	})
	return taken
}

// Recall adds what a store has of this week and the last one.
func (c *Census) Recall(stored []figures.Figure, now time.Time) {
	present := weekOf(now)
	for i := range stored {
		f := &stored[i]
		if len(f.Key) != 12 || len(f.Bits) != slots/8 || len(f.Label) == 0 {
			continue
		}
		age := present - int64(binary.BigEndian.Uint32([]byte(f.Key)))
		t := c.Tally(string(f.Label))
		if age < 0 || age > 1 || t == nil {
			continue
		}
		t.turn(present)
		index := (t.current.Load() + uint32(age)) & 1
		for w := range words {
			t.maps[index][w].Or(binary.LittleEndian.Uint64(f.Bits[8*w:]))
		}
	}
}

// OfFeed names the figures that a feed has at present.
func (c *Census) OfFeed(feed string, now time.Time) []figures.Ref {
	hash := seed(c.seed).text(feed)
	return []figures.Ref{
		{Kind: figures.Tally, Key: tallyKey(weekOf(now), hash)}, {Kind: figures.Tally, Key: tallyKey(weekOf(now)-1, hash)},
	}
}

// OutdatedTallies returns moves that drop the bitmaps of weeks that count no more, and those
// of feeds beyond the bound, the least recent first.
func OutdatedTallies(stored []figures.Figure, now time.Time) []figures.Move {
	return outdated(stored, tallyKey(weekOf(now)-1, 0)[:4], maxTallies, "")
}
