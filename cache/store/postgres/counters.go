// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/feedpollard/pollard/cache/store"
)

// SaveCounters implements [store.Store].
func (s *Store) SaveCounters(ctx context.Context, node string, data []byte) error {
	switch {
	case len(data) > store.MaxCounters:
		return store.ErrCountersTooLarge
	case len(data) == 0:
		return s.exec(ctx, `delete from pollard.counters where node = $1`, node)
	}
	return s.exec(ctx, `insert into pollard.counters (node, data) values ($1, $2)
		on conflict (node) do update set data = excluded.data`, node, data)
}

// Counters implements [store.Store].
func (s *Store) Counters(ctx context.Context) (map[string][]byte, error) {
	counters := make(map[string][]byte)
	err := s.call(ctx, func(ctx context.Context) error {
		rows, err := s.pool.Query(ctx, `select node, data from pollard.counters`)
		if err != nil {
			return err
		}
		var (
			node string
			data []byte
		)
		_, err = pgx.ForEachRow(rows, []any{&node, &data}, func() error {
			counters[node], data = data, nil
			return nil
		})
		return err
	})
	if err != nil {
		return nil, err
	}
	return counters, nil
}
