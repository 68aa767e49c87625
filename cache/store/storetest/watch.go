// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/feedpollard/pollard/cache/store"
)

// follower watches a store.
type follower struct {
	t    *testing.T
	seen chan store.Change
	stop context.CancelFunc
	done chan error
}

// follow begins to watch. It sees all that is committed after that.
func follow(t *testing.T, s store.Store) *follower {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	f := &follower{t: t, seen: make(chan store.Change, 1000), stop: stop, done: make(chan error, 1)}
	go func() {
		f.done <- s.Watch(ctx, func(c store.Change) error { f.seen <- c; return nil })
	}()
	if first := f.receive(); !first.Lost {
		t.Fatalf("the first change is %+v, want a loss", first)
	}
	return f
}

// receive returns the next change.
func (f *follower) receive() store.Change {
	f.t.Helper()
	select {
	case c := <-f.seen:
		return c
	case <-time.After(30 * time.Second): // a store may look for changes now and then only
		f.t.Fatal("saw nothing")
	case err := <-f.done:
		f.t.Fatalf("Watch ended: %v", err)
	}
	panic("not reached")
}

// next returns the next change of a feed that is as wanted. Others may come before, of the
// schedule alone.
func (f *follower) next(n int, want store.Change) store.Change {
	f.t.Helper()
	for {
		got := f.receive()
		if got.ID == idOf(n) && got.Version == want.Version && got.Forgotten == want.Forgotten && !got.Lost {
			return got
		}
		if got.Lost || got.Forgotten || got.Version != 0 {
			f.t.Fatalf("saw %+v, want feed %d, %+v", got, n, want)
		}
	}
}

func (f *follower) end() {
	f.t.Helper()
	f.stop()
	if err := <-f.done; !errors.Is(err, context.Canceled) {
		f.t.Errorf("Watch: error %v, want %v", err, context.Canceled)
	}
}

func watch(t *testing.T, h Harness) {
	s := h.open(t)
	commitBody(t, s, 1, Text(1, "before")) // is not seen
	f := follow(t, s)
	defer f.end()
	commitBody(t, s, 2, Text(4, "content"))
	record := lookup(t, s, 2)
	if got := f.next(2, store.Change{Version: 4}); got.Token != record.Token {
		t.Errorf("the change has the token %d, want %d", got.Token, record.Token)
	}
	if err := s.Forget(t.Context(), idOf(2)); err != nil {
		t.Fatal(err)
	}
	f.next(2, store.Change{Forgotten: true})
	if err := s.Restore(t.Context(), []store.Saved{{Record: store.Record{ID: idOf(3), URL: "x", State: store.StateFresh}, Body: Text(2, "y")}}); err != nil {
		t.Fatal(err)
	}
	f.next(3, store.Change{Version: 2})
	h.Sleep(3 * time.Hour)
	if _, err := s.Trim(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	f.next(3, store.Change{})
	h.Sleep(1000 * time.Hour)
	if gone, err := s.Sweep(t.Context(), store.SweepQuery{Idle: 1, Unread: 1}); err != nil || len(gone) != 2 {
		t.Fatalf("Sweep = %x, %v", gone, err)
	}
	seen := make(map[store.ID]bool)
	for len(seen) < 2 {
		if c := f.receive(); c.Forgotten {
			seen[c.ID] = true
		}
	}
	stop := errors.New("stop")
	wantError(t, "Watch whose see fails", s.Watch(t.Context(), func(store.Change) error { return stop }), stop)
}
