// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

// Package postgres keeps feeds in a PostgreSQL database, for several nodes that share
// one schedule: whichever node claims a feed, the others see it as polled.
//
// Each call is one statement, mostly of a function that the migrations define, so
// that a claim, a commit or a pause is atomic without a transaction that waits for
// this process. The database's clock is the only one; only durations cross the
// connection.
//
// A claim is on disk before it is answered, and it is still there after the server has
// crashed. It may be gone after a standby that lagged behind has been promoted.
// Therefore the tables keep the moment since when this server grants claims: a feed
// that was due at that moment may have been polled by a claim that is lost, so it is
// presumed polled and waits for one interval more.
package postgres

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/zap"
	"golang.org/x/sync/semaphore"

	"github.com/feedpollard/pollard/cache/store"
)

const (
	// callTimeout bounds each call, in the process and in the server.
	callTimeout = 5 * time.Second

	// batch is how many feeds one statement takes at most.
	batch = 512
)

// Options are the settings of a [Store].
type Options struct {
	// URL is the database's: postgres://user:password@host:port/database?sslmode=verify-full.
	// Several hosts may be named, of which the primary is used.
	URL string
	Log *zap.Logger // nil: nothing is logged

	// Used returns what Use has kept for a place, empty if nothing. Use keeps the
	// database that was found at a place, on this node. With them, a store that is empty because
	// it is new is told from one that has been lost and made anew; in the latter no
	// feed is polled before its first interval has passed. Nil: an empty store is new.
	Used func(place string) (database string)
	Use  func(place, database string) error
}

// Store is a [cache.Store] in a PostgreSQL database.
type Store struct {
	pool   *pgxpool.Pool
	polls  *semaphore.Weighted // for what polls ask: connections, but for one that is left to readers
	place  string              // host:port/database, for people
	log    *zap.Logger
	closed context.Context // ends with Close
	close  context.CancelFunc

	overdue atomic.Pointer[overdueCount] // the last count
}

var _ store.Store = (*Store)(nil)

// Open connects to a database and brings its tables up to date, if there are any;
// otherwise it makes them, in the schema "pollard".
func Open(ctx context.Context, o Options) (*Store, error) {
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
	polls := semaphore.NewWeighted(int64(max(1, cfg.MaxConns-1)))
	s := &Store{pool: pool, polls: polls, place: place(cfg.ConnConfig), log: o.Log}
	s.closed, s.close = context.WithCancel(context.Background())
	if err := s.prepare(ctx, o); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func (s *Store) prepare(ctx context.Context, o Options) error {
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return s.explain(ctx, err)
	}
	defer conn.Release()
	if err := migrate(ctx, conn.Conn(), migrations); err != nil {
		return s.explain(ctx, err)
	}
	warnings, err := inspect(ctx, conn.Conn())
	if err != nil {
		return s.explain(ctx, err)
	}
	for _, w := range warnings {
		s.log.Warn(w, zap.String("store", s.place))
	}
	return s.recognize(ctx, conn.Conn(), o)
}

// recognize tells a new database from one that replaces another which was lost.
func (s *Store) recognize(ctx context.Context, conn *pgx.Conn, o Options) error {
	if o.Used == nil || o.Use == nil {
		return nil
	}
	var (
		database string
		fresh    bool // nobody has presumed anything to be lost yet
	)
	err := conn.QueryRow(ctx, `select store::text, since = '-infinity' from pollard.epoch`).Scan(&database, &fresh)
	if err != nil {
		return s.explain(ctx, err)
	}
	used := o.Used(s.place)
	if used == database {
		return nil
	}
	if used != "" && fresh {
		s.log.Warn("the database is not the one that was used here before: no feed is polled before its first interval has passed",
			zap.String("store", s.place))
		if _, err := conn.Exec(ctx, `select pollard.presume_lost()`); err != nil {
			return s.explain(ctx, err)
		}
	}
	return o.Use(s.place, database)
}

// Close ends all calls of Watch and waits for the others.
func (s *Store) Close() error {
	s.close()
	s.pool.Close()
	return nil
}

// Place returns where the database of a URL is, without credentials, and asks nobody.
func Place(url string) (string, error) {
	cfg, err := configure(url)
	if err != nil {
		return "", err
	}
	return place(cfg.ConnConfig), nil
}

// call runs one statement within callTimeout, and again if the server has undone it
// because others were in its way.
func (s *Store) call(ctx context.Context, f func(context.Context) error) error {
	if err := s.closed.Err(); err != nil {
		return fmt.Errorf("store postgres %s: %w", s.place, os.ErrClosed)
	}
	bounded, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	err := f(bounded)
	for range 5 {
		if code := sqlState(err); code != codeDeadlock && code != codeSerialization {
			break
		}
		err = f(bounded)
	}
	return s.explain(ctx, err)
}

// forPoll waits for a connection that polls may use. Readers wait for records and bodies, and
// what other nodes have published is read: neither waits behind all polls in flight, which
// are many more than connections.
func (s *Store) forPoll(ctx context.Context) (leave func(), err error) {
	bounded, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if err := s.polls.Acquire(bounded, 1); err != nil {
		return nil, s.explain(ctx, err)
	}
	return func() { s.polls.Release(1) }, nil
}

// exec runs a statement that returns nothing.
func (s *Store) exec(ctx context.Context, sql string, args ...any) error {
	return s.call(ctx, func(ctx context.Context) error {
		_, err := s.pool.Exec(ctx, sql, args...)
		return err
	})
}

// row runs a statement that returns one row.
func (s *Store) row(ctx context.Context, into []any, sql string, args ...any) error {
	return s.call(ctx, func(ctx context.Context) error {
		return s.pool.QueryRow(ctx, sql, args...).Scan(into...)
	})
}

// ids runs a statement that returns IDs of feeds.
func (s *Store) ids(ctx context.Context, sql string, args ...any) (ids []store.ID, err error) {
	err = s.call(ctx, func(ctx context.Context) error {
		rows, err := s.pool.Query(ctx, sql, args...)
		if err != nil {
			return err
		}
		ids, err = pgx.CollectRows(rows, pgx.RowTo[store.ID])
		return err
	})
	return ids, err
}

// sqlState returns the server's code of an error.
func sqlState(err error) string {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.Code
	}
	return ""
}
