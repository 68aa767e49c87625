// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package upstream_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"time"

	"github.com/feedpollard/pollard/internal/feedurl"
	"github.com/feedpollard/pollard/policy"
	"github.com/feedpollard/pollard/upstream"
)

// Two polls of a feed. The second sends the validators of the first answer, so that nothing is downloaded
// again. The third may not reach the address of the site.
func ExampleClient_Poll() {
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"1"`)
		if r.Header.Get("If-None-Match") == `"1"` {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		fmt.Fprint(w, "<rss/>")
	}))
	defer site.Close()

	c := upstream.New(upstream.WithoutPacing()) // by default two seconds apart
	defer c.Close()
	c.Apply(upstream.Settings{
		Contact: "https://example.org/about",                          // for the User-Agent
		Private: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, // the only private addresses that polls may reach
	})

	ask := policy.Ask{URL: feedurl.MustParse(site.URL + "/feed"), Timeout: 10 * time.Second, MaxBody: 1 << 20}
	first := c.Poll(context.Background(), ask)
	fmt.Println(first.Status, string(first.Body))

	ask.Validators = policy.ValidatorsOf(first)
	second := c.Poll(context.Background(), ask)
	fmt.Println(second.Status, len(second.Body))

	c.Apply(upstream.Settings{}) // now they may reach none
	third := c.Poll(context.Background(), ask)
	fmt.Println("failure:", third.Failure)
	// Output:
	// 200 <rss/>
	// 304 0
	// failure: address
}
