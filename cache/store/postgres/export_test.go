// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/zap"

	"github.com/feedpollard/pollard/cache/store"
)

// SumOfServer is for tests that change the time.
var SumOfServer = sumOfServer

// LookBack is how long a transaction may take for its changes to be seen.
const LookBack = lookBack

// Looker returns how a node looks for changes, whose machine runs for as long as sinceBoot says.
func Looker(ctx context.Context, url string, sinceBoot func() time.Duration) (look func(context.Context) ([]store.Change, error), closed func(), err error) {
	cfg, err := configure(url)
	if err != nil {
		return nil, nil, err
	}
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, nil, err
	}
	w := &watcher{d: &database{pool: pool, log: zap.NewNop(), clock: &databaseClock{sinceBoot: sinceBoot}, closed: ctx}}
	return w.look, pool.Close, nil
}
