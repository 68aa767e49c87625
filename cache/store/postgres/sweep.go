// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"math"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/feedpollard/pollard/cache/store"
)

// Conditions of feeds that a sweep removes, besides that nobody has wanted them for some
// time.
const (
	hasVersion = `version <> 0`
	isUnread   = `version = 0 and not configured`
	// Until then its failures have to be remembered, for the back-off.
	isOverdue = `version = 0 and next + hold < clock_timestamp()`
)

// Sweep removes records that nobody wants, and what the store itself does not need
// any more.
func (s *Store) Sweep(ctx context.Context, q store.SweepQuery) (swept []store.ID, err error) {
	if err := s.upkeep(ctx); err != nil {
		return nil, err
	}
	sweep := func(condition string, quiet time.Duration, limit int) error {
		ids, err := s.sweep(ctx, condition, quiet, q.Keep, limit)
		swept = append(swept, ids...)
		return err
	}
	if q.Idle > 0 {
		if err := sweep(hasVersion, q.Idle, math.MaxInt); err != nil {
			return swept, err
		}
	}
	if q.Unread > 0 {
		if err := sweep(isOverdue, q.Unread, math.MaxInt); err != nil {
			return swept, err
		}
	}
	if q.MaxUnread > 0 {
		t, err := s.totals(ctx)
		if err != nil {
			return swept, err
		}
		if err := sweep(isUnread, 0, int(t.Unread)-q.MaxUnread); err != nil {
			return swept, err
		}
	}
	return swept, nil
}

// sweep removes up to limit feeds that meet a condition and that nobody has wanted for
// so long: first those that were wanted the longest ago.
func (s *Store) sweep(ctx context.Context, condition string, quiet time.Duration, keep func(store.ID) bool, limit int) (swept []store.ID, err error) {
	var (
		last   = pgtype.Timestamptz{InfinityModifier: pgtype.NegativeInfinity, Valid: true}
		lastID pgtype.UUID
	)
	lastID.Valid = true
	for limit > 0 {
		var (
			ids    []pgtype.UUID
			wanted []pgtype.Timestamptz
			found  int
		)
		err := s.call(ctx, func(ctx context.Context) error {
			ids, wanted, found = nil, nil, 0
			id, at := lastID, last
			rows, err := s.pool.Query(ctx, `select id, wanted from pollard.feeds
				where (wanted, id) > ($1, $2) and wanted <= clock_timestamp() - $3::interval and `+condition+`
				order by wanted, id limit $4`, at, id, interval(quiet), batch)
			if err != nil {
				return err
			}
			_, err = pgx.ForEachRow(rows, []any{&id, &at}, func() error {
				if found++; len(ids) < limit && (keep == nil || !keep(id.Bytes)) {
					ids, wanted = append(ids, id), append(wanted, at)
				}
				return nil
			})
			if err == nil {
				lastID, last = id, at
			}
			return err
		})
		if err != nil {
			return swept, err
		}
		if len(ids) > 0 {
			gone, err := s.ids(ctx, `select pollard.sweep($1, $2)`, ids, wanted)
			if err != nil {
				return swept, err
			}
			swept = append(swept, gone...)
			limit -= len(gone)
		}
		if found < batch {
			break
		}
	}
	return swept, nil
}
