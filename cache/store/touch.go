// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"maps"
	"slices"
	"time"
)

// Touch implements [Store].
func (d *Database) Touch(ctx context.Context, asked map[ID]Asked) error {
	defer d.took("touch", time.Now())
	for ids := range slices.Chunk(sortedIDs(slices.Collect(maps.Keys(asked))), atOnce) {
		poked := slices.ContainsFunc(ids, func(id ID) bool { return asked[id].Poke != nil })
		err := d.driver.Write(ctx, Work{Late: !poked, Do: func(tx Tx) error { return touch(tx, ids, asked) }})
		if err != nil {
			return err
		}
	}
	return ctx.Err()
}

// touch records when readers asked, and decides again for whom feeds count.
func touch(tx Tx, ids []ID, asked map[ID]Asked) error {
	feeds, err := lockFeeds(tx, ids)
	if err != nil {
		return err
	}
	now := tx.Now()
	for _, id := range ids {
		f := feeds[id]
		if f == nil || !f.hasURL {
			continue
		}
		a, old := asked[id], f.poke
		f.touch(now, a)
		var state []byte
		if a.FeedState != nil {
			state = a.FeedState(f.feedState)
		}
		if state != nil {
			f.feedState = state
		}
		if state != nil || f.poke != old {
			f.changed, f.news, f.outcome = now, 0, 0
			tx.Changed(Change{ID: id})
		}
		f.save(tx, nil, state) // a second poke adds nothing
	}
	return nil
}

// touch records that readers asked for the feed, if they did, and a poke.
func (f *feedRow) touch(now Time, a Asked) {
	if a.Ago >= 0 {
		at := now.Add(-a.Ago)
		f.askedBy(a.By, at.day())
		f.asked = max(f.asked, at)
		if a.Own && f.first == Never {
			f.first = at
		}
	}
	f.pickOwner(now)
	if p := a.Poke; p != nil {
		poke := min(max(now.Add(p.In), f.last.Add(p.Floor)), now.Add(longestNext))
		if p.Patient && f.state == StateFailing {
			poke = max(poke, f.next)
		}
		f.poke = min(f.poke, poke)
	}
}
