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
