// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package bolt

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.etcd.io/bbolt"
)

// maxShared is how many operations share a transaction at most. A transaction of
// 512 small records is still a matter of milliseconds.
const maxShared = 512

// writer joins the writes of concurrent callers into shared transactions: while
// one is being made durable, the next ones gather. There is no goroutine of its
// own and nothing to stop. One of the callers, the leader, runs the transaction
// for all who wait, and then names the first of those who came since as the next.
type writer struct {
	db     *bbolt.DB
	shared int // operations per transaction, maxShared at most

	mu      sync.Mutex
	led     bool // a leader exists
	waiting []*operation
}

// apply is what one caller does in a transaction. An error without a write
// refuses this operation alone; an error after a write undoes the transaction,
// for everybody in it.
type apply func(buckets) (wrote bool, err error)

// operation is one caller's part of a transaction.
type operation struct {
	now    time.Time // wall time of the caller; zero: it has none
	apply  apply
	leads  bool          // its caller is the leader; guarded by writer.mu
	wake   chan struct{} // gets one value when the operation is done or its caller named leader
	done   bool
	failed error
}

func newWriter(db *bbolt.DB) *writer {
	return &writer{db: db, shared: maxShared}
}

// do runs part in a transaction that is durable when do returns nil. When ctx is
// done before the transaction has begun, nothing is written; after that, do
// waits for its end and tells the truth.
func (w *writer) do(ctx context.Context, now time.Time, part apply) error {
	op := &operation{now: now, apply: part, wake: make(chan struct{}, 1)}
	if !w.join(op) {
		select {
		case <-op.wake:
		case <-ctx.Done():
			if w.withdraw(op) {
				return ctx.Err()
			}
			<-op.wake
		}
		if op.done {
			return op.failed
		}
	}
	w.run(w.take())
	w.handOver()
	return op.failed
}

// join queues op and tells whether its caller leads.
func (w *writer) join(op *operation) (leads bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiting = append(w.waiting, op)
	if w.led {
		return false
	}
	w.led, op.leads = true, true
	return true
}

// withdraw takes op out of the queue, unless its transaction has begun or its
// caller has been named as the leader.
func (w *writer) withdraw(op *operation) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if op.leads {
		return false
	}
	for i, other := range w.waiting {
		if other == op {
			w.waiting = append(w.waiting[:i], w.waiting[i+1:]...)
			return true
		}
	}
	return false
}

// take empties the queue as far as one transaction goes. The leader's operation
// is the first in it.
func (w *writer) take() []*operation {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := min(len(w.waiting), w.shared)
	ops := w.waiting[:n:n]
	w.waiting = append([]*operation(nil), w.waiting[n:]...)
	return ops
}

// handOver names the next leader, if anybody waits.
func (w *writer) handOver() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.waiting) == 0 {
		w.led = false
		return
	}
	w.waiting[0].leads = true
	w.waiting[0].wake <- struct{}{}
}

// errNothing rolls a transaction back that has nothing to write, which spares
// the disk two flushes.
var errNothing = errors.New("nothing to write")

// run makes one transaction of ops and tells each caller.
func (w *writer) run(ops []*operation) {
	err := guard(func() error {
		return w.db.Update(func(tx *bbolt.Tx) error {
			b, err := openBuckets(tx)
			if err != nil {
				return err
			}
			return applyAll(b, ops)
		})
	})
	if err != nil && !errors.Is(err, errNothing) {
		err = unwritable(w.db.Path(), err)
		for _, op := range ops {
			op.failed = err
		}
	}
	for _, op := range ops {
		op.done = true
		op.wake <- struct{}{}
	}
}

// applyAll does each operation and moves the latest wall time. An error undoes all.
func applyAll(b buckets, ops []*operation) error {
	wrote := false
	for _, op := range ops {
		did, err := op.apply(b)
		if err != nil && did {
			return err
		}
		op.failed = err
		if !did {
			continue
		}
		wrote = true
		if op.now.IsZero() {
			continue
		}
		if err := b.advance(op.now); err != nil {
			return err
		}
	}
	if !wrote {
		return errNothing
	}
	return nil
}
