// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"database/sql"
	"maps"
	"slices"
	"time"
)

// Lookup implements [Store].
func (d *Database) Lookup(ctx context.Context, ids []ID) ([]Record, error) {
	defer d.took("lookup", time.Now())
	records, _, err := d.records(ctx, feedWithURL, each(ids, idArgument))
	return records, err
}

// Records implements [Store].
func (d *Database) Records(ctx context.Context, after ID, limit int, forgotten bool) ([]Record, error) {
	if forgotten {
		return d.page(ctx, forgottenAfter, after, limit)
	}
	return d.page(ctx, feedsAfter, after, limit)
}

// page reads up to limit records that are not damaged.
func (d *Database) page(ctx context.Context, sql string, after ID, limit int) (all []Record, err error) {
	for skip, left := 0, limit; left > 0; left = limit - len(all) {
		records, rows, err := d.records(ctx, sql, one(after[:], left, skip))
		if all = append(all, records...); err != nil || rows < left {
			return all, err
		}
		skip += rows
	}
	return all, nil
}

// records reads the records of rows that are not damaged, and returns how many rows there are.
func (d *Database) records(ctx context.Context, sql string, lists [][]any) ([]Record, int, error) {
	type found struct {
		records []Record
		rows    int
	}
	got, err := read(ctx, d, func(tx Tx) (got found, err error) {
		var feeds []feedRow
		err = tx.Query(sql, lists, func(_ int, row Row) error {
			f, err := scanFeed(row)
			feeds = append(feeds, f)
			return err
		})
		now := tx.Now()
		got.rows = len(feeds)
		for i := range feeds {
			if !feeds[i].damaged(now) {
				got.records = append(got.records, feeds[i].record(now))
			}
		}
		return got, err
	})
	return got.records, got.rows, err
}

// Pauses implements [Store].
func (d *Database) Pauses(ctx context.Context) ([]Pause, error) {
	return read(ctx, d, func(tx Tx) (pauses []Pause, err error) {
		now := tx.Now()
		err = tx.Query(`select scope, until, why, step, url from pause where until > ?1 and (scope like 'site %' or scope like 'new %') order by scope`, one(int64(now)),
			func(_ int, row Row) error {
				var scope, why string
				var until, step int64
				var url sql.NullString
				err := row.Scan(&scope, &until, &why, &step, &url)
				p := pauseRow{scope: scope, until: Time(until), why: why, step: int(step), url: url.String}
				if p.holds(now) {
					pauses = append(pauses, p.pause(now))
				}
				return err
			})
		return pauses, err
	})
}

// Counters implements [Store].
func (d *Database) Counters(ctx context.Context) (map[string][]byte, error) {
	return read(ctx, d, func(tx Tx) (map[string][]byte, error) {
		counters := make(map[string][]byte)
		err := tx.Query(`select node, data from counters`, one(), func(_ int, row Row) error {
			var node string
			var data []byte
			err := row.Scan(&node, &data)
			counters[node] = data
			return err
		})
		return counters, err
	})
}

// Totals implements [Store]. It counts, which takes a hundredth of the time at most: a
// million feeds are counted every few minutes, ten thousand every few seconds, and a thousand
// each time.
func (d *Database) Totals(ctx context.Context) (Totals, error) {
	const (
		share = 100
		few   = 1_000
	)
	d.counting.Lock()
	defer d.counting.Unlock()
	began := time.Now()
	if began.Before(d.countAfter) && ctx.Err() == nil {
		return d.totals.clone(), nil
	}
	t, err := read(ctx, d, func(tx Tx) (Totals, error) {
		t := Totals{Feeds: make(map[State]int64)}
		err := tx.Query(countFeeds, one(int64(tx.Now()), int64(KindOperator)<<kindShift), t.add)
		if err == nil {
			t.Used, err = d.driver.Used(tx)
			t.Short, t.Crowded = d.driver.Left() != Unlimited, d.crowded.Load()
		}
		return t, err
	})
	if err != nil {
		return Totals{}, err
	}
	t.Sites = d.totals.Sites
	d.totals, d.countAfter = t, began
	var feeds int64
	for _, n := range t.Feeds {
		feeds += n
	}
	if feeds > few {
		d.countAfter = began.Add(share * time.Since(began))
	}
	return t.clone(), nil
}

const countFeeds = `select state, count(*), sum(case when version = 0 and coalesce(configured_until, 0) <= ?1 then 1 else 0 end),
	cast(sum(size) as bigint), cast(sum(case when owner >= ?2 then size else 0 end) as bigint),
	sum(case when next <= ?1 then 1 else 0 end) from feed where url is not null group by state`

func (t *Totals) add(_ int, row Row) error {
	var state string
	var feeds, unread, size, operator, overdue int64
	err := row.Scan(&state, &feeds, &unread, &size, &operator, &overdue)
	t.Feeds[State(state)] = feeds
	switch State(state) {
	case StateCold:
		t.Unread += unread
	case StateFresh:
		t.Due += overdue
	}
	t.Bytes += size
	t.Operator += operator
	t.Overdue += overdue
	return err
}

func (t Totals) clone() Totals {
	t.Feeds, t.Sites = maps.Clone(t.Feeds), slices.Clone(t.Sites)
	return t
}

// refusalsCount is for how long refusals count, and refusalsApart how far apart two are at least: those that come together are
// of polls that were in flight together.
const (
	refusalsCount = 24 * time.Hour
	refusalsApart = 10 * time.Minute
)

// countSites counts the feeds of sites, which takes several times as long as to count feeds.
func (d *Database) countSites(ctx context.Context) error {
	sites, err := read(ctx, d, sitesOf)
	if err == nil {
		d.counting.Lock()
		defer d.counting.Unlock()
		d.totals.Sites = sites
	}
	return err
}

// sitesOf returns the sites with the most feeds, and those that refuse polls again and again while they answer others.
func sitesOf(tx Tx) (all []SiteTotals, err error) {
	err = tx.Query(sitesToShow, one(int64(tx.Now().Add(-refusalsCount)), int64(refusalsApart)), func(_ int, row Row) error {
		var s SiteTotals
		var refusals, refuses int64
		err := row.Scan(&s.Site, &s.Feeds, &refusals, &refuses)
		s.Refuses = refuses > 0
		all = append(all, s)
		return err
	})
	return all, err
}

// sitesToShow groups all feeds once, which is what takes the time.
const sitesToShow = `with s as materialized (select site, count(*) as feeds, count(case when refused >= ?1 then 1 end) as refusals,
		min(case when refused >= ?1 then refused end) as first, max(refused) as last
		from feed where url is not null and site > '' and site not like 'feed %' group by site),
	r as (select site, feeds, refusals,
		case when refusals > 1 and last - first >= ?2 and (select good from host where name = s.site) > ?1 then 1 else 0 end as refuses from s)
	select * from (select * from r order by feeds desc, site limit 20) largest
	union select * from (select * from r where refuses = 1 order by refusals desc, site limit 20) refusing
	order by feeds desc, site`
