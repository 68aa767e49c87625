// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/feedpollard/pollard/cache/store"
)

// attempts is how often a transaction begins that the server undoes.
const attempts = 6

// Write implements [store.Driver]. A caller that gives up leaves its work: a claim that is
// not used is a pause and no more.
func (d *database) Write(ctx context.Context, work store.Work) error {
	waiting, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if err := d.writers.Acquire(waiting, 1); err != nil {
		return d.explain(ctx, err)
	}
	if err := d.ended(ctx); err != nil {
		d.writers.Release(1)
		return err
	}
	done := make(chan error, 1)
	go func() {
		defer d.writers.Release(1)
		done <- d.attempt(context.Background(), func(tx *transaction) error { return tx.run(work) })
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return d.explain(ctx, ctx.Err())
	}
}

// ended returns an error if the store is closed or ctx has ended.
func (d *database) ended(ctx context.Context) error {
	if d.closed.Err() != nil {
		return d.errClosed()
	}
	return d.explain(ctx, ctx.Err())
}

// Read implements [store.Driver].
func (d *database) Read(ctx context.Context, do func(store.Tx) error) error {
	if err := d.ended(ctx); err != nil {
		return err
	}
	return d.attempt(ctx, func(tx *transaction) error {
		if err := do(tx); err != nil {
			return err
		}
		return tx.err
	})
}

// attempt runs do, and again if it failed for reasons that pass.
func (d *database) attempt(ctx context.Context, do func(*transaction) error) error {
	return d.withConn(ctx, func(ctx context.Context, conn *pgx.Conn) (err error) {
		for range attempts {
			tx := &transaction{d: d, conn: conn, ctx: ctx}
			if err = do(tx); err == nil {
				return nil
			}
			var failed error
			if !conn.IsClosed() && conn.PgConn().TxStatus() != 'I' {
				_, failed = conn.Exec(ctx, `rollback`)
			}
			switch code := sqlState(err); {
			case failed != nil:
			case code == codeDeadlock, code == codeSerialization:
			case isDamage(err):
				failed = tx.repair()
			case errors.Is(err, errTime):
				failed = d.mendTime(ctx, conn)
			default:
				return err
			}
			if failed != nil {
				return err
			}
		}
		return err
	})
}

// withConn runs f with a connection, within callTimeout.
func (d *database) withConn(ctx context.Context, f func(context.Context, *pgx.Conn) error) error {
	bounded, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	c, err := d.pool.Acquire(bounded)
	if err != nil {
		return d.explain(ctx, err)
	}
	defer c.Release()
	return d.explain(ctx, f(bounded, c.Conn()))
}
