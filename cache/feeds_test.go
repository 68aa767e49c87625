// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/internal/status"
	"github.com/feedpollard/pollard/policy"
)

// Who has asked for a feed outlives memory and the process, although its next poll is
// hours away.
func TestAskersOutliveMemory(t *testing.T) {
	slow(t)
	for name, lose := range map[string]func(g *gateway){
		"a stop": func(g *gateway) { g.restart() },
		"eviction": func(g *gateway) {
			for i := range 60 {
				g.get(fmt.Sprintf("https://origin.test/%d", i))
			}
			time.Sleep(2 * time.Minute)
		},
	} {
		bubble(t, name, func(t *testing.T) {
			g := newGateway(t, func(policy.Ask) policy.Answer { return ok(rss(2, ""), "Cache-Control", "max-age=80000") })
			g.budget = 100 << 10
			g.open()
			alice, bob := store.OwnerOf(store.KindNamed, "alice"), store.OwnerOf(store.KindNamed, "bob")
			ask := func(by store.Owner) { g.askAs(by, feedURL) }
			ask(alice)
			time.Sleep(time.Hour)
			ask(bob)
			askers := func() (asked []store.Owner) {
				g.Shows(t.Context(), feedURL, func(_, _ string, askers []store.Owner) bool { asked = askers; return true })
				return asked
			}
			lose(g)
			if asked := askers(); !slices.Contains(asked, alice) || !slices.Contains(asked, bob) {
				t.Errorf("%x have asked, want %x and %x", asked, alice, bob)
			}
			if name != "a stop" {
				return
			}
			time.Sleep(31 * 24 * time.Hour)
			if asked := askers(); len(asked) != 0 {
				t.Errorf("after 31 days: %x", asked)
			}
		})
	}
}

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
			shown, listed := map[string]status.State{}, map[string]status.State{}
			for _, a := range g.accounts() {
				shown[string(a.URL)] = a.State
			}
			for seen, err := range g.Feeds(t.Context(), func(string, string, []store.Owner) bool { return true }) {
				if err != nil {
					t.Fatal(err)
				}
				listed[string(seen.URL)] = seen.State
			}
			if !maps.Equal(shown, want) || !maps.Equal(listed, want) {
				t.Errorf("%s: %v, listed %v, want %v", when, shown, listed, want)
			}
			if got := g.Summary(t.Context()).Feeds; got[status.StateFailing] != 2 || got[status.StateUnread] != 3 {
				t.Errorf("%s: the store counts %v", when, got)
			}
			g.restart()
		}
	})
}

// Lists have the feeds of a new configuration as soon as it is in force, also while the store is still told of
// them. They do not wait for a store that hangs.
func TestListsHaveTheConfiguredFeeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGateway(t, func(policy.Ask) policy.Answer { return ok(rss(1, "")) }).open()
		synctest.Wait()
		slowly := 500 * time.Millisecond
		g.store.hook(func(_ context.Context, call string) error {
			if call == "Restore" {
				time.Sleep(slowly)
			}
			return nil
		}, nil)
		all := func(string, string, []store.Owner) bool { return true }
		for i, count := range []func() int{
			func() (n int) {
				for range g.Feeds(t.Context(), all) {
					n++
				}
				return n
			},
			func() int { return len(g.accounts()) },
			func() int { return int(g.Summary(t.Context()).Feeds[status.StateDue]) },
			func() int {
				return 3 + len(must(g.StatusesOf(t.Context(), []store.ID{store.IDOf("https://origin.test/3")})))
			},
		} {
			g.settings.Feeds = append(g.settings.Feeds, fmt.Sprintf("https://origin.test/%d", i))
			g.Apply(g.settings)
			if n := count(); n != i+1 {
				t.Errorf("list %d has %d feeds, want %d", i, n, i+1)
			}
		}
		slowly = 5 * time.Second // hangs
		g.settings.Feeds = append(g.settings.Feeds, "https://origin.test/4")
		g.Apply(g.settings)
		if began := time.Now(); len(g.accounts()) != 4 || time.Since(began) > time.Second {
			t.Errorf("a list waited for %v", time.Since(began))
		}
		time.Sleep(slowly)
	})
}

// A feed that fails and is due counts as failing, and not for another one that is fresh.
func TestFailingFeedIsNotDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGateway(t, func(ask policy.Ask) policy.Answer {
			if ask.URL.Path() == "/fresh" {
				return ok(rss(1, ""), "Cache-Control", "max-age=86400")
			}
			if len(ask.Validators.ETag) > 0 {
				return failed(500, policy.FailureStatus)
			}
			return ok(rss(1, ""), "ETag", `"1"`, "Cache-Control", "max-age=3600")
		}).open()
		const failing = "https://failing.test/"
		g.get("https://origin.test/fresh")
		g.get(failing)
		time.Sleep(2 * time.Hour)
		g.get(failing)
		time.Sleep(10 * time.Hour)
		s := g.Summary(t.Context())
		if s.Overdue != 1 || s.Feeds[status.StateFailing] != 1 || s.Feeds[status.StateFresh] != 1 || s.Feeds[status.StateDue] != 0 {
			t.Errorf("%d overdue of %v", s.Overdue, s.Feeds)
		}
	})
}

// A feed that never worked is failing when two polls have failed that feed readers asked for. A typing error,
// a person's visit and what is deleted are not.
func TestFeedThatNeverWorkedIsFailing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGateway(t, func(ask policy.Ask) policy.Answer {
			switch ask.URL.Path() {
			case "/gone":
				return failed(410, policy.FailureGone)
			case "/busy":
				return failed(429, policy.FailureRateLimited)
			}
			return failed(502, policy.FailureStatus)
		}).open()
		g.by = store.OwnerOf(store.KindNamed, "household")
		read := func(path string, times int, program bool) {
			for range times {
				must(g.Feed(t.Context(), "https://origin.test"+path)).Ask(g.by, program)
				g.get("https://origin.test" + path)
				time.Sleep(26 * time.Hour)
			}
		}
		want := func(when string, want map[status.State]int64) {
			t.Helper()
			got := g.Summary(t.Context()).Feeds
			maps.DeleteFunc(got, func(_ status.State, n int64) bool { return n == 0 })
			if !maps.Equal(got, want) {
				t.Errorf("%s: %v, want %v", when, got, want)
			}
		}
		read("/typo", 1, true)
		want("a typing error", map[status.State]int64{status.StateUnread: 1})
		read("/gone", 1, true)
		want("gone", map[status.State]int64{status.StateGone: 1, status.StateUnread: 1})
		read("/busy", 1, true)
		want("refused, and the first is forgotten", map[status.State]int64{status.StateGone: 1, status.StateWaiting: 1})
		time.Sleep(3 * 24 * time.Hour)
		read("/visit", 2, false)
		want("a person's visits", map[status.State]int64{status.StateUnread: 1})
		read("/down", 2, true)
		g.restart()
		want("down since the first day", map[status.State]int64{status.StateFailing: 1})
		time.Sleep(8 * 24 * time.Hour)
		want("deleted", map[status.State]int64{})
		g.by = store.OwnerOf(store.KindNamed, "alice")
		read("/daily", 6, true)
		want("never worked", map[status.State]int64{status.StateFailing: 1})
		time.Sleep(3 * 24 * time.Hour)
		want("deleted after many days", map[status.State]int64{})
	})
}
