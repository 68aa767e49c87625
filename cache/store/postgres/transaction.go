// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"errors"
	"strings"

	"github.com/jackc/pgx/v5"
	"go.uber.org/zap"

	"github.com/feedpollard/pollard/cache/store"
)

// transaction implements [store.Tx]. Statements are sent with the next query, so that a
// claim or a commit takes few round trips.
type transaction struct {
	d    *database
	conn *pgx.Conn
	ctx  context.Context

	batch *pgx.Batch // statements that are not sent yet; nil: none
	now   store.Time // 0: not read yet
	err   error

	sql   string // of the last query
	lists [][]any
}

// run does the work and commits.
func (tx *transaction) run(work store.Work) error {
	tx.queue(`begin`)
	if work.Late {
		tx.queue(`set local synchronous_commit = off`)
	}
	tx.queue(readVersion).QueryRow(func(row pgx.Row) error {
		var version string
		if err := row.Scan(&version); err != nil {
			return err
		}
		if version != ours { // a later program has brought them up
			return otherVersion(version)
		}
		return nil
	})
	if err := work.Do(tx); err != nil {
		return err
	}
	if tx.now == 0 { // nothing has been sent, and the server would commit whatever the version is
		if err := tx.send(); err != nil {
			return err
		}
	}
	tx.queue(`commit`)
	return tx.send()
}

// queue adds a statement to those that are sent next.
func (tx *transaction) queue(sql string, args ...any) *pgx.QueuedQuery {
	if tx.batch == nil {
		tx.batch = new(pgx.Batch)
	}
	for i, a := range args {
		if s, ok := a.(string); ok {
			args[i] = store.Text(s)
		}
	}
	return tx.batch.Queue(strings.ReplaceAll(sql, "?", "$"), args...)
}

// send sends the statements and awaits their results.
func (tx *transaction) send() error {
	if tx.err == nil && tx.batch != nil {
		tx.err = tx.conn.SendBatch(tx.ctx, tx.batch).Close()
	}
	tx.batch = nil
	return tx.err
}

// Now implements [store.Tx].
func (tx *transaction) Now() store.Time {
	if tx.now == 0 && tx.err == nil {
		tx.Query("", nil, nil) //nolint:errcheck // tx keeps the error
	}
	return tx.now
}

// Lost implements [store.Tx].
func (tx *transaction) Lost() store.Time { return store.Never }

// Lock implements [store.Tx].
func (tx *transaction) Lock(sql string, args ...any) { tx.queue(sql+` for update`, args...) }

// Query implements [store.Tx].
func (tx *transaction) Query(sql string, lists [][]any, scan func(int, store.Row) error) error {
	for i, args := range lists {
		tx.queue(sql, args...).Query(func(rows pgx.Rows) error {
			for rows.Next() {
				if err := scan(i, rows); err != nil {
					return err
				}
			}
			return rows.Err()
		})
	}
	var r reading
	tx.queue(readClock).QueryRow(func(row pgx.Row) error {
		err := row.Scan(&r.scale, &r.wall, &r.clock)
		if errors.Is(err, pgx.ErrNoRows) {
			return errTime
		}
		return err
	})
	tx.sql, tx.lists = sql, lists
	asked := tx.d.clock.sinceBoot()
	if tx.send() == nil {
		tx.now = tx.d.clock.now(r, asked)
	}
	return tx.err
}

// Exec implements [store.Tx].
func (tx *transaction) Exec(sql string, args ...any) { tx.queue(sql, args...) }

// Changed implements [store.Tx]. The row of the feed says that it has changed.
func (tx *transaction) Changed(store.Change) {}

// Log implements [store.Tx].
func (tx *transaction) Log() *zap.Logger { return tx.d.log }

// repair removes states that cannot be read from the rows of the last query, with their URLs, so that
// these feeds start afresh. Those of other feeds must not be lost.
func (tx *transaction) repair() error {
	const large = "f.poll_state, f.feed_state"
	if !strings.Contains(tx.sql, large) {
		return tx.err
	}
	sql := strings.Replace(strings.ReplaceAll(tx.sql, "?", "$"), large, "null::bytea, null::bytea", 1)
	var rows []int64
	for _, args := range tx.lists {
		found, err := tx.conn.Query(tx.ctx, sql, args...)
		if err != nil {
			return err
		}
		for found.Next() {
			values, err := found.Values()
			if err != nil {
				return err
			}
			rows = append(rows, values[0].(int64))
		}
		if found.Err() != nil {
			return found.Err()
		}
	}
	for _, n := range rows {
		if _, err := tx.conn.Exec(tx.ctx, `select poll_state, feed_state from feed where n = $1`, n); !isDamage(err) {
			continue
		}
		if _, err := tx.conn.Exec(tx.ctx, `update feed set poll_state = null, feed_state = null, url = '' where n = $1`, n); err != nil {
			return err
		}
	}
	return nil
}
