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

// follower watches a store from a cursor on.
type follower struct {
	t    *testing.T
	seen chan store.Change
	stop context.CancelFunc
	done chan error
}

func follow(t *testing.T, s store.Store, from store.Cursor) *follower {
	ctx, stop := context.WithCancel(t.Context())
	f := &follower{t: t, seen: make(chan store.Change, 1000), stop: stop, done: make(chan error, 1)}
	go func() {
		f.done <- s.Watch(ctx, from, func(c store.Change) error { f.seen <- c; return nil })
	}()
	return f
}

// next is the next change of a feed, or the next loss, that is as wanted. Others may
// come before, of the schedule alone.
func (f *follower) next(n int, want store.Change) store.Change {
	f.t.Helper()
	// A store may look for changes now and then only.
	patience := time.NewTimer(30 * time.Second)
	defer patience.Stop()
	for {
		select {
		case got := <-f.seen:
			if got.Lost == want.Lost && (got.Lost || got.ID == idOf(n) && got.Version == want.Version && got.Forgotten == want.Forgotten) {
				if got.At == "" {
					f.t.Errorf("change without a place: %+v", got)
				}
				return got
			}
			if got.Lost || got.Forgotten || got.Version != 0 {
				f.t.Fatalf("saw %+v, want feed %d, %+v", got, n, want)
			}
		case <-patience.C:
			f.t.Fatalf("saw nothing, want feed %d, %+v", n, want)
		case err := <-f.done:
			f.t.Fatalf("Watch ended: %v", err)
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

// begun makes changes until the follower sees one: it may not have begun yet.
func (f *follower) begun(s store.Store) {
	f.t.Helper()
	for v := uint64(1); ; v++ {
		id, url := feed(1000)
		leases, err := s.Claim(f.t.Context(), []store.Claim{{ID: id, URL: url, Hold: time.Hour}})
		if err != nil || leases[0].Denied != "" {
			f.t.Fatalf("Claim = %+v, %v", leases, err)
		}
		o := outcome(1000, leases[0].Token, text(v, "x"))
		o.In = 0
		commit(f.t, s, o)
		select {
		case c := <-f.seen:
			for c.ID != id || c.Version != v { // none of these is left for the test
				c = <-f.seen
			}
			return
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func watch(t *testing.T, h Harness) {
	s := h.open(t)
	commitBody(t, s, 1, text(1, "before")) // is not seen
	f := follow(t, s, "")
	f.begun(s)
	defer f.end()
	commitBody(t, s, 2, text(4, "content"))
	record := lookup(t, s, 2)
	if got := f.next(2, store.Change{Version: 4}); got.Token != 0 && got.Token != record.Token {
		t.Errorf("the change has the token %d, want %d or none", got.Token, record.Token)
	}
	if err := s.Forget(t.Context(), idOf(2)); err != nil {
		t.Fatal(err)
	}
	f.next(2, store.Change{Forgotten: true})
	if err := s.Restore(t.Context(), []store.Saved{{Record: store.Record{ID: idOf(3), URL: "x", State: store.StateFresh}, Body: text(2, "y")}}); err != nil {
		t.Fatal(err)
	}
	f.next(3, store.Change{Version: 2})
	h.Sleep(3 * time.Hour)
	if _, err := s.Trim(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	f.next(3, store.Change{})
	h.Sleep(1000 * time.Hour)
	if gone, err := s.Sweep(t.Context(), store.SweepQuery{Idle: 1, Unread: 1}); err != nil || len(gone) != 3 {
		t.Fatalf("Sweep = %x, %v", gone, err)
	}
	seen := make(map[store.ID]bool)
	for len(seen) < 3 {
		c := <-f.seen
		seen[c.ID] = seen[c.ID] || c.Forgotten
	}

	stop := errors.New("stop")
	done := make(chan error, 1)
	go func() {
		done <- s.Watch(t.Context(), "", func(store.Change) error { return stop })
	}()
	for ended := false; !ended; {
		f.begun(s)
		select {
		case err := <-done:
			wantError(t, "Watch whose see fails", err, stop)
			ended = true
		default:
		}
	}
}

func watchFromCursor(t *testing.T, h Harness) {
	s := h.open(t)
	f := follow(t, s, "")
	f.begun(s)
	commitBody(t, s, 1, text(1, "one"))
	at := f.next(1, store.Change{Version: 1}).At
	commitBody(t, s, 2, text(2, "two"))
	f.next(2, store.Change{Version: 2})
	f.end()
	commitBody(t, s, 3, text(3, "three"))

	f = follow(t, s, at)
	defer f.end()
	f.next(2, store.Change{Version: 2})
	f.next(3, store.Change{Version: 3})
	commitBody(t, s, 4, text(4, "four"))
	f.next(4, store.Change{Version: 4})
}

// watchLost uses cursors whose changes nobody knows, and expects to be told once.
func watchLost(t *testing.T, h Harness) {
	s := h.open(t)
	commitBody(t, s, 1, text(1, "one"))
	for _, from := range []store.Cursor{"nonsense", "-1", "zzzzzzzzzzzzz.zzzzz", "99999999999"} {
		f := follow(t, s, from)
		f.next(0, store.Change{Lost: true})
		f.begun(s)
		h.Sleep(3 * time.Hour)
		commitBody(t, s, 1, text(2, "two"))
		f.next(1, store.Change{Version: 2})
		f.end()
	}
}

// nodes expects that two handles are as one.
func nodes(t *testing.T, h Harness) {
	if !h.Shared {
		t.Skip("the store has one node only")
	}
	both := handles(t, h)
	a, b := both[0], both[1]
	f := follow(t, b, "")
	f.begun(a)
	defer f.end()

	c := claim(1)
	c.Host = host("one")
	token := grant(t, a, c)
	deny(t, b, c, store.DeniedNotDue, time.Hour)
	c2 := claim(2)
	c2.Host = host("one")
	deny(t, b, c2, store.DeniedBusy, time.Minute)

	o := outcome(1, token, text(1, "content"))
	o.Pauses = []store.Pause{{Scope: "host one", For: time.Hour, Why: "because"}}
	commit(t, b, o)
	f.next(1, store.Change{Version: 1})
	if r := lookup(t, a, 1); r.Version != 1 || !near(r.In, 2*time.Hour) {
		t.Errorf("the other node knows %+v", r)
	}
	wantBody(t, a, 1, o.Body)
	wantPauses(t, a, o.Pauses)
	deny(t, a, c2, store.DeniedPaused, time.Hour)

	touch(t, a, 1, time.Hour)
	touch(t, b, 1, 2*time.Hour)
	if r := lookup(t, b, 1); !near(r.Asked, time.Hour) {
		t.Errorf("asked %v ago, want the latest of both nodes", r.Asked)
	}
	if err := b.Forget(t.Context(), idOf(1)); err != nil {
		t.Fatal(err)
	}
	wantUnknown(t, a, 1)
	wantError(t, "Commit", a.Commit(t.Context(), outcome(1, token, nil)), store.ErrFenced)
}
