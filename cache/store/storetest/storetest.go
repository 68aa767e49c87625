// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

// Package storetest is the contract of [store.Store] as a test suite, so that
// every store is held to the same one.
package storetest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/feedpollard/pollard/cache/store"
)

// Handle is an open store.
type Handle interface {
	store.Store
	store.Counters
	Close() error
}

// Harness gives access to one store, which is empty at first.
type Harness struct {
	// Open opens the store with what the handles before left in it. A test closes one
	// handle before it opens the next, unless the store is Shared.
	Open func() Handle
	// Sleep moves the store's clock on. It may be off by what the test takes itself,
	// but not by more than slack.
	Sleep func(time.Duration)
	// Kill ends a handle as a crash of the process does. Nil: it cannot.
	Kill func(Handle)
	// Exec runs a statement in the database without the store. Nil: it cannot.
	Exec func(sql string, args ...any)
	// Shared says that several handles, or nodes, may be open at once.
	Shared bool
}

// Run holds a store to the contract. begin makes a new and empty one; what it needs
// is removed when t ends.
func Run(t *testing.T, begin func(t *testing.T) Harness) {
	for name, check := range map[string]func(t *testing.T, h Harness){
		"what is acknowledged is there after a kill":    kill,
		"damage costs a poll, a spacing or a pause":     damaged,
		"what is large is kept whole":                   large,
		"a version is replaced while it is sent":        replacedWhileSent,
		"all that is unwanted is swept":                 sweepMany,
		"a claim of several sees what those before did": several,
		"a poke is kept until a poll":                   poked,
		"strangers give way, to two nodes at once":      giveWay,
		"changes are watched":                           watch,
		"all calls get one secret":                      oneSecret,
		"nothing happens after cancellation or a Close": ended,
	} {
		t.Run(name, func(t *testing.T) { check(t, begin(t)) })
	}
	t.Run("it behaves like the model", func(t *testing.T) { likeTheModel(t, begin) })
}

// open opens the store for the length of a test.
func (h Harness) open(t *testing.T) Handle {
	t.Helper()
	s := h.Open()
	t.Cleanup(func() { s.Close() })
	return s
}

// Feed is the name of the nth feed of a test.
func Feed(n int) (id store.ID, url string) {
	url = fmt.Sprintf("https://example.com/%d.xml", n)
	return store.IDOf(url), url
}

func idOf(n int) store.ID {
	id, _ := Feed(n)
	return id
}

func urlOf(n int) string {
	_, url := Feed(n)
	return url
}

// Claim asks for a poll of the nth feed, of a host that is not paced.
func Claim(n int) store.Claim {
	id, url := Feed(n)
	return store.Claim{ID: id, URL: url, Hold: time.Hour}
}

// host is one that is paced by a minute.
func host(name string) store.Host {
	return store.Host{Site: name, Spacing: time.Minute}
}

// Outcome is a good one of a poll.
func Outcome(l store.Lease, body *store.Body) store.Outcome {
	return store.Outcome{
		ID: l.ID, Token: l.Token, In: 2 * time.Hour, Claimed: time.Hour, Site: l.Site,
		State: store.StateFresh, PollState: []byte("facts"), FeedState: []byte("memo"), Body: body,
	}
}

// Text is a body with that content.
func Text(version uint64, content string) *store.Body {
	return &store.Body{Version: version, Coding: "identity", Data: []byte(content)}
}

// Ask makes one claim.
func Ask(t testing.TB, s store.Store, c store.Claim) store.Lease {
	t.Helper()
	leases, err := s.Claim(t.Context(), []store.Claim{c})
	if err != nil || len(leases) != 1 {
		t.Fatalf("Claim = %d leases, %v", len(leases), err)
	}
	return leases[0]
}

// Grant makes one claim that has to be granted.
func Grant(t testing.TB, s store.Store, c store.Claim) store.Lease {
	t.Helper()
	lease := Ask(t, s, c)
	if lease.Denied != "" || lease.Token == 0 {
		t.Fatalf("Claim = %+v, want a grant", lease)
	}
	return lease
}

