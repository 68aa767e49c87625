// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/feedpollard/pollard/cache"
	"github.com/feedpollard/pollard/internal/status"
	"github.com/feedpollard/pollard/policy"
)

// A URL that never gave a feed is unread, not failing: in its status, in a list and in
// the store's totals, before and after a restart.
func TestUnreadIsNotFailing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var good bool
		g := newGateway(t, func(ask policy.Ask) policy.Answer {
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
		want := map[string]status.State{
			"https://origin.test/parent": status.StateUnread, "https://origin.test/page": status.StateUnread,
			"https://origin.test/error": status.StateUnread, "https://origin.test/feed": status.StateFailing, configured: status.StateFailing,
		}
		for _, good = range []bool{true, false} {
			time.Sleep(2 * time.Hour) // the feed is due again
			for url := range want {
				g.get(url)
			}
		}
		for _, when := range []string{"in memory", "from the store"} {
			told, listed := map[string]status.State{}, map[string]status.State{}
			for _, a := range g.accounts() {
				told[string(a.URL)] = a.State
			}
			for seen, err := range g.Feeds(t.Context(), func(string, string, []cache.Group) bool { return true }) {
				if err != nil {
					t.Fatal(err)
				}
				listed[string(seen.URL)] = seen.State
			}
			if !maps.Equal(told, want) || !maps.Equal(listed, want) {
				t.Errorf("%s: %v, listed %v, want %v", when, told, listed, want)
			}
			if got := g.Summary(t.Context()).Feeds; got[status.StateFailing] != 2 || got[status.StateUnread] != 3 {
				t.Errorf("%s: the store counts %v", when, got)
			}
			g.restart()
		}
	})
}
