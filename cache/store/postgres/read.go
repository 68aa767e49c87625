// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/feedpollard/pollard/cache/store"
)

// Lookup reads the records of feeds.
func (s *Store) Lookup(ctx context.Context, ids []store.ID) ([]store.Record, error) {
	var records []store.Record
	for part := range slices.Chunk(ids, batch) {
		rows, err := s.query(ctx, `select `+leaseColumns+` from pollard.feeds f,
			pollard.leased(f, clock_timestamp(), 0, '', '0', '', $1) l where f.id = any($2)`, uuids(part))
		if err != nil {
			return nil, err
		}
		for _, r := range rows {
			records = append(records, r.record())
		}
	}
	return records, nil
}

// Records reads records in the order of their IDs.
func (s *Store) Records(ctx context.Context, after store.ID, limit int) ([]store.Record, error) {
	rows, err := s.query(ctx, `select `+leaseColumns+` from
		(select x from pollard.feeds x where x.id > $2 order by x.id limit $3) as page (f),
		pollard.leased(page.f, clock_timestamp(), 0, '', '0', '', $1) l order by l.id`, uuid(after), limit)
	if err != nil {
		return nil, err
	}
	records := make([]store.Record, len(rows))
	for i, r := range rows {
		records[i] = r.record()
	}
	return records, nil
}

// Pauses returns the pauses that are in force.
func (s *Store) Pauses(ctx context.Context) (pauses []store.Pause, err error) {
	err = s.call(ctx, func(ctx context.Context) error {
		rows, err := s.pool.Query(ctx, `select scope, until - now, why, step from pollard.pauses,
			clock_timestamp() as now where until > now order by scope`)
		if err != nil {
			return err
		}
		pauses, err = pgx.CollectRows(rows, scanPause)
		return err
	})
	return pauses, err
}

func scanPause(r pgx.CollectableRow) (p store.Pause, err error) {
	var left pgtype.Interval
	err = r.Scan(&p.Scope, &left, &p.Why, &p.Step)
	p.For = duration(left)
	return p, err
}

// overdueCount is how many feeds were due at some time.
type overdueCount struct {
	n     int64
	until time.Time // when it may be counted again
}

// Totals returns figures of the store. Only what is due must be counted, as time passes
// without a statement. That takes a hundredth of the time: a million feeds are counted
// twice a minute, and thousands whenever somebody asks.
func (s *Store) Totals(ctx context.Context) (store.Totals, error) {
	const share, longest = 100, 30 * time.Second
	t, err := s.totals(ctx)
	if err != nil {
		return store.Totals{}, err
	}
	began := time.Now()
	if last := s.overdue.Load(); last != nil && began.Before(last.until) {
		t.Overdue = last.n
		return t, nil
	}
	counted := new(overdueCount)
	if err := s.row(ctx, []any{&counted.n}, `select count(*) from pollard.feeds where next < clock_timestamp()`); err != nil {
		return store.Totals{}, err
	}
	took := time.Since(began)
	counted.until = began.Add(min(share*took, longest))
	s.overdue.Store(counted)
	t.Overdue = counted.n
	return t, nil
}

// totals reads what the store keeps up to date.
func (s *Store) totals(ctx context.Context) (store.Totals, error) {
	const many = 1_000
	var (
		t        store.Totals
		appended int64 // rows since they were summed up
	)
	err := s.call(ctx, func(ctx context.Context) error {
		t, appended = store.Totals{Feeds: map[store.State]int64{}}, 0
		rows, err := s.pool.Query(ctx, `select state, sum(feeds)::bigint, sum(unread)::bigint, sum(bytes)::bigint, count(*)
			from pollard.totals group by state`)
		if err != nil {
			return err
		}
		var (
			state                       string
			feeds, unread, bytes, count int64
		)
		_, err = pgx.ForEachRow(rows, []any{&state, &feeds, &unread, &bytes, &count}, func() error {
			if feeds != 0 {
				t.Feeds[store.State(state)] = feeds
			}
			t.Unread += unread
			t.Bytes += bytes
			appended += count
			return nil
		})
		return err
	})
	if err == nil && appended > many {
		err = s.upkeep(ctx)
	}
	return t, err
}
