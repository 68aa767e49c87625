// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

// Package postgres keeps feeds in a PostgreSQL database, which several nodes share: a
// feed that one node claims, the others see as polled. It is the [store.Driver] of
// such a database: the tables and the rules are those of package store.
//
// Each claim and each commit has a transaction of its own. One connection is left for readers.
//
// A claim is on disk before it is answered, and it is still there after the server has
// crashed. It may be gone after a standby that lagged behind has been promoted: then a feed
// may be polled once more.
package postgres

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/zap"
	"golang.org/x/sync/semaphore"

	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/internal/clock"
)

// callTimeout bounds each call, in the process and in the server.
const callTimeout = 5 * time.Second

// Options are the settings of a store.
type Options struct {
	// URL is the database's: postgres://user:password@host:port/database?sslmode=verify-full.
	// Several hosts may be named, of which the primary is used.
	URL string
	Log *zap.Logger // nil: nothing is logged
}

// database implements [store.Driver].
type database struct {
	pool    *pgxpool.Pool
	place   string // host:port/database, for people
	log     *zap.Logger
	clock   *databaseClock
	most    int64               // transactions that write at the same time
	writers *semaphore.Weighted // of that many
	closed  context.Context     // ends with Close
	close   context.CancelFunc
	ticking sync.WaitGroup
}

// Open connects to a database and makes its tables, in the schema "pollard", if it has
// none.
func Open(ctx context.Context, o Options) (*store.Database, error) {
	cfg, err := configure(o.URL)
	if err != nil {
		return nil, err
	}
	if o.Log == nil {
		o.Log = zap.NewNop()
	}
	pool, err := pgxpool.NewWithConfig(context.Background(), cfg)
	if err != nil {
		return nil, fmt.Errorf("store postgres: %w", err)
	}
	most := int64(max(1, cfg.MaxConns-1))
	d := &database{
		pool: pool, place: place(cfg.ConnConfig), log: o.Log, clock: &databaseClock{sinceBoot: func() time.Duration { return clock.System().Since }},
		most: most, writers: semaphore.NewWeighted(most),
	}
	d.closed, d.close = context.WithCancel(context.Background())
	if err := d.prepare(ctx); err != nil {
		d.Close()
		return nil, err
	}
	d.ticking.Go(d.tick)
	return store.NewDatabase(d), nil
}

func (d *database) prepare(ctx context.Context) error {
	c, err := d.pool.Acquire(ctx)
	if err != nil {
		return d.explain(ctx, err)
	}
	defer c.Release()
	conn := c.Conn()
	if err := d.bringUp(ctx, conn); err != nil {
		return d.explain(ctx, err)
	}
	warnings, err := inspect(ctx, conn)
	if err != nil {
		return d.explain(ctx, err)
	}
	for _, w := range warnings {
		d.log.Warn(w, zap.String("store", d.place))
	}
	return d.explain(ctx, d.resumeClock(ctx, conn))
}

// Place returns the address and name of the database of a URL, without credentials.
func Place(url string) (string, error) {
	cfg, err := configure(url)
	if err != nil {
		return "", err
	}
	return place(cfg.ConnConfig), nil
}

// Close implements [store.Driver]. It ends all calls of Watch, and waits for the others.
func (d *database) Close() error {
	d.close()
	d.ticking.Wait()
	if err := d.writers.Acquire(context.Background(), d.most); err == nil { // all have ended
		d.writers.Release(d.most)
	}
	d.pool.Close()
	return nil
}

func (d *database) errClosed() error {
	return fmt.Errorf("store postgres %s: %w", d.place, os.ErrClosed)
}

// Used implements [store.Driver]. The server does not say how much space
// deleted rows have left.
func (d *database) Used(tx store.Tx) (used int64, err error) {
	err = tx.Query(`select cast(coalesce(sum(coalesce(taken, size + 4096)), 0) as bigint) from feed`, [][]any{nil}, func(_ int, row store.Row) error {
		return row.Scan(&used)
	})
	return used, err
}

// Left implements [store.Driver]. The server does not say how full its disk is.
func (d *database) Left() int64 { return store.Unlimited }

// Tidy implements [store.Driver]. The server does so by itself.
func (d *database) Tidy(context.Context) error { return nil }

// IsDamage implements [store.Driver].
func (d *database) IsDamage(err error) bool { return isDamage(err) }
