// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/zap"

	"github.com/feedpollard/pollard/cache/store/postgres/postgrestest"
)

// A node whose machine has slept has missed changes: what was forgotten meanwhile has no row any more.
func TestWatchAfterSleep(t *testing.T) {
	t.Parallel()
	url := postgrestest.Start(t).Database(t)
	s, err := Open(t.Context(), Options{URL: url}) // makes the tables
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	cfg, err := configure(url)
	if err != nil {
		t.Fatal(err)
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	boot := time.Hour
	d := &database{pool: pool, log: zap.NewNop(), clock: &databaseClock{sinceBoot: func() time.Duration { return boot }}, closed: t.Context()}
	w := &watcher{d: d}
	for _, step := range []struct {
		sleep time.Duration
		lost  bool
	}{{0, true}, {time.Second, false}, {time.Hour, true}} {
		boot += step.sleep
		changes, err := w.look(t.Context())
		if err != nil || (len(changes) > 0 && changes[0].Lost) != step.lost {
			t.Errorf("after %v: changes %+v, %v, want a loss: %v", step.sleep, changes, err, step.lost)
		}
	}
}
