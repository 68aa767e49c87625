// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"fmt"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/feedpollard/pollard/caddymodule/internal/stage"
	"github.com/feedpollard/pollard/internal/origintest"
)

// A network that requests many new feeds uses up its own limit only. Existing feeds are still served to
// it.
func TestNewFeedsAreLimitedPerNetwork(t *testing.T) {
	onGateway(t, "feed /one.xml https://one.example/feed\nclients any\ntoken alice s3cret-of-alice-0001", func(t *testing.T, g *Gateway, _ *origintest.Origin) {
		for i := range 60 {
			if w := ask(t, g, "GET", fmt.Sprintf("/https://site%d.example/feed", i), "203.0.113.5"); w.Code == http.StatusTooManyRequests {
				t.Fatalf("feed %d: %d %s", i, w.Code, w.Body)
			}
		}
		w := ask(t, g, "GET", "/https://more.example/feed", "203.0.113.77")
		after, err := strconv.Atoi(w.Header().Get("Retry-After"))
		if w.Code != http.StatusTooManyRequests || err != nil || after < 1 || after > 10 {
			t.Fatalf("another address of the network: %d, Retry-After %q", w.Code, w.Header().Get("Retry-After"))
		}
		for name, r := range map[string][2]string{
			"a known feed":     {"/https://site0.example/feed", "203.0.113.5"},
			"a configured one": {"/one.xml", "203.0.113.5"},
			"the same by URL":  {"/https://one.example/feed", "203.0.113.5"},
			"another network":  {"/https://two.example/feed", "198.51.100.1"},
			"IPv6":             {"/https://three.example/feed", "2001:db8::1"},
			"a token":          {"/~s3cret-of-alice-0001/https://four.example/feed", "203.0.113.5"},
			"at home":          {"/https://five.example/feed", stage.Home},
		} {
			if w := ask(t, g, "GET", r[0], r[1]); w.Code != http.StatusOK {
				t.Errorf("%s: %d %s", name, w.Code, w.Body)
			}
		}
		time.Sleep(time.Duration(after) * time.Second)
		if w := ask(t, g, "GET", "/https://more.example/feed", "203.0.113.5"); w.Code != http.StatusOK {
			t.Errorf("after Retry-After: %d %s", w.Code, w.Body)
		}
		if w := ask(t, g, "GET", "/https://again.example/feed", "203.0.113.5"); w.Code != http.StatusTooManyRequests {
			t.Errorf("one more: %d", w.Code)
		}
	})
}
