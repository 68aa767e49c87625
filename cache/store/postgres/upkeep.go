// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/feedpollard/pollard/cache/store"
)

// keepChanges is how long the log of changes reaches back. A node that could not read it for
// longer looks at all feeds anew.
const keepChanges = 15 * time.Minute

// Touch notes how long ago readers asked for feeds.
func (s *Store) Touch(ctx context.Context, asked map[store.ID]store.Asked) error {
	for part := range slices.Chunk(slices.Collect(maps.Keys(asked)), batch) {
		agos := make([]pgtype.Interval, len(part))
		for i, id := range part {
			agos[i] = interval(max(asked[id].Ago, 0))
		}
		if err := s.exec(ctx, `select pollard.touch($1, $2)`, uuids(part), agos); err != nil {
			return err
		}
	}
	return nil
}

// Forget removes a feed.
func (s *Store) Forget(ctx context.Context, id store.ID) error {
	var known bool
	err := s.row(ctx, []any{&known}, `select pollard.forget($1)`, uuid(id))
	if err == nil && !known {
		err = store.ErrNoRecord
	}
	return err
}

// Trim drops bodies that do not fit into a budget.
func (s *Store) Trim(ctx context.Context, budget int64) (trimmed []store.ID, err error) {
	for {
		ids, err := s.ids(ctx, `select pollard.trim($1, $2)`, budget, batch)
		trimmed = append(trimmed, ids...)
		if err != nil || len(ids) < batch {
			return trimmed, err
		}
	}
}

// upkeep prunes the log of changes and other tables.
func (s *Store) upkeep(ctx context.Context) error {
	const limit = 10_000
	for more := true; more; {
		if err := s.row(ctx, []any{&more}, `select pollard.upkeep($1, $2)`, interval(keepChanges), limit); err != nil {
			return err
		}
	}
	return nil
}
