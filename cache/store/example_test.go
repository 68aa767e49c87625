// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"context"
	"fmt"
	"time"

	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/cache/store/sqlite"
)

// A poll is claimed before it is sent, and its outcome is committed with the token of the claim. Until the next poll is
// due, a claim is refused with the time to wait.
func ExampleStore() {
	var s store.Store = sqlite.NewMemory(func() time.Time { return time.Date(2026, time.March, 4, 12, 0, 0, 0, time.UTC) })
	ctx := context.Background()
	const url = "https://example.com/feed.xml"
	claim := []store.Claim{{
		ID: store.IDOf(url), URL: url, Hold: time.Hour, // for so long, no other claim is granted after a crash
		Host: store.Host{Site: "example.com", Spacing: 2 * time.Second},
	}}

	leases, err := s.Claim(ctx, claim)
	if err != nil || leases[0].Denied != "" {
		fmt.Println(leases, err)
		return
	}
	fmt.Println("granted; here the feed is polled")

	err = s.Commit(ctx, store.Outcome{
		ID: store.IDOf(url), Token: leases[0].Token, State: store.StateFresh, Site: "example.com",
		In:   30 * time.Minute, // to the next poll
		Body: &store.Body{Version: 1, Coding: "identity", Data: []byte("<rss/>")},
	})
	if err != nil {
		fmt.Println(err)
		return
	}

	leases, err = s.Claim(ctx, claim)
	if err != nil {
		fmt.Println(err)
		return
	}
	again := leases[0]
	fmt.Printf("denied: %s for %v; version %d is stored\n", again.Denied, again.Wait, again.Version)
	// Output:
	// granted; here the feed is polled
	// denied: not-due for 30m0s; version 1 is stored
}
