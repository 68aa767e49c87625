// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/feedpollard/pollard/cache/store"
)

func newStoreIsEmpty(t *testing.T, h Harness) {
	s := h.open(t)
	wantUnknown(t, s, 1)
	_, err := store.ReadBody(t.Context(), s, idOf(1), 1)
	wantError(t, "Body", err, store.ErrNoBody)
	wantError(t, "Forget", s.Forget(t.Context(), idOf(1)), store.ErrNoRecord)
	wantError(t, "Commit", s.Commit(t.Context(), outcome(1, 0, nil)), store.ErrFenced)
	wantError(t, "Commit", s.Commit(t.Context(), outcome(1, 1, text(1, "x"))), store.ErrFenced)
	touch(t, s, 1, 0)
	wantUnknown(t, s, 1)
	if all, err := s.Records(t.Context(), store.ID{}, 10); err != nil || len(all) != 0 {
		t.Errorf("Records = %v, %v", all, err)
	}
	if leases, _, err := s.ClaimDue(t.Context(), store.DueQuery{Limit: 10}); err != nil || len(leases) != 0 {
		t.Errorf("ClaimDue = %v, %v", leases, err)
	}
}

func leasesInOrder(t *testing.T, h Harness) {
	s := h.open(t)
	grant(t, s, claim(3))
	claims := []store.Claim{claim(4), claim(3), claim(2), claim(4), claim(1)}
	claims[0].Host, claims[2].Host = host("one"), host("one")
	leases, err := s.Claim(t.Context(), claims)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []store.Denial{"", store.DeniedNotDue, store.DeniedBusy, store.DeniedNotDue, ""} {
		if leases[i].ID != claims[i].ID || leases[i].URL != claims[i].URL || leases[i].Denied != want {
			t.Errorf("lease %d is %+v, want denial %q", i, leases[i], want)
		}
	}
}

func claimByHand(t *testing.T, h Harness) {
	s := h.open(t)
	byHand := claim(1)
	byHand.Floor = 10 * time.Minute
	commit(t, s, outcome(1, grant(t, s, byHand), nil))
	deny(t, s, claim(1), store.DeniedNotDue, 2*time.Hour)
	deny(t, s, byHand, store.DeniedNotDue, 10*time.Minute)
	h.Sleep(11 * time.Minute)
	deny(t, s, claim(1), store.DeniedNotDue, 109*time.Minute)
	o := outcome(1, grant(t, s, byHand), nil)
	o.In, o.State = store.Ended, store.StateGone
	commit(t, s, o)
	h.Sleep(1000 * time.Hour)
	deny(t, s, claim(1), store.DeniedNotDue, store.Ended)
	grant(t, s, byHand)
}

// together runs as many goroutines.
func together(n int, do func(n int)) {
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { do(i) })
	}
	wg.Wait()
}

// handles opens two handles if the store is shared, and otherwise one.
func handles(t *testing.T, h Harness) [2]store.Store {
	one := h.open(t)
	if !h.Shared {
		return [2]store.Store{one, one}
	}
	return [2]store.Store{one, h.open(t)}
}

func oneOfManyClaims(t *testing.T, h Harness) {
	s := handles(t, h)
	tokens := make(map[store.Token]bool)
	for range 5 {
		var mu sync.Mutex
		granted := 0
		together(16, func(n int) {
			leases, err := s[n%2].Claim(t.Context(), []store.Claim{claim(1)})
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Error(err)
			} else if leases[0].Denied == "" {
				granted++
				tokens[leases[0].Token] = true
			}
		})
		if granted != 1 {
			t.Fatalf("%d of 16 claims were granted", granted)
		}
		h.Sleep(2 * time.Hour)
	}
	if len(tokens) != 5 {
		t.Errorf("5 grants had %d tokens", len(tokens))
	}
}

