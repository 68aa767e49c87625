// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/feedpollard/pollard/cache/store"
)

const (
	// maxShared and maxBytes bound what shares a transaction.
	maxShared = 8
	maxBytes  = 1 << 20

	// attempts is how often a transaction begins that the server undoes.
	attempts = 6
)

// job is a call that waits for its transaction.
type job struct {
	store.Work
	done chan error
}

// Write implements [store.Driver]. A caller that gives up leaves its work: a claim that is
// not used is a pause and no more.
func (d *database) Write(ctx context.Context, work store.Work) error {
	if err := d.ended(ctx); err != nil {
		return err
	}
	j := &job{Work: work, done: make(chan error, 1)}
	queue := d.jobs
	if work.Shares {
		queue = d.shared
	}
	timeout := time.NewTimer(callTimeout)
	defer timeout.Stop()
	select {
	case queue <- j:
	case <-timeout.C:
		return d.explain(ctx, context.DeadlineExceeded)
	case <-ctx.Done():
		return d.explain(ctx, ctx.Err())
	case <-d.closed.Done():
		return d.errClosed()
	}
	select {
	case err := <-j.done:
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

// runJobs runs transactions, one at a time.
func (d *database) runJobs() {
	for {
		var j *job
		select {
		case j = <-d.jobs:
		case j = <-d.shared:
		case <-d.closed.Done():
			return
		}
		batch := []*job{j}
		for bytes := j.Bytes; j.Shares && len(batch) < maxShared && bytes < maxBytes; {
			select {
			case j = <-d.shared:
				batch = append(batch, j)
				bytes += j.Bytes
				continue
			default:
			}
			break
		}
		d.run(batch)
	}
}

// run runs jobs in one transaction. If it fails, each has a transaction of its own, unless
// the server cannot be reached: the error of one must not be that of the others.
func (d *database) run(batch []*job) {
	reached, err := d.inTx(batch)
	if err != nil && reached && len(batch) > 1 {
		for _, j := range batch {
			d.run([]*job{j})
		}
		return
	}
	for _, j := range batch {
		j.done <- err
	}
}

// inTx runs jobs in one transaction, and again if it was undone for reasons that pass. It
// reports whether the server was reached until the end.
func (d *database) inTx(batch []*job) (reached bool, err error) {
	err = d.withConn(context.Background(), func(ctx context.Context, conn *pgx.Conn) (err error) {
		defer func() { reached = !conn.IsClosed() }()
		for range attempts {
			tx := &transaction{d: d, conn: conn, ctx: ctx, shares: len(batch) > 1}
			if err = tx.run(batch); err == nil {
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
				if err := d.assumePolls(ctx, conn, `name <> `+serverName); err != nil {
					return err
				}
			default:
				return err
			}
		}
		return err
	})
	return reached, err
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
