// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package bolt_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/feedpollard/pollard/cache"
	"github.com/feedpollard/pollard/cache/bolt"
	"github.com/feedpollard/pollard/cache/storetest"
)

// open opens the store in dir until the test ends.
func open(t testing.TB, dir string) *bolt.Store {
	t.Helper()
	s, err := bolt.Open(dir)
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return s
}

func TestContract(t *testing.T) {
	storetest.Run(t, func(t *testing.T) cache.Store { return open(t, t.TempDir()) })
}

// TestContractAcrossRestarts holds a store to the contract that is closed and
// opened again all the time.
func TestContractAcrossRestarts(t *testing.T) {
	storetest.Run(t, func(t *testing.T) cache.Store {
		dir := t.TempDir()
		r := &restarting{t: t, dir: dir, s: open(t, dir)}
		t.Cleanup(func() { r.s.Close() })
		return r
	})
}

// restarting is a store that reopens its directory before every seventh operation.
type restarting struct {
	t   *testing.T
	dir string

	mu     sync.Mutex // one operation at a time
	s      *bolt.Store
	calls  int
	closed bool
}

// next locks the store for an operation and returns what unlocks it.
func (r *restarting) next() (unlock func()) {
	r.mu.Lock()
	r.calls++
	if r.calls%7 == 0 && !r.closed {
		if err := r.s.Close(); err != nil {
			r.t.Errorf("Close: %v", err)
		}
		s, err := bolt.Open(r.dir)
		if err != nil {
			r.t.Errorf("Open: %v", err)
		} else {
			r.s = s
		}
	}
	return r.mu.Unlock
}

func (r *restarting) Reserve(ctx context.Context, claims []cache.Claim) ([]cache.Grant, error) {
	defer r.next()()
	return r.s.Reserve(ctx, claims)
}

func (r *restarting) Commit(ctx context.Context, o cache.Outcome) error {
	defer r.next()()
	return r.s.Commit(ctx, o)
}

func (r *restarting) Load(ctx context.Context, id cache.ID) (cache.Record, error) {
	defer r.next()()
	return r.s.Load(ctx, id)
}

func (r *restarting) Body(ctx context.Context, id cache.ID) (cache.Body, error) {
	defer r.next()()
	return r.s.Body(ctx, id)
}

func (r *restarting) Scan(ctx context.Context, visit func(cache.Record) error) error {
	defer r.next()()
	return r.s.Scan(ctx, visit)
}

func (r *restarting) Forget(ctx context.Context, ids []cache.ID) error {
	defer r.next()()
	return r.s.Forget(ctx, ids)
}

func (r *restarting) Latest(ctx context.Context) (time.Time, error) {
	defer r.next()()
	return r.s.Latest(ctx)
}

func (r *restarting) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	return r.s.Close()
}