func oneOfManyHosts(t *testing.T, h Harness) {
	s := handles(t, h)
	var mu sync.Mutex
	denials := make(map[store.Denial]int)
	together(16, func(n int) {
		c := claim(n)
		c.Host = host("one")
		leases, err := s[n%2].Claim(t.Context(), []store.Claim{c})
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			t.Error(err)
			return
		}
		denials[leases[0].Denied]++
	})
	if want := map[store.Denial]int{"": 1, store.DeniedBusy: 15}; !maps.Equal(denials, want) {
		t.Errorf("denials are %v, want %v", denials, want)
	}
}

func dueOnce(t *testing.T, h Harness) {
	s := handles(t, h)
	const feeds = 40
	var claims []store.Claim
	for n := range feeds {
		c := claim(n)
		c.Configured, c.Host = true, store.Host{Name: fmt.Sprint("host ", n)}
		claims = append(claims, c)
	}
	if _, err := s[0].Claim(t.Context(), claims); err != nil {
		t.Fatal(err)
	}
	h.Sleep(2 * time.Hour)
	var mu sync.Mutex
	granted := make(map[store.ID]int)
	together(8, func(n int) {
		for {
			leases, _, err := s[n%2].ClaimDue(t.Context(), store.DueQuery{Limit: 3})
			if err != nil {
				t.Error(err)
			}
			if len(leases) == 0 {
				return
			}
			mu.Lock()
			for _, l := range leases {
				granted[l.ID]++
			}
			mu.Unlock()
		}
	})
	// The last call finds nothing, but one that got nothing may have been a little early.
	if leases, _, err := s[0].ClaimDue(t.Context(), store.DueQuery{Limit: feeds}); err != nil {
		t.Fatal(err)
	} else {
		for _, l := range leases {
			granted[l.ID]++
		}
	}
	if len(granted) != feeds || slices.Max(slices.Collect(maps.Values(granted))) != 1 {
		t.Errorf("grants are %v, want one of each of %d", granted, feeds)
	}
}

