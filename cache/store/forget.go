// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"slices"
	"strings"
	"time"
)

// keepForgotten is how long the row of a forgotten feed stays, so that other nodes see
// that it is gone.
const keepForgotten = 15 * time.Minute

// keepUnread is how long a feed that never gave a version is remembered after it was
// forgotten. For so long is remembered who has read a feed, since that.
const keepUnread = 24*time.Hour - time.Minute

// keepFailing is how long a feed that never gave a version is kept when readers ask for it no more, even
// if they did for days.
const keepFailing = 3 * 24 * time.Hour

// keepHost is how long the row of a site without feeds is kept.
const keepHost = 2 * 24 * time.Hour

// moveFeed moves a row that has become small to the others of its kind: SQLite gives back no page of
// which a row alone has become smaller.
const moveFeed = `update feed set n = default where n = ?1`

// candidate is a feed that may have to go, as it was when that was found out.
type candidate struct {
	id     ID
	wanted Time
}

// Forget implements [Store].
func (d *Database) Forget(ctx context.Context, id ID) error {
	gone, err := d.remove(ctx, []candidate{{id, End}})
	if err == nil && len(gone) == 0 {
		err = ErrNoRecord
	}
	return err
}

// remove forgets feeds that no reader has asked for since. Their last poll and the time before
// which their origin does not want another one are remembered for as long as they count.
func (d *Database) remove(ctx context.Context, candidates []candidate) (gone []ID, err error) {
	return d.forSome(ctx, candidates, func(tx Tx, f *feedRow) bool {
		f.forget(tx)
		return true
	})
}

// forget makes the row of a feed that of a forgotten one, which keeps when it was polled, what its origin
// asked for, and who has read it on which days.
func (f *feedRow) forget(tx Tx) {
	now := tx.Now()
	dropBody(tx, f.body)
	until := max(f.earliest, f.last.Add(f.hold), f.asked.Add(keepUnread))
	if f.version == 0 && f.rank() == RankPublicNew {
		until = min(until, now.Add(keepUnread))
	}
	forgotten := newFeed(f.id)
	forgotten.n, forgotten.last, forgotten.hold, forgotten.earliest, forgotten.refused = f.n, f.last, f.hold, f.earliest, f.refused
	forgotten.owner, forgotten.askers, forgotten.seen, forgotten.asked = f.owner, f.askers, f.seen, f.asked
	forgotten.until, forgotten.changed = max(f.until, until, now.Add(keepForgotten)), now
	forgotten.save(tx, nil, []byte{}, []byte{})
	tx.Exec(moveFeed, f.n)
	tx.Changed(Change{ID: f.id, Forgotten: true})
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
				if f := feeds[c.id]; f != nil && f.known && f.wanted() <= c.wanted && do(tx, f) {
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

// Sweep implements [Store].
func (d *Database) Sweep(ctx context.Context, q SweepQuery) ([]ID, error) {
	defer d.took("sweep", time.Now())
	if err := d.tidy(ctx); err != nil {
		return nil, err
	}
	unwanted, changed, err := d.expired(ctx, q)
	if err != nil {
		return nil, err
	}
	for ids := range slices.Chunk(changed, atOnce) {
		err := d.driver.Write(ctx, Work{Late: true, Do: func(tx Tx) error { return touch(tx, ids, nil) }})
		if err != nil {
			return nil, err
		}
	}
	return d.remove(ctx, unwanted)
}

// expired finds what a sweep has to remove, and feeds that are established no more.
func (d *Database) expired(ctx context.Context, q SweepQuery) (gone []candidate, changed []ID, err error) {
	for last := int64(0); ; {
		page, err := read(ctx, d, func(tx Tx) (page sweepPage, err error) {
			page.now = tx.Now()
			err = tx.Query(selectFeed+` from feed f where n > ?1 and url is not null order by n limit 1000`, one(last), func(_ int, row Row) error {
				f, err := scanFeed(row)
				page.feeds = append(page.feeds, f)
				return err
			})
			return page, err
		})
		if err != nil || len(page.feeds) == 0 {
			return gone, changed, err
		}
		last = page.feeds[len(page.feeds)-1].n
		for _, f := range page.feeds {
			before, owner := f.rank(), f.owner
			f.mend(page.now)
			lapsed := f.lapse(page.now)
			f.classify(page.now)
			kept := q.Idle
			if f.version == 0 && !f.established && (f.next <= page.now || f.earliest > page.now || f.next == End) {
				kept = q.Unread
			} else if f.version == 0 && f.rank() != RankOperator {
				kept = min(kept, keepFailing)
			}
			if q.Shielded > 0 && !strings.HasPrefix(f.url, "http") {
				kept = min(kept, q.Shielded)
			}
			switch {
			case f.damaged: // it starts afresh when it is asked for
			case kept > 0 && page.now.Sub(f.wanted()) >= kept && !f.configured:
				gone = append(gone, candidate{f.id, f.wanted()})
			case f.rank() != before || f.owner != owner, f.mended, lapsed:
				changed = append(changed, f.id)
			}
		}
	}
}

// sweepPage is some feeds that a sweep looks at.
type sweepPage struct {
	now   Time
	feeds []feedRow
}

// tidy removes rows that are not needed any more.
func (d *Database) tidy(ctx context.Context) error {
	err := d.driver.Write(ctx, Work{Late: true, Do: func(tx Tx) error {
		now := tx.Now()
		day := now.Add(maxSitePause)
		tx.Exec(`delete from feed where n in (select n from feed where url is null and until < ?1 for update skip locked)`, int64(now))
		tx.Exec(`delete from pause where scope in (select scope from pause where until < ?1 or until > ?2 for update skip locked)`,
			int64(now.Add(-keepPause)), int64(now.Add(maxPause+odd)))
		tx.Exec(`update pause set until = ?1 where scope in (select scope from pause where until > ?1 for update skip locked)`, int64(day)) // of the edition before
		tx.Exec(`delete from host where name in (select name from host where ready is null and coalesce(free, 0) < ?1 for update skip locked)`, int64(now.Add(-keepHost)))
		return deletePending(tx, atOnce)
	}})
	if err != nil {
		return err
	}
	return d.driver.Tidy(ctx)
}
