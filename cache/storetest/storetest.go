// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

// Package storetest is the contract of [cache.Store] as a test suite, so that
// every store is held to the same one.
package storetest

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/feedpollard/pollard/cache"
)

// Run holds a store to the contract. open returns a new and empty store; it
// closes the store and removes its data when the test that it is given ends.
func Run(t *testing.T, open func(t *testing.T) cache.Store) {
	for name, check := range map[string]func(t *testing.T, s cache.Store){
		"a new store is empty":                        newStoreIsEmpty,
		"the first reservation makes the record":      firstReservation,
		"a claim on another token is denied":          otherTokenDenied,
		"a claim on an unknown feed needs token zero": unknownFeedNeedsTokenZero,
		"a feed is granted once in a call":            grantedOnceInACall,
		"grants are in the order of the claims":       grantsInOrder,
		"times are kept to the millisecond":           timesToTheMillisecond,
		"a reservation keeps memo and body":           reservationKeepsTheRest,
		"one of many claims is granted":               oneOfManyClaims,

		"a commit stores everything":              commitStoresEverything,
		"a commit without a body keeps the body":  commitWithoutBody,
		"bodies follow each other":                bodiesFollowEachOther,
		"a body may be stored again":              bodyStoredAgain,
		"codings are kept whole":                  codingsAreKeptWhole,
		"version zero is no version":              versionZero,
		"a late commit is fenced":                 lateCommitIsFenced,
		"a commit without a record is fenced":     commitWithoutRecord,
		"commits of one token leave one of them":  commitsOfOneToken,
		"what goes in and comes out is a copy":    copies,
		"the latest time never moves back":        latestTime,
		"a forgotten feed is gone":                forgottenFeed,
		"a scan visits every record":              scanVisitsAll,
		"a scan stops at the visitor's error":     scanStops,
		"readers see whole versions":              readersSeeWholeVersions,
		"nothing happens after cancellation":      cancelled,
		"nothing happens after Close":             closed,
		"it behaves like a map in memory (rapid)": likeTheModel,
	} {
		t.Run(name, func(t *testing.T) { check(t, open(t)) })
	}
}

// start is a wall time with whole milliseconds.
var start = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

// feed is the name of the nth feed of a test.
func feed(n int) (id cache.ID, url string) {
	url = fmt.Sprintf("https://example.com/%d.xml", n)
	sum := sha256.Sum256([]byte(url))
	return cache.ID(sum[:len(id)]), url
}

// claim asks for a poll of the nth feed, one hour from start.
func claim(n int, token uint64) cache.Claim {
	id, url := feed(n)
	return cache.Claim{ID: id, URL: url, Token: token, Now: start, Next: start.Add(time.Hour)}
}

// outcome is that of a poll of the nth feed, with the given body.
func outcome(n int, token uint64, body *cache.Body) cache.Outcome {
	id, _ := feed(n)
	return cache.Outcome{ID: id, Token: token, Now: start, Next: start.Add(2 * time.Hour), Memo: []byte("memo"), Body: body}
}

// text is a body of one coding.
func text(version uint64, content string) *cache.Body {
	return &cache.Body{Version: version, Coded: map[string][]byte{"": []byte(content)}}
}

// reserve claims and fails the test unless the claim is granted.
func reserve(t *testing.T, s cache.Store, n int, token uint64) cache.Schedule {
	t.Helper()
	grants, err := s.Reserve(t.Context(), []cache.Claim{claim(n, token)})
	if err != nil {
		t.Fatalf("Reserve: %v", err)
	}
	if len(grants) != 1 || !grants[0].OK {
		t.Fatalf("Reserve with token %d = %+v, want a grant", token, grants)
	}
	return grants[0].Schedule
}

func commit(t *testing.T, s cache.Store, o cache.Outcome) {
	t.Helper()
	if err := s.Commit(t.Context(), o); err != nil {
		t.Fatalf("Commit: %v", err)
	}
}

func load(t *testing.T, s cache.Store, n int) cache.Record {
	t.Helper()
	id, _ := feed(n)
	r, err := s.Load(t.Context(), id)
	if err != nil {
		t.Fatalf("Load: %v", err)
	}
	return r
}

// wantBody fails the test unless the store has exactly this body.
func wantBody(t *testing.T, s cache.Store, n int, want *cache.Body) {
	t.Helper()
	id, _ := feed(n)
	got, err := s.Body(t.Context(), id)
	if err != nil {
		t.Fatalf("Body: %v", err)
	}
	if !sameBody(got, *want) {
		t.Fatalf("Body = version %d of %q, want version %d of %q", got.Version, got.Coded, want.Version, want.Coded)
	}
}

// wantRecord fails the test unless the store has exactly this record.
func wantRecord(t *testing.T, s cache.Store, n int, want cache.Record) {
	t.Helper()
	if got := load(t, s, n); !sameRecord(got, want) {
		t.Fatalf("Load = %+v, want %+v", got, want)
	}
}

func wantError(t *testing.T, what string, got, want error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Errorf("%s: error %v, want %v", what, got, want)
	}
}

func sameBody(a, b cache.Body) bool {
	return a.Version == b.Version && maps.EqualFunc(a.Coded, b.Coded, bytes.Equal)
}

func sameSchedule(a, b cache.Schedule) bool {
	return a.Next.Equal(b.Next) && a.Token == b.Token && a.Version == b.Version
}

func sameRecord(a, b cache.Record) bool {
	return a.ID == b.ID && a.URL == b.URL && bytes.Equal(a.Memo, b.Memo) && sameSchedule(a.Schedule, b.Schedule)
}

// scan collects all records in the order of their IDs.
func scan(t *testing.T, s cache.Store) []cache.Record {
	t.Helper()
	var all []cache.Record
	err := s.Scan(t.Context(), func(r cache.Record) error {
		all = append(all, r)
		return nil
	})
	if err != nil {
		t.Fatalf("Scan: %v", err)
	}
	slices.SortFunc(all, func(a, b cache.Record) int { return bytes.Compare(a.ID[:], b.ID[:]) })
	return all
}