// Poll claims all feeds that are due, at sites with that spacing, and returns what was granted.
func Poll(t testing.TB, s store.Store, spacing time.Duration) (granted []store.Lease) {
	t.Helper()
	const limit = 100
	for q, read := (store.DueQuery{Limit: limit}), true; read; {
		due, err := s.Due(t.Context(), q)
		if err != nil {
			t.Fatalf("Due: %v", err)
		}
		q.From, read = due.To, due.Wait <= 0
		sites := make(map[store.ID]string)
		var ids []store.ID
		for _, f := range due.Feeds {
			ids, sites[f.ID] = append(ids, f.ID), f.Site
		}
		records, err := s.Lookup(t.Context(), ids)
		if err != nil {
			t.Fatalf("Lookup: %v", err)
		}
		var claims []store.Claim
		for _, r := range records {
			claims = append(claims, store.Claim{ID: r.ID, URL: r.URL, Hold: time.Hour, Host: store.Host{Site: sites[r.ID], Spacing: spacing}})
		}
		leases, err := s.Claim(t.Context(), claims)
		if err != nil {
			t.Fatalf("Claim: %v", err)
		}
		for _, l := range leases {
			if l.Denied == "" {
				granted = append(granted, l)
			}
		}
	}
	return granted
}

// deny makes one claim that has to be denied.
func deny(t *testing.T, s store.Store, c store.Claim, want store.Refusal, wait time.Duration) {
	t.Helper()
	if lease := Ask(t, s, c); lease.Denied != want || !near(lease.Wait, wait) {
		t.Fatalf("Claim is denied %q for %v, want %q for %v", lease.Denied, lease.Wait, want, wait)
	}
}

// Commit stores an outcome.
func Commit(t testing.TB, s store.Store, o store.Outcome) {
	t.Helper()
	if err := s.Commit(t.Context(), o); err != nil {
		t.Fatalf("Commit: %v", err)
	}
}

// commitBody claims a feed and commits a body.
func commitBody(t *testing.T, s store.Store, n int, body *store.Body) {
	t.Helper()
	Commit(t, s, Outcome(Grant(t, s, Claim(n)), body))
}

func touch(t *testing.T, s store.Store, n int, ago time.Duration) {
	t.Helper()
	if err := s.Touch(t.Context(), map[store.ID]store.Asked{idOf(n): {Ago: ago}}); err != nil {
		t.Fatalf("Touch: %v", err)
	}
}

func lookup(t *testing.T, s store.Store, n int) store.Record {
	t.Helper()
	records, err := s.Lookup(t.Context(), []store.ID{idOf(n)})
	if err != nil || len(records) != 1 {
		t.Fatalf("Lookup = %d records, %v", len(records), err)
	}
	return records[0]
}

func wantUnknown(t *testing.T, s store.Store, n int) {
	t.Helper()
	if records, err := s.Lookup(t.Context(), []store.ID{idOf(n)}); err != nil || len(records) != 0 {
		t.Fatalf("Lookup = %+v, %v, want nothing", records, err)
	}
}

func wantBody(t *testing.T, s store.Store, n int, want *store.Body) {
	t.Helper()
	got, err := store.ReadBody(t.Context(), s, idOf(n))
	if err != nil {
		t.Fatalf("Body: %v", err)
	}
	if !sameBody(got, *want) {
		t.Fatalf("Body = version %d, %q, want version %d, %q", got.Version, got.Data, want.Version, want.Data)
	}
}

func wantError(t *testing.T, what string, got, want error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Errorf("%s: error %v, want %v", what, got, want)
	}
}

func sameBody(a, b store.Body) bool {
	return a.Version == b.Version && a.Coding == b.Coding && string(a.Data) == string(b.Data)
}

// slack is what a store's clock may go on by itself during a test, on a machine that is busy.
const slack = 20 * time.Second

// near compares durations up to slack.
func near(a, b time.Duration) bool { return a == b || a-b < slack && b-a < slack }
