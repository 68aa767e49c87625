// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"
)

// Sweep implements [Store].
func (d *Database) Sweep(ctx context.Context, q SweepQuery) ([]ID, error) {
	defer d.took("sweep", time.Now())
	if q.Disk > 0 { // it is called for each 64 MiB of new versions: no walk of all feeds
		return d.trim(ctx, q.Disk)
	}
	if err := d.tidy(ctx); err != nil {
		return nil, err
	}
	found, err := d.unwanted(ctx, q)
	if err != nil {
		return nil, err
	}
	for ids := range slices.Chunk(found.changed, atOnce) {
		err := d.driver.Write(ctx, Work{Late: true, Do: func(tx Tx) error { return reclassify(tx, ids) }})
		if err != nil {
			return nil, err
		}
	}
	gone, err := d.forSome(ctx, found.gone, func(tx Tx, f *feedRow) bool {
		if f.configured(tx.Now()) { // since
			return false
		}
		f.remove(tx)
		return true
	})
	if err != nil {
		return gone, err
	}
	return gone, d.countSites(ctx)
}

// reclassify decides again for whom feeds count. Those that are damaged start afresh.
func reclassify(tx Tx, ids []ID) error {
	feeds, err := lockFeeds(tx, ids)
	now := tx.Now()
	for _, f := range feeds {
		if f.hasURL {
			f.pickOwner(now)
			f.save(tx, nil, nil)
		}
	}
	return err
}

// swept is what a sweep finds.
type swept struct {
	gone    []candidate
	changed []ID                  // feeds that count for another owner now, or are damaged
	once    map[Owner][]candidate // of shields, that were not asked for again
}

// unwanted finds what a sweep has to do.
func (d *Database) unwanted(ctx context.Context, q SweepQuery) (*swept, error) {
	type page struct {
		now   Time
		feeds []feedRow
	}
	found := &swept{once: make(map[Owner][]candidate)}
	for last := int64(0); ; {
		p, err := read(ctx, d, func(tx Tx) (p page, err error) {
			p.now = tx.Now()
			err = tx.Query(selectFeed+` from feed f where n > ?1 and url is not null order by n limit 1000`, one(last), func(_ int, row Row) error {
				f, err := scanFeed(row)
				p.feeds = append(p.feeds, f)
				return err
			})
			return p, err
		})
		if err != nil {
			return nil, err
		}
		if len(p.feeds) == 0 {
			break
		}
		last = p.feeds[len(p.feeds)-1].n
		for i := range p.feeds {
			found.look(p.now, &p.feeds[i], q)
		}
	}
	for _, keys := range found.once {
		if q.ShieldKeys > 0 && len(keys) > q.ShieldKeys {
			slices.SortFunc(keys, func(a, b candidate) int { return cmp.Compare(a.used, b.used) })
			found.gone = append(found.gone, keys[:len(keys)-q.ShieldKeys]...)
		}
	}
	return found, nil
}

// again is how long after a feed was first asked for a reader counts as one that asks again.
const again = time.Hour

// look decides what a sweep does with a feed.
func (s *swept) look(now Time, f *feedRow, q SweepQuery) {
	if f.damaged(now) {
		s.changed = append(s.changed, f.id)
		return
	}
	owner := f.owner
	if f.pickOwner(now); f.owner != owner {
		s.changed = append(s.changed, f.id)
	}
	c := candidate{f.id, f.used()}
	switch {
	case f.configured(now):
	case f.expired(now, q):
		s.gone = append(s.gone, c)
	case f.owner.Kind() == KindShield && (f.first == Never || f.asked.Sub(f.first) < again):
		s.once[f.owner] = append(s.once[f.owner], c)
	}
}

// expired reports whether no reader has asked for the feed for as long as such a feed is kept.
func (f *feedRow) expired(now Time, q SweepQuery) bool {
	kept := Ended
	limit := func(holds bool, d time.Duration) {
		if holds && d > 0 {
			kept = min(kept, d)
		}
	}
	limit(true, q.Idle)
	limit(f.version == 0, q.Unread)
	limit(!strings.HasPrefix(f.url, "http"), q.Shielded)
	return kept != Ended && now.Sub(f.used()) >= kept
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
		tx.Exec(`delete from host where name in (select name from host where coalesce(free, 0) < ?1 for update skip locked)`, int64(now.Add(-keepSite)))
		return deletePending(tx, atOnce)
	}})
	if err != nil {
		return err
	}
	return d.driver.Tidy(ctx)
}
