// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/feedpollard/pollard/policy"
)

// What never gave a feed is told apart from feeds that fail: in an account, at a
// glance, and in what the store counts, before and after a restart.
func TestNoFeedIsNoFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var good bool
		g := newGateway(t, "", func(ask policy.Ask) policy.Answer {
			switch {
			case strings.HasSuffix(ask.URL.String(), "/page"):
				return failed(200, policy.FailureNotFeed)
			case strings.HasSuffix(ask.URL.String(), "/error"):
				return failed(500, policy.FailureStatus)
			case strings.HasSuffix(ask.URL.String(), "/feed") && good:
				return ok(rss(1, ""), "ETag", `"1"`)
			}
			return failed(404, policy.FailureNotFound)
		})
		const configured = "https://origin.test/configured"
		g.settings.Feeds = []string{configured}
		g.open()
		defer g.close()
		want := map[string]string{
			"https://origin.test/parent": "no-feed", "https://origin.test/page": "no-feed",
			"https://origin.test/error": "failing", "https://origin.test/feed": "failing", configured: "failing",
		}
		for _, good = range []bool{true, false} {
			time.Sleep(2 * time.Hour) // the feed is due again
			for url := range want {
				g.get(url)
			}
		}
		for _, when := range []string{"in memory", "from the store"} {
			accounts, glances := map[string]string{}, map[string]string{}
			for _, a := range g.accounts() {
				accounts[a.URL] = a.Condition
			}
			for seen, err := range g.Glances(t.Context(), "http") {
				if err != nil {
					t.Fatal(err)
				}
				glances[seen.URL] = seen.Condition
			}
			if !maps.Equal(accounts, want) || !maps.Equal(glances, want) {
				t.Errorf("%s: %v, at a glance %v, want %v", when, accounts, glances, want)
			}
			if got := g.Summary(t.Context()).Feeds; got["failing"] != 3 || got["cold"] != 2 {
				t.Errorf("%s: the store counts %v", when, got)
			}
			g.restart()
		}
	})
}
