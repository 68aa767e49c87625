// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package sqlite_test

import (
	"context"
	"fmt"
	"time"

	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/cache/store/sqlite"
)

// The right to poll a feed is claimed before the poll, and the outcome is committed with the
// token of the claim.
func Example() {
	ctx := context.Background()
	s := sqlite.NewMemory(nil) // Open keeps the store in a directory
	defer s.Close()

	claim := store.Claim{
		ID: store.IDOf("https://example.com/feed.xml"), URL: "https://example.com/feed.xml", Hold: time.Hour,
		Host: store.Host{Name: "example.com", Spacing: 2 * time.Second},
	}
	leases, err := s.Claim(ctx, []store.Claim{claim})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("granted:", leases[0].Denied == "")

	again, _ := s.Claim(ctx, []store.Claim{claim})
	fmt.Println("again:", again[0].Denied)

	err = s.Commit(ctx, store.Outcome{
		ID: claim.ID, Token: leases[0].Token, In: 2 * time.Hour, Hold: time.Hour, State: store.StateFresh,
		Body: &store.Body{Version: 1, Coding: "identity", Data: []byte("<rss/>")},
		Host: claim.Host,
	})
	records, _ := s.Lookup(ctx, []store.ID{claim.ID})
	fmt.Println("stored:", records[0].State, records[0].Version, err)
	// Output:
	// granted: true
	// again: not-due
	// stored: fresh 1 <nil>
}
