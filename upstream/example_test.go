// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package upstream_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"net/netip"
	"strings"
	"time"

	"github.com/feedpollard/pollard/internal/feedurl"
	"github.com/feedpollard/pollard/internal/origintest"
	"github.com/feedpollard/pollard/policy"
	"github.com/feedpollard/pollard/upstream"
)

// A first poll of a feed gets it. The second sends the validators of the first, and the
// origin answers 304.
func Example() {
	origin := origintest.New(origintest.Versioned(origintest.Feed(1, ""), `"1"`))
	server := httptest.NewServer(origin)
	defer server.Close()

	client := upstream.New()
	defer client.Close()
	client.Apply(upstream.Settings{
		Version: "1.0", Contact: "https://example.org/about",
		Private: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, // the guard refuses private addresses
		Hosts:   []upstream.HostRule{{Pattern: "127.0.0.1", Spacing: time.Millisecond}},
	})

	url := feedurl.MustParse(server.URL + "/feed.xml")
	first := client.Poll(context.Background(), policy.Ask{URL: url, Timeout: time.Minute, MaxBody: 1 << 20})
	fmt.Println(first.Status, strings.Contains(string(first.Body), "<rss"), first.Err)

	validators := policy.Validators{URL: first.URL, ETag: first.Header.Get("ETag")}
	second := client.Poll(context.Background(), policy.Ask{URL: url, Timeout: time.Minute, Validators: validators})
	fmt.Println(second.Status, len(second.Body))

	for _, request := range origin.Requests() {
		fmt.Println(strings.TrimSpace(request.Header.Get("User-Agent") + " " + request.Header.Get("If-None-Match")))
	}
	// Output:
	// 200 true <nil>
	// 304 0
	// Pollard/1.0 (+https://example.org/about)
	// Pollard/1.0 (+https://example.org/about) "1"
}
