// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/feedpollard/pollard/cache/store"
)

// Watch returns the changes of a store from now on.
func Watch(t testing.TB, s store.Store) <-chan store.Change {
	t.Helper()
	changes := make(chan store.Change, 10_000)
	var watching sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	watching.Go(func() {
		err := s.Watch(ctx, func(c store.Change) error { changes <- c; return nil })
		if !errors.Is(err, context.Canceled) {
			t.Errorf("Watch: error %v, want %v", err, context.Canceled)
		}
	})
	t.Cleanup(func() { cancel(); watching.Wait() })
	if c := <-changes; !c.Lost {
		t.Fatalf("the first change is %+v, want a loss", c)
	}
	return changes
}

// next returns the next change.
func next(t *testing.T, changes <-chan store.Change) store.Change {
	t.Helper()
	select {
	case c := <-changes:
		return c
	case <-time.After(30 * time.Second): // a store may look for changes now and then only
		t.Fatal("saw nothing")
		panic("not reached")
	}
}

func watch(t *testing.T, h Harness) {
	s := h.open(t)
	commitBody(t, s, 1, Text(1, "before")) // is not seen
	changes := Watch(t, s)
	// Others may come before, of the schedule alone.
	want := func(n int, want store.Change) store.Change {
		t.Helper()
		for {
			c := next(t, changes)
			if c.ID == idOf(n) && c.Version == want.Version && c.Forgotten == want.Forgotten && !c.Lost {
				return c
			}
			if c.Lost || c.Forgotten || c.Version != 0 {
				t.Fatalf("saw %+v, want feed %d, %+v", c, n, want)
			}
		}
	}
	commitBody(t, s, 2, Text(4, "content"))
	record := lookup(t, s, 2)
	if got := want(2, store.Change{Version: 4}); got.Token != record.Token {
		t.Errorf("the change has the token %d, want %d", got.Token, record.Token)
	}
	wantError(t, "Forget", s.Forget(t.Context(), idOf(2)), nil)
	want(2, store.Change{Forgotten: true})
	wantError(t, "Restore", s.Restore(t.Context(), []store.Saved{{Record: store.Record{ID: idOf(3), URL: urlOf(3), State: store.StateFresh}, Body: Text(2, "y")}}), nil)
	want(3, store.Change{Version: 2})
	h.Sleep(3 * time.Hour)
	_, err := s.Trim(t.Context(), 0)
	wantError(t, "Trim", err, nil)
	for c := next(t, changes); c.ID != idOf(3) || !c.Forgotten; { // others have to give way too
		c = next(t, changes)
	}
	for n := range 2 {
		wantError(t, "Restore", s.Restore(t.Context(), []store.Saved{{Record: store.Record{ID: idOf(n), URL: urlOf(n), State: store.StateFresh}}}), nil)
	}
	h.Sleep(1000 * time.Hour)
	if gone, err := s.Sweep(t.Context(), store.SweepQuery{Idle: 1, Unread: 1}); err != nil || len(gone) != 2 {
		t.Fatalf("Sweep = %x, %v", gone, err)
	}
	seen := make(map[store.ID]bool)
	for len(seen) < 2 {
		if c := next(t, changes); c.Forgotten {
			seen[c.ID] = true
		}
	}
	stop := errors.New("stop")
	wantError(t, "Watch whose see fails", s.Watch(t.Context(), func(store.Change) error { return stop }), stop)
}
