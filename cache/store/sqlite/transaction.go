// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"go.uber.org/zap"

	"github.com/feedpollard/pollard/cache/store"
)

// transaction is what one call does in a transaction, which it may share with others.
type transaction struct {
	d       *database
	c       *connection
	now     store.Time // 0: not read since the last Query
	err     error
	changes []store.Change
}

// do runs f, and returns the changes that it made.
func (d *database) do(c *connection, f func(store.Tx) error) ([]store.Change, error) {
	tx := &transaction{d: d, c: c}
	if err := f(tx); err != nil {
		return nil, err
	}
	return tx.changes, tx.err
}

// Now implements [store.Tx].
func (tx *transaction) Now() store.Time {
	if tx.now == 0 {
		tx.now = tx.d.scale.now()
	}
	return tx.now
}

// Lost implements [store.Tx].
func (tx *transaction) Lost() store.Time { return tx.d.lost }

// Lock implements [store.Tx]. There is one writer.
func (tx *transaction) Lock(string, ...any) {}

// Query implements [store.Tx].
func (tx *transaction) Query(sql string, lists [][]any, scan func(int, store.Row) error) error {
	for i, args := range lists {
		if tx.err != nil {
			break
		}
		tx.err = inTable(sql, tx.c.query(context.Background(), sql, args, func(r row) error { return scan(i, r) }))
	}
	tx.now = 0 // a row that was read may be of a later moment than the one that Now returned
	return tx.err
}

// Exec implements [store.Tx].
func (tx *transaction) Exec(sql string, args ...any) {
	if tx.err != nil {
		return
	}
	tx.err = inTable(sql, tx.c.exec(sql, args...))
	if strings.HasPrefix(sql, "delete from body") && errors.Is(tx.err, errBodies) {
		// The pages of that body are lost. Its feed goes on.
		tx.d.log.Error("a stored body is damaged and cannot be removed", zap.Error(tx.err))
		tx.err = nil
	}
}

// errBodies reports damage that may be of bodies alone.
var errBodies = errors.New("a stored body is damaged")

// inTable says of damage that a statement has found whether it may be of bodies alone.
func inTable(sql string, err error) error {
	if isDamage(err) && (strings.Contains(sql, "from body") || strings.Contains(sql, "join body") || strings.Contains(sql, "into body")) {
		return fmt.Errorf("%w: %w", errBodies, err)
	}
	return err
}

// Changed implements [store.Tx].
func (tx *transaction) Changed(c store.Change) { tx.changes = append(tx.changes, c) }

// Log implements [store.Tx].
func (tx *transaction) Log() *zap.Logger { return tx.d.log }
