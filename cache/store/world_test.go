// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/cache/store/sqlite"
)

// world is a store, its clock, and what reads and polls its feeds.
type world struct {
	t   testing.TB
	s   *sqlite.Store
	now time.Time
}

func newWorld(t testing.TB) *world {
	w := &world{t: t, now: time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)}
	w.s = sqlite.NewMemory(func() time.Time { return w.now })
	t.Cleanup(func() { w.s.Close() })
	return w
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) record(url string) (r store.Record, known bool) {
	records, err := w.s.Lookup(w.t.Context(), []store.ID{store.IDOf(url)})
	w.must(err)
	if len(records) == 0 {
		return r, false
	}
	return records[0], true
}

// claim makes one claim.
func (w *world) claim(c store.Claim) store.Lease {
	w.t.Helper()
	c.ID, c.Hold = store.IDOf(c.URL), time.Hour
	leases, err := w.s.Claim(w.t.Context(), []store.Claim{c})
	w.must(err)
	return leases[0]
}

// read asks for a feed as a reader of an owner. It reports whether the store had a version.
func (w *world) read(url string, by store.Owner, size int) bool {
	w.t.Helper()
	r, known := w.record(url)
	served := known && r.Version != 0
	if !known || r.In <= 0 && !served {
		l := w.claim(store.Claim{URL: url, By: []store.Owner{by}, Own: true, Configured: by == store.Operator})
		o := store.Outcome{ID: l.ID, Token: l.Token, In: time.Hour, State: store.StateFresh}
		if size > 0 {
			o.Body = &store.Body{Version: l.Version + 1, Coding: "identity", Data: make([]byte, size)}
		}
		w.must(w.s.Commit(w.t.Context(), o))
	}
	w.must(w.s.Touch(w.t.Context(), map[store.ID]store.Asked{store.IDOf(url): {Own: true, By: []store.Owner{by}}}))
	return served
}

// sweep makes a sweep.
func (w *world) sweep(q store.SweepQuery) []store.ID {
	w.t.Helper()
	gone, err := w.s.Sweep(w.t.Context(), q)
	w.must(err)
	return gone
}

func named(kind store.Kind, n int) store.Owner { return store.OwnerOf(kind, fmt.Sprint(n)) }
