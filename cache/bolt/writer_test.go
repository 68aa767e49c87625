// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package bolt

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/feedpollard/pollard/cache"
)

// marker is an operation that writes one record.
func marker(n int) apply {
	id := numbered(n)
	return func(b buckets) (bool, error) { return true, b.poll.Put(id[:], encodePoll(poll{})) }
}

// TestWriterShares blocks the first transaction and expects all who came
// meanwhile in the next ones, as many as may share.
func TestWriterShares(t *testing.T) {
	for _, c := range []struct{ shared, want int }{{maxShared, 2}, {4, 4}, {1, 11}} {
		t.Run(fmt.Sprint(c.shared), func(t *testing.T) {
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				s, err := Open(dir)
				if err != nil {
					t.Fatal(err)
				}
				defer s.Close()
				s.records.shared = c.shared
				before := s.transactions(t)
				gate := make(chan struct{})
				go s.records.do(t.Context(), time.Time{}, func(b buckets) (bool, error) {
					<-gate
					return marker(0)(b)
				})
				synctest.Wait()
				for n := range 10 {
					go func() {
						if err := s.records.do(t.Context(), time.Time{}, marker(n+1)); err != nil {
							t.Error(err)
						}
					}()
				}
				synctest.Wait()
				close(gate)
				synctest.Wait()
				if got := s.transactions(t) - before; got != c.want {
					t.Errorf("%d transactions, want %d", got, c.want)
				}
			})
		})
	}
}

// transactions is the number of transactions that the file has seen.
func (s *Store) transactions(t *testing.T) int {
	t.Helper()
	tx, err := s.db.Begin(false)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	return tx.ID()
}

// TestWriterCancellation expects that a caller who gives up in the queue has
// written nothing, and that one whose transaction has begun is told its outcome.
func TestWriterCancellation(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s, err := Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		ctx, cancel := context.WithCancel(t.Context())
		gate := make(chan struct{})
		results := make([]error, 4)
		start := func(n int, ctx context.Context, part apply) {
			go func() { results[n] = s.records.do(ctx, time.Time{}, part) }()
			synctest.Wait()
		}
		start(0, ctx, func(b buckets) (bool, error) { <-gate; return marker(0)(b) })
		start(1, ctx, marker(1))
		start(2, t.Context(), marker(2))
		start(3, ctx, marker(3))
		cancel()
		synctest.Wait()
		close(gate)
		synctest.Wait()
		for n, want := range []error{nil, context.Canceled, nil, context.Canceled} {
			if !errors.Is(results[n], want) {
				t.Errorf("caller %d: error %v, want %v", n, results[n], want)
			}
			if _, written, err := s.poll(numbered(n)); err != nil || written != (want == nil) {
				t.Errorf("caller %d: written %v, %v", n, written, err)
			}
		}
	})
}

// TestLeaderDoesNotWithdraw expects that a caller who was named as the leader and
// gives up at the same moment leads none the less: nobody else would.
func TestLeaderDoesNotWithdraw(t *testing.T) {
	w := newWriter(nil)
	ops := make([]*operation, 4)
	for n := range ops {
		ops[n] = &operation{wake: make(chan struct{}, 1)}
	}
	if !w.join(ops[0]) || w.join(ops[1]) {
		t.Fatal("the first caller, and no other, should lead")
	}
	if w.withdraw(ops[0]) {
		t.Error("the first caller withdrew")
	}
	w.take()
	if w.withdraw(ops[1]) {
		t.Error("a caller withdrew from a transaction that has begun")
	}
	w.join(ops[2])
	w.join(ops[3])
	w.handOver()
	if w.withdraw(ops[2]) {
		t.Error("the next leader withdrew")
	}
	if !w.withdraw(ops[3]) || len(w.waiting) != 1 {
		t.Error("a caller in the queue could not withdraw")
	}
}

// TestWriterRefusesOne expects that a refusal concerns its caller alone, and an
// error after a write everybody in the transaction.
func TestWriterRefusesOne(t *testing.T) {
	bad := errors.New("bad")
	for _, wrote := range []bool{false, true} {
		dir := t.TempDir()
		synctest.Test(t, func(t *testing.T) {
			s, err := Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			gate := make(chan struct{})
			results := make([]error, 4)
			for n, part := range []apply{
				func(b buckets) (bool, error) { <-gate; return marker(0)(b) },
				marker(1),
				func(buckets) (bool, error) { return wrote, bad },
				marker(3),
			} {
				go func() { results[n] = s.records.do(t.Context(), time.Time{}, part) }()
				synctest.Wait()
			}
			close(gate)
			synctest.Wait()
			for n, failed := range []bool{false, wrote, true, wrote} {
				if got := errors.Is(results[n], bad); got != failed {
					t.Errorf("wrote %v: caller %d got error %v", wrote, n, results[n])
				}
				if _, written, _ := s.poll(numbered(n)); written == failed {
					t.Errorf("wrote %v: caller %d is written: %v", wrote, n, written)
				}
			}
		})
	}
}

// TestCloseWaits expects that Close leaves nothing under way behind.
func TestCloseWaits(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s, err := Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		id := cache.ID{1}
		release, err := s.feeds.hold(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		forgotten, closed := false, false
		go func() {
			if err := s.Forget(t.Context(), []cache.ID{id}); err != nil {
				t.Error(err)
			}
			forgotten = true
		}()
		synctest.Wait()
		go func() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			closed = true
		}()
		synctest.Wait()
		if forgotten || closed {
			t.Fatalf("forgotten %v, closed %v while the feed was held", forgotten, closed)
		}
		release()
		synctest.Wait()
		if !forgotten || !closed {
			t.Fatalf("forgotten %v, closed %v after the release", forgotten, closed)
		}
	})
}

// TestHoldGivesUp expects that whoever gives up waiting holds nothing.
func TestHoldGivesUp(t *testing.T) {
	var h holds
	second := cache.ID{2}
	release, err := h.hold(t.Context(), second)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := h.hold(ctx, cache.ID{1}, second, second); !errors.Is(err, context.Canceled) {
		t.Fatalf("hold: error %v, want %v", err, context.Canceled)
	}
	release()
	release, err = h.hold(t.Context(), second, cache.ID{1}, second)
	if err != nil {
		t.Fatal(err)
	}
	release()
	if len(h.held) != 0 {
		t.Errorf("%d feeds are still held", len(h.held))
	}
}
