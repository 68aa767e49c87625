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
		done <- d.inTx(work)
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

// inTx does work in a transaction, and again if it was undone for reasons that pass.
func (d *database) inTx(work store.Work) error {
	return d.withConn(context.Background(), func(ctx context.Context, conn *pgx.Conn) (err error) {
		for range attempts {
			tx := &transaction{d: d, conn: conn, ctx: ctx}
			if err = tx.run(work); err == nil {
				return nil
			}
			if !conn.IsClosed() {
				if _, failed := conn.Exec(ctx, `rollback`); failed != nil {
					return err
				}
			}
			switch code := sqlState(err); {
			case code == codeDeadlock, code == codeSerialization:
			case isDamage(err):
				if failed := tx.repair(); failed != nil {
					return err
				}
			case errors.Is(err, errEpoch):
				if err := d.assumePolls(ctx, conn); err != nil {
					return err
				}
			default:
				return err
			}
		}
		return err
	})
}

// Read implements [store.Driver].
func (d *database) Read(ctx context.Context, do func(store.Tx) error) error {
	if err := d.ended(ctx); err != nil {
		return err
	}
	return d.withConn(ctx, func(ctx context.Context, conn *pgx.Conn) (err error) {
		for range attempts {
			tx := &transaction{d: d, conn: conn, ctx: ctx}
			if err = do(tx); err == nil {
				err = tx.err
			}
			if errors.Is(err, errEpoch) {
				if _, _, failed := d.readTime(ctx, conn); failed != nil {
					return err
				}
			} else if !isDamage(err) || tx.repair() != nil {
				break
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
