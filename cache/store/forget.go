// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"slices"
	"time"
)

// keepForgotten is how long the row of a forgotten feed stays, so that other nodes see
// that it is gone.
const keepForgotten = 15 * time.Minute

// keepUnread is how long a feed that never gave a version is remembered after it was
// forgotten. For so long is remembered who asked for a feed, since the last one did.
const keepUnread = 24*time.Hour - time.Minute

// keepSite is how long the row of a site is kept that is not asked: longer than its pauses, and than a refusal of one of its
// URLs that a good answer of the site outweighs.
const keepSite = maxPause + keepPause

// moveFeed moves a row that has become small to the others of its kind: SQLite gives back no page of
// which a row alone has become smaller.
const moveFeed = `update feed set n = default where n = ?1`

// candidate is a feed that may have to go, as it was when that was found out.
type candidate struct {
	id   ID
	used Time
}

// Forget implements [Store].
func (d *Database) Forget(ctx context.Context, id ID) error {
	gone, err := d.forSome(ctx, []candidate{{id, End}}, func(tx Tx, f *feedRow) bool {
		f.remove(tx)
		return true
	})
	if err == nil && len(gone) == 0 {
		err = ErrNoRecord
	}
	return err
}

// remove makes the row of a feed that of a forgotten one.
func (f *feedRow) remove(tx Tx) {
	dropBody(tx, f.body)
	f.forget(tx.Now())
	f.save(tx, []byte{}, []byte{})
	tx.Exec(moveFeed, f.n)
	tx.Changed(Change{ID: f.id, Forgotten: true})
}

// forget leaves of the row when the feed was polled, what was decided then, what its origin asked for, and who asked for it.
func (f *feedRow) forget(now Time) {
	before := *f
	*f = newFeed(before.id)
	f.n, f.last, f.earliest, f.refused, f.until = before.n, before.last, before.earliest, before.refused, before.until
	f.owner, f.askers, f.asked, f.changed = before.owner, before.askers, before.asked, now
	if before.next != End {
		f.decided(before.next)
	} else { // it was not to be polled any more
		f.decided(before.last.Add(maxPause))
	}
	until := f.remembered()
	if before.version == 0 && (f.owner == Any || f.owner == 0) { // it may have been made up
		until = min(until, now.Add(keepUnread))
	}
	f.until = max(f.until, until, now.Add(keepForgotten))
}

// decided records a decision in a row without a URL: the later one counts.
func (f *feedRow) decided(next Time) {
	if f.next == End {
		f.next = next
	}
	f.next = max(f.next, next)
}

// remembered returns until when a row without a URL is of use.
func (f *feedRow) remembered() Time {
	until := max(f.earliest, f.asked.Add(keepUnread))
	if f.next != End {
		until = max(until, f.next)
	}
	return until
}

// forSome does something with feeds that have not been wanted since, some in each
// transaction. It returns the IDs of those of which do reports true.
func (d *Database) forSome(ctx context.Context, candidates []candidate, do func(tx Tx, f *feedRow) bool) (done []ID, err error) {
	for some := range slices.Chunk(candidates, atOnce) {
		ids, err := write(ctx, d, Work{}, func(tx Tx) (ids []ID, err error) {
			all := make([]ID, len(some))
			for i, c := range some {
				all[i] = c.id
			}
			feeds, err := lockFeeds(tx, all)
			if err != nil {
				return nil, err
			}
			for _, c := range some {
				if f := feeds[c.id]; f != nil && f.hasURL && f.used() <= c.used && do(tx, f) {
					ids = append(ids, c.id)
				}
			}
			return ids, nil
		})
		if err != nil {
			return done, err
		}
		done = append(done, ids...)
	}
	return done, ctx.Err()
}
