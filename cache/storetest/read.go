// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/feedpollard/pollard/cache"
)

func newStoreIsEmpty(t *testing.T, s cache.Store) {
	ctx := t.Context()
	id, _ := feed(1)
	_, err := s.Load(ctx, id)
	wantError(t, "Load", err, cache.ErrNoRecord)
	_, err = s.Body(ctx, id)
	wantError(t, "Body", err, cache.ErrNoBody)
	if latest, err := s.Latest(ctx); err != nil || !latest.IsZero() {
		t.Errorf("Latest = %v, %v, want zero", latest, err)
	}
	if n := len(scan(t, s)); n != 0 {
		t.Errorf("Scan visited %d records", n)
	}
	if err := s.Forget(ctx, []cache.ID{id}); err != nil {
		t.Errorf("Forget of an unknown feed: %v", err)
	}
	if err := s.Forget(ctx, nil); err != nil {
		t.Errorf("Forget of nothing: %v", err)
	}
	if grants, err := s.Reserve(ctx, nil); err != nil || len(grants) != 0 {
		t.Errorf("Reserve of nothing = %v, %v", grants, err)
	}
}

func forgottenFeed(t *testing.T, s cache.Store) {
	for n := range 4 {
		reserve(t, s, n, 0)
		commit(t, s, outcome(n, 1, text(1, "content")))
	}
	reserve(t, s, 0, 1)
	first, _ := feed(0)
	second, _ := feed(1)
	unknown, _ := feed(99)
	if err := s.Forget(t.Context(), []cache.ID{second, unknown, first, second}); err != nil {
		t.Fatalf("Forget: %v", err)
	}
	for _, id := range []cache.ID{first, second} {
		_, err := s.Load(t.Context(), id)
		wantError(t, "Load", err, cache.ErrNoRecord)
		_, err = s.Body(t.Context(), id)
		wantError(t, "Body", err, cache.ErrNoBody)
	}
	if n := len(scan(t, s)); n != 2 {
		t.Errorf("%d records are left, want 2", n)
	}
	wantBody(t, s, 2, text(1, "content"))
	wantError(t, "commit of a poll under way", s.Commit(t.Context(), outcome(0, 2, text(2, "late"))), cache.ErrFenced)

	// The feed may come back, without anything of its former life.
	reserve(t, s, 1, 0)
	_, err := s.Body(t.Context(), second)
	wantError(t, "Body of the returned feed", err, cache.ErrNoBody)
	commit(t, s, outcome(1, 1, text(1, "anew")))
	wantBody(t, s, 1, text(1, "anew"))
}

func scanVisitsAll(t *testing.T, s cache.Store) {
	const feeds = 50
	for n := range feeds {
		reserve(t, s, n, 0)
		if n%2 == 0 {
			o := outcome(n, 1, nil)
			o.Memo = fmt.Append(nil, "memo ", n)
			if n%4 == 0 {
				o.Body = text(uint64(n+1), "content")
			}
			commit(t, s, o)
		}
	}
	all := scan(t, s)
	if len(all) != feeds {
		t.Fatalf("%d records, want %d", len(all), feeds)
	}
	seen := make(map[cache.ID]cache.Record)
	for _, r := range all {
		seen[r.ID] = r
	}
	for n := range feeds {
		id, _ := feed(n)
		if want := load(t, s, n); !sameRecord(seen[id], want) {
			t.Errorf("feed %d: visited %+v, loaded %+v", n, seen[id], want)
		}
	}
}

func scanStops(t *testing.T, s cache.Store) {
	for n := range 5 {
		reserve(t, s, n, 0)
	}
	enough := errors.New("enough")
	visited := 0
	err := s.Scan(t.Context(), func(cache.Record) error {
		if visited++; visited == 3 {
			return enough
		}
		return nil
	})
	wantError(t, "Scan", err, enough)
	if visited != 3 {
		t.Errorf("visited %d records, want 3", visited)
	}

	ctx, cancel := context.WithCancel(t.Context())
	visited = 0
	err = s.Scan(ctx, func(cache.Record) error {
		visited++
		cancel()
		return nil
	})
	wantError(t, "Scan of a caller who gave up", err, context.Canceled)
	if visited == 5 {
		t.Error("the scan went on after its cancellation")
	}
}

