// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"context"
	"errors"
	"slices"
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
	if testing.Short() && h.Shared {
		t.Skip("nodes look for changes on a server once a second: this takes five looks")
	}
	s := h.open(t)
	commitBody(t, s, 1, Text(1, "before")) // is not seen
	changes := Watch(t, s)
	// want waits for a change of each of some feeds. Others may come before, of the schedule alone.
	want := func(want store.Change, feeds ...int) {
		t.Helper()
		for left := feeds; len(left) > 0; {
			c := next(t, changes)
			of := func(n int) bool { return c.ID == idOf(n) }
			switch {
			case c.Version == 0 && !c.Forgotten && !c.Lost:
			case c.Version != want.Version || c.Forgotten != want.Forgotten || c.Token != want.Token || !slices.ContainsFunc(left, of):
				t.Fatalf("saw %+v, want %+v of %v", c, want, left)
			default:
				left = slices.DeleteFunc(slices.Clone(left), of)
			}
		}
	}
	restore := func(n int, body *store.Body) {
		t.Helper()
		saved := store.Saved{Record: store.Record{ID: idOf(n), URL: urlOf(n), State: store.StateFresh}, Body: body}
		wantError(t, "Restore", s.Restore(t.Context(), []store.Saved{saved}), nil)
	}
	commitBody(t, s, 2, Text(4, "content"))
	want(store.Change{Version: 4, Token: lookup(t, s, 2).Token}, 2)
	wantError(t, "Forget", s.Forget(t.Context(), idOf(2)), nil)
	want(store.Change{Forgotten: true}, 2)
	restore(3, Text(2, "y"))
	want(store.Change{Version: 2}, 3)
	_, err := s.Sweep(t.Context(), store.SweepQuery{Disk: 1})
	wantError(t, "Sweep of a full store", err, nil)
	want(store.Change{Forgotten: true}, 1, 3)
	restore(4, nil)
	restore(5, nil)
	h.Sleep(1000 * time.Hour)
	_, err = s.Sweep(t.Context(), store.SweepQuery{Idle: 1, Unread: 1})
	wantError(t, "Sweep", err, nil)
	want(store.Change{Forgotten: true}, 4, 5)
	stop := errors.New("stop")
	wantError(t, "Watch whose see fails", s.Watch(t.Context(), func(store.Change) error { return stop }), stop)
}