// trimTogether has two nodes make room at the same moment. They drop no more than one would.
func trimTogether(t *testing.T, h Harness) {
	const feeds, size = 60, 50_000
	s := handles(t, h)
	for n := range feeds {
		c := claim(n)
		c.By = store.OwnerOf(store.KindPublic, fmt.Sprint(n%7))
		commit(t, s[0], outcome(n, grant(t, s[0], c), text(1, strings.Repeat("x", size))))
	}
	for part := int64(4); part > 1; part-- {
		before, err := s[0].Totals(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		budget := before.Used - before.Bytes/part
		together(6, func(n int) {
			if _, err := s[n%2].Trim(t.Context(), budget); err != nil {
				t.Error(err)
			}
		})
		if after, err := s[1].Totals(t.Context()); err != nil || after.Used > budget || after.Used < budget-3*size {
			t.Errorf("%d bytes are used, %v, want %d", after.Used, err, budget)
		}
	}
}

func dueOneByOne(t *testing.T, h Harness) {
	s := h.open(t)
	for n := range 5 {
		c := claim(n)
		c.Configured, c.Host = true, host("one")
		grant(t, s, c)
		h.Sleep(time.Minute)
	}
	h.Sleep(2 * time.Hour)
	for n := range 5 {
		leases, wait, err := s.ClaimDue(t.Context(), store.DueQuery{Limit: 9, Except: []string{"other"}})
		if err != nil || len(leases) != 1 || leases[0].ID != idOf(n) || leases[0].Hold != time.Hour {
			t.Fatalf("round %d: %+v, %v, want feed %d", n, leases, err, n)
		}
		if wait <= 0 || n < 4 && wait > time.Minute {
			t.Errorf("round %d: to wait %v", n, wait)
		}
		leases, _, err = s.ClaimDue(t.Context(), store.DueQuery{Limit: 9})
		if err != nil || len(leases) != 0 {
			t.Fatalf("after round %d: %+v, %v", n, leases, err)
		}
		h.Sleep(time.Minute)
		leases, _, err = s.ClaimDue(t.Context(), store.DueQuery{Limit: 9, Except: []string{"one"}})
		if err != nil || len(leases) != 0 {
			t.Fatalf("busy with one after round %d: %+v, %v", n, leases, err)
		}
	}
}

func hops(t *testing.T, h Harness) {
	s := h.open(t)
	hop := func(n int, yield bool, want store.Passage) {
		t.Helper()
		got, err := s.Hop(t.Context(), store.Hop{ID: idOf(n), Floor: 10 * time.Minute, Yield: yield, Host: host("one")})
		if err != nil || got.Denied != want.Denied || !near(got.Wait, want.Wait) {
			t.Fatalf("Hop = %+v, %v, want %+v", got, err, want)
		}
	}
	// An unknown URL: it is asked now, and so is its host.
	hop(1, true, store.Passage{})
	wantUnknown(t, s, 1)
	hop(1, true, store.Passage{Denied: store.DeniedNotDue, Wait: 10 * time.Minute})
	hop(2, true, store.Passage{Denied: store.DeniedBusy, Wait: time.Minute})
	c := claim(3)
	c.Host = host("one")
	deny(t, s, c, store.DeniedBusy, time.Minute)
	// A redirect to a feed does not keep its first poll off.
	h.Sleep(time.Minute)
	grant(t, s, claim(1))

	// A feed has polls of its own; its polls are hops of others no more than that.
	hop(1, true, store.Passage{Denied: store.DeniedTaken})
	hop(1, false, store.Passage{Denied: store.DeniedNotDue, Wait: 10 * time.Minute})
	h.Sleep(55 * time.Minute)
	hop(1, false, store.Passage{})
	deny(t, s, claim(1), store.DeniedNotDue, 10*time.Minute)
	h.Sleep(11 * time.Minute)
	o := outcome(1, grant(t, s, claim(1)), nil)
	o.In = store.Ended
	o.Pauses = []store.Pause{{Scope: "domain domain of one", For: time.Hour, Why: "because"}}
	commit(t, s, o)
	h.Sleep(30 * time.Minute)
	hop(1, true, store.Passage{Denied: store.DeniedPaused, Wait: 30 * time.Minute})
	h.Sleep(31 * time.Minute)
	hop(1, true, store.Passage{})
	if r := lookup(t, s, 1); r.In != store.Ended {
		t.Errorf("a hop brought an ended feed back in %v", r.In)
	}
}

func tokens(t *testing.T, h Harness) {
	s := h.open(t)
	seen := make(map[store.Token]bool)
	for n := range 12 {
		token := grant(t, s, claim(1))
		if seen[token] {
			t.Fatalf("token %d came again after %v", token, seen)
		}
		seen[token] = true
		if err := s.Forget(t.Context(), idOf(1)); err != nil {
			t.Fatal(err)
		}
		wantError(t, "Commit after Forget", s.Commit(t.Context(), outcome(1, token, text(1, "x"))), store.ErrFenced)
		deny(t, s, claim(1), store.DeniedNotDue, time.Hour) // its last poll counts
		h.Sleep(2 * time.Hour)
		if n%3 == 2 {
			s.Close()
			s = h.open(t)
		}
	}
	for range 3 {
		token := grant(t, s, claim(1))
		for old := range seen {
			wantError(t, "Commit of an old token", s.Commit(t.Context(), outcome(1, old, text(1, "x"))), store.ErrFenced)
		}
		wantError(t, "Commit of a token to come", s.Commit(t.Context(), outcome(1, token+1, nil)), store.ErrFenced)
		wantError(t, "Commit of no token", s.Commit(t.Context(), outcome(1, 0, nil)), store.ErrFenced)
		if r := lookup(t, s, 1); r.Version != 0 || r.Token != token || len(r.Memo) != 0 {
			t.Errorf("a fenced commit left %+v", r)
		}
		seen[token] = true
		h.Sleep(2 * time.Hour)
	}
}