// readersSeeWholeVersions reads while versions change.
func readersSeeWholeVersions(t *testing.T, s cache.Store) {
	const feeds, versions = 3, 15
	content := func(version uint64) string { return strings.Repeat(fmt.Sprint(version, " "), 300) }
	var (
		writers, readers sync.WaitGroup
		over             atomic.Bool
	)
	for n := range feeds {
		reserve(t, s, n, 0)
		o := outcome(n, 1, text(1, content(1)))
		o.Memo = []byte("1")
		commit(t, s, o)
		writers.Go(func() {
			for version := uint64(2); version <= versions; version++ {
				o := outcome(n, version, text(version, content(version)))
				o.Memo = fmt.Append(nil, version)
				grants, err := s.Reserve(t.Context(), []cache.Claim{claim(n, version-1)})
				if err != nil || !grants[0].OK {
					t.Errorf("feed %d: Reserve = %v, %v", n, grants, err)
					return
				}
				if err := s.Commit(t.Context(), o); err != nil {
					t.Errorf("feed %d: Commit: %v", n, err)
					return
				}
			}
		})
		readers.Go(func() {
			for !over.Load() {
				readWhole(t, s, n, content)
			}
		})
	}
	readers.Go(func() {
		for !over.Load() {
			err := s.Scan(t.Context(), func(r cache.Record) error { return wholeRecord(r) })
			if err != nil {
				t.Errorf("Scan: %v", err)
			}
		}
	})
	writers.Wait()
	over.Store(true)
	readers.Wait()
	for n := range feeds {
		wantBody(t, s, n, text(versions, content(versions)))
	}
}

// readWhole reads record and body of a feed and compares them.
func readWhole(t *testing.T, s cache.Store, n int, content func(uint64) string) {
	id, _ := feed(n)
	r, err := s.Load(t.Context(), id)
	if err == nil {
		err = wholeRecord(r)
	}
	if err != nil {
		t.Errorf("Load: %v", err)
	}
	b, err := s.Body(t.Context(), id)
	if err != nil {
		t.Errorf("Body: %v", err)
	} else if b.Version < r.Version || string(b.Coded[""]) != content(b.Version) {
		t.Errorf("Body: version %d after version %d, content %.20q", b.Version, r.Version, b.Coded[""])
	}
}

// wholeRecord fails unless the memo is that of the version.
func wholeRecord(r cache.Record) error {
	if string(r.Memo) != fmt.Sprint(r.Version) || r.Token < r.Version || r.Token > r.Version+1 {
		return fmt.Errorf("torn record: version %d, token %d, memo %q", r.Version, r.Token, r.Memo)
	}
	return nil
}

// operations are all calls of a store, on the first feed with the given token.
func operations(ctx context.Context, s cache.Store, token uint64) map[string]error {
	id, _ := feed(1)
	_, reserved := s.Reserve(ctx, []cache.Claim{claim(1, token)})
	_, loaded := s.Load(ctx, id)
	_, body := s.Body(ctx, id)
	_, latest := s.Latest(ctx)
	return map[string]error{
		"Reserve":             reserved,
		"Commit":              s.Commit(ctx, outcome(1, token, nil)),
		"Commit with a body":  s.Commit(ctx, outcome(1, token, text(9, "content"))),
		"Load":                loaded,
		"Body":                body,
		"Scan":                s.Scan(ctx, func(cache.Record) error { return nil }),
		"Forget":              s.Forget(ctx, []cache.ID{id}),
		"Latest":              latest,
		"Reserve, unknown":    func() error { _, err := s.Reserve(ctx, []cache.Claim{claim(2, 0)}); return err }(),
		"Forget, two at once": s.Forget(ctx, []cache.ID{id, id}),
	}
}

func cancelled(t *testing.T, s cache.Store) {
	reserve(t, s, 1, 0)
	commit(t, s, outcome(1, 1, text(1, "content")))
	before := load(t, s, 1)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for what, err := range operations(ctx, s, 1) {
		wantError(t, what, err, context.Canceled)
	}
	wantRecord(t, s, 1, before)
	wantBody(t, s, 1, text(1, "content"))
	if n := len(scan(t, s)); n != 1 {
		t.Errorf("%d records, want 1", n)
	}
}

func closed(t *testing.T, s cache.Store) {
	reserve(t, s, 1, 0)
	for range 2 {
		if err := s.Close(); err != nil {
			t.Fatalf("Close: %v", err)
		}
	}
	for what, err := range operations(t.Context(), s, 1) {
		if err == nil {
			t.Errorf("%s: no error after Close", what)
		}
	}
}
