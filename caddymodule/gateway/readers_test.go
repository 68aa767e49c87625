// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/feedpollard/pollard/caddymodule/internal/stage"
	"github.com/feedpollard/pollard/caddymodule/poller"
	"github.com/feedpollard/pollard/internal/origintest"
	"github.com/feedpollard/pollard/internal/status"
)

// A gateway counts its readers and names none of them, with or without the line of an earlier
// version: not in pages, their JSON or the admin API. It shows how many read a feed only if its
// configuration names the feed, and so for sums that a holder of a token sees.
func TestGatewayCountsAndNamesNoOne(t *testing.T) {
	sameKey(t)
	const alice, bob = "/~s3cret-of-alice-0001", "/~5ecret-of-bob-000002"
	for _, line := range []string{"readers", ""} {
		onGateway(t, line+"\nfeed /one.xml https://one.example/feed\nclients any\ntoken alice s3cret-of-alice-0001\ntoken bob 5ecret-of-bob-000002", func(t *testing.T, g *Gateway, _ *origintest.Origin) {
			tag := ask(t, g, "GET", "/one.xml", stage.Home, "User-Agent", "Alice/1").Header().Get("Etag")
			ask(t, g, "GET", "/one.xml", stage.Home, "If-None-Match", tag, "User-Agent", "Alice/1")
			ask(t, g, "GET", alice+"/https://one.example/feed", stage.Outside, "User-Agent", "Alice/1")
			for _, by := range []string{alice, bob} {
				ask(t, g, "GET", by+"/https://two.example/feed", stage.Outside, "User-Agent", "Alice/1")
			}
			ask(t, g, "GET", "/~wrong/https://one.example/feed", stage.Outside)
			if n := g.engine.Subscribers("https://one.example/feed"); n != 2 {
				t.Errorf("%d subscribers, want 2", n)
			}
			if all := stage.ReportOfReaders(t, ""); all.Total.Requests != 0 || len(all.Readers)+len(all.Families)+len(all.Feeds) != 0 {
				t.Errorf("%+v", all)
			}
			var saved status.Savings
			if err := json.Unmarshal(ask(t, g, "GET", bob+"/-/savings", stage.Home, "Accept", "application/json").Body.Bytes(), &saved); err != nil {
				t.Fatal(err)
			}
			if len(saved.Days) != 1 || saved.Days[0].Requests != 3 || saved.Total.Requests != 3 || len(saved.Origins) != 1 || saved.Origins[0].Requests != 3 {
				t.Errorf("savings: %+v", saved)
			}
			if w := ask(t, g, "GET", "/-/savings", stage.Outside); w.Code != 403 {
				t.Errorf("savings for any client: %d", w.Code)
			}
			for page, want := range map[string]struct {
				status int
				text   string
			}{
				"/-/readers": {404, ""}, "/-/feeds": {200, "two.example"}, "/-/savings": {200, "one.example"}, "/-/savings?all": {200, "<h2>By day"},
				"/-/feeds?url=https://one.example/feed": {200, "2 readers"}, "/-/feeds?url=https://two.example/feed": {200, "two.example"},
			} {
				text := ask(t, g, "GET", bob+page, stage.Home).Body.String()
				if w := ask(t, g, "GET", bob+page, stage.Home); w.Code != want.status || !strings.Contains(text, want.text) {
					t.Errorf("%s: %d %s", page, w.Code, text)
				}
				text += ask(t, g, "GET", bob+page, stage.Home, "Accept", "application/json").Body.String()
				if strings.Contains(text, "Alice") || strings.Contains(text, "alice") || strings.Contains(text, "/-/readers") ||
					strings.Contains(page, "two") && (strings.Contains(text, "<dt>Readers") || strings.Contains(text, `"subscribers":`) || strings.Contains(text, `"last_asked"`)) {
					t.Errorf("%s names readers, or counts those of a feed of others: %s", page, text)
				}
			}
		})
	}
}

// Its record begins as though a reader had asked, so that it is prefetched.
func TestLastAskedIsOfReaders(t *testing.T) {
	const feed = "https://one.example/feed"
	onGateway(t, "feed /one.xml "+feed, func(t *testing.T, g *Gateway, _ *origintest.Origin) {
		asked := func() bool {
			t.Helper()
			time.Sleep(2 * time.Second) // requests are counted within one
			c, err := g.engine.Opened(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			f, _, err := g.engine.Status(t.Context(), c, feed, 0)
			if err != nil {
				t.Fatal(err)
			}
			return !f.LastAsked.IsZero()
		}
		if asked() {
			t.Error("a chosen feed was asked for, before any reader did")
		}
		ask(t, g, "GET", "/one.xml", stage.Home)
		if !asked() {
			t.Error("a reader has not asked")
		}
	})
}

// The number of a feed's readers is dropped with the feed: when it has none any more, and when it is
// forgotten by hand. A feed that stays keeps its number.
func TestReadersAreForgottenWithTheFeed(t *testing.T) {
	onGateway(t, "feed /one.xml https://one.example/feed\nclients any", func(t *testing.T, g *Gateway, _ *origintest.Origin) {
		const stays, invented, unwanted = "https://one.example/feed", "https://two.example/page", "https://three.example/feed"
		known := func(feed string) string {
			return fmt.Sprint(g.engine.Subscribers(feed), " subscribers")
		}
		want := func(when, one, two, three string) {
			t.Helper()
			for feed, want := range map[string]string{stays: one, invented: two, unwanted: three} {
				if got := known(feed); got != want {
					t.Errorf("%s, %s: %s, want %s", when, feed, got, want)
				}
			}
		}
		for _, path := range []string{"/one.xml", "/" + invented, "/" + unwanted} {
			ask(t, g, "GET", path, stage.Home)
		}
		const some, none = "1 subscribers", "0 subscribers"
		want("at first", some, none, some)
		_, c := poller.Running()
		if err := g.engine.Forget(t.Context(), c, unwanted); err != nil {
			t.Fatal(err)
		}
		want("forgotten by hand", some, none, none)
		time.Sleep(4 * 24 * time.Hour) // the address that was not a feed has no readers
		want("days later", some, none, none)
	})
}
