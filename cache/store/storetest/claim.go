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

// concurrently runs as many goroutines.
func concurrently(n int, do func(n int)) {
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
	concurrently(8, func(n int) {
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

// trimConcurrently has two nodes make room at the same moment. They drop no more than one would.
func trimConcurrently(t *testing.T, h Harness) {
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
		concurrently(6, func(n int) {
			if _, err := s[n%2].Trim(t.Context(), budget); err != nil {
				t.Error(err)
			}
		})
		if after, err := s[1].Totals(t.Context()); err != nil || after.Used > budget || after.Used < budget-3*size {
			t.Errorf("%d bytes are used, %v, want %d", after.Used, err, budget)
		}
	}
}
