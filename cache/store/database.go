// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
)

// Database is a [Store] in the tables of an SQL database. The rules of claims are written
// here once. They read and lock rows, decide in Go, and write what has changed, each in
// one transaction. Each database has its own [Driver].
//
// A transaction locks sites by name before feeds by ID, so that two of them do not wait
// for each other.
type Database struct {
	driver  Driver
	took    func(op string, began time.Time) // see Observe
	crowded atomic.Bool                      // see Totals

	counting   sync.Mutex // guards all below
	totals     Totals     // that were counted last
	countAfter time.Time  // they need not be counted again before
}

// Unlimited says that a file system has space enough.
const Unlimited = math.MaxInt64

// Driver is the part of a store that each database has its own of.
type Driver interface {
	// Write runs work in one transaction and returns when it is durable. It may run
	// work.Do more than once. If it fails, nothing was written, unless it is not known
	// what became of the transaction.
	Write(ctx context.Context, work Work) error
	// Read runs do outside of a transaction. It may run do more than once.
	Read(ctx context.Context, do func(Tx) error) error
	// Watch implements [Store.Watch].
	Watch(ctx context.Context, see func(Change) error) error
	// Used returns how many bytes the database uses.
	Used(tx Tx) (int64, error)
	// Left returns how many bytes are left if the file system is short of space; otherwise [Unlimited].
	Left() int64
	// Tidy removes what the driver itself does not need any more.
	Tidy(ctx context.Context) error
	// IsDamage reports whether an error says that the database cannot read what it keeps.
	IsDamage(err error) bool
	Close() error
}

// Work is what one transaction does.
type Work struct {
	Do    func(Tx) error
	Bytes int  // of bodies that it writes
	Late  bool // a crash of the machine may undo it for some seconds
}

// Tx is a transaction, or the reading of some rows. After an error all its methods do
// nothing, and the transaction fails with that error.
//
// Statements name their arguments ?1, ?2 and so on.
type Tx interface {
	// Now returns the time by the database's clock. It is read after the last Query, so
	// that the time waited for a lock counts.
	Now() Time
	// Lost returns when records were lost with a damaged file: a feed that is not known may have been polled
	// until then. It is [Never] if none were.
	Lost() Time
	// Lock locks the rows that a statement selects until the transaction ends. It may do so
	// later, in order. A database with one writer has nothing to lock.
	Lock(sql string, args ...any)
	// Query runs a statement once for each list of arguments and calls scan for each row,
	// with the index of its list. It sees what was committed before the locks were granted.
	Query(sql string, lists [][]any, scan func(i int, row Row) error) error
	// Exec runs a statement that returns nothing. It may do so later, in order.
	Exec(sql string, args ...any)
	// Changed reports a change to calls of Watch, when the transaction is committed.
	Changed(c Change)
	// Log returns what damage is logged to.
	Log() *zap.Logger
}

// Row is a row of a result. If SQLite has a value of another type in a column, which is damage, Scan sets zero.
type Row interface{ Scan(into ...any) error }

// NewDatabase returns the store in a database that has the tables of this version.
func NewDatabase(driver Driver) *Database {
	return &Database{driver: driver, took: func(string, time.Time) {}}
}

// Observe has took called at the end of each of these operations, also of one that fails: claim, commit,
// lookup, body, touch and sweep. It must be called before any of them.
func (d *Database) Observe(took func(op string, began time.Time)) { d.took = took }

// Watch implements [Store].
func (d *Database) Watch(ctx context.Context, see func(Change) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return d.driver.Watch(ctx, see)
}

// Lost returns how long ago records were lost, as the file of an SQLite store was damaged; -1 if none were.
func (d *Database) Lost(ctx context.Context) (ago time.Duration, err error) {
	return read(ctx, d, func(tx Tx) (time.Duration, error) {
		lost := Never
		err := tx.Query(`select cast(value as bigint) from meta where key = 'lost'`, one(), func(_ int, row Row) error { return row.Scan((*int64)(&lost)) })
		return lost.ago(tx.Now()), err
	})
}

// Close implements [Store].
func (d *Database) Close() error { return d.driver.Close() }

// write runs do in a transaction and returns its result. A transaction that the caller no
// longer waits for may still run.
func write[T any](ctx context.Context, d *Database, work Work, do func(Tx) (T, error)) (T, error) {
	var result, zero T
	work.Do = func(tx Tx) (err error) {
		result, err = do(tx)
		return err
	}
	if err := d.driver.Write(ctx, work); err != nil {
		return zero, err
	}
	return result, nil
}

// read is like write, for reading.
func read[T any](ctx context.Context, d *Database, do func(Tx) (T, error)) (T, error) {
	var result, zero T
	err := d.driver.Read(ctx, func(tx Tx) (err error) {
		result, err = do(tx)
		return err
	})
	if err != nil {
		return zero, err
	}
	return result, nil
}

// one is a list of one list of arguments.
func one(args ...any) [][]any { return [][]any{args} }

// each makes a list of arguments of each value.
func each[T any](values []T, args func(T) []any) [][]any {
	lists := make([][]any, len(values))
	for i, v := range values {
		lists[i] = args(v)
	}
	return lists
}

var (
	_ Store    = (*Database)(nil)
	_ Counters = (*Database)(nil)
)
