// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/feedpollard/pollard/caddymodule/internal/stage"
	"github.com/feedpollard/pollard/caddymodule/poller"
	"github.com/feedpollard/pollard/internal/origintest"
	"github.com/feedpollard/pollard/internal/status"
)

// With the line readers there are statistics of readers, by the name of their token and
// not by the secret. Without it there are none, and they have no page.
// Answers and subscribers are counted either way.
func TestGatewayRecordsReaders(t *testing.T) {
	for _, line := range []string{"readers", ""} {
		t.Run("line "+line, func(t *testing.T) {
			onGateway(t, line+
				"\nfeed /one.xml https://one.example/feed\nclients any\ntoken alice s3cret-of-alice-0001\ntoken bob 5ecret-of-bob-000002", func(t *testing.T, g *Gateway, _ *origintest.Origin) {
				tag := ask(t, g, "GET", "/one.xml", stage.Home).Header().Get("Etag")
				ask(t, g, "GET", "/one.xml", stage.Home, "If-None-Match", tag)
				ask(t, g, "GET", "/~s3cret-of-alice-0001/https://one.example/feed", stage.Outside)
				ask(t, g, "GET", "/~s3cret-of-alice-0001/https://two.example/gone", stage.Outside)
				ask(t, g, "GET", "/~wrong/https://one.example/feed", stage.Outside)
				if traffic := g.engine.Traffic(t.Context(), nil).Origins["https://one.example"]; traffic.Requests != 3 || traffic.Polls != 1 {
					t.Errorf("traffic %+v", traffic)
				}
				if n := g.engine.Subscribers("https://one.example/feed"); n != 2 {
					t.Errorf("%d subscribers, want 2", n)
				}
				const bob = "/~5ecret-of-bob-000002"
				page := ask(t, g, "GET", bob+"/-/readers", stage.Home)
				if linked := strings.Contains(ask(t, g, "GET", bob+"/-/feeds", stage.Home).Body.String(), "/-/readers"); linked != (line != "") {
					t.Errorf("a link to the page of readers: %t", linked)
				}
				got := stage.ReportOfReaders(t, "?url=https://one.example/feed")
				if line == "" {
					if all := stage.ReportOfReaders(t, ""); all.Total.Requests != 0 || len(all.Readers)+len(all.Families)+len(all.Feeds) != 0 {
						t.Errorf("%+v", all)
					}
					if page.Code != 404 {
						t.Errorf("the page of readers: %d", page.Code)
					}
					return
				}
				if page.Code != 200 {
					t.Errorf("the page of readers: %d", page.Code)
				}
				if want := (status.Answers{Full: 2, NotModified: 1}); got.Total.Answers != want || got.Total.Conditions.Current != 1 {
					t.Errorf("%+v, want %+v", got.Total, want)
				}
				tokens := make(map[string]int64)
				for _, row := range got.Readers {
					tokens[row.Token] += row.Requests
				}
				if len(tokens) != 2 || tokens["alice"] != 1 || tokens[""] != 2 {
					t.Errorf("requests by token: %v", tokens)
				}
			})
		})
	}
}

// The statistics of a feed's readers are dropped with the feed: when it has no readers
// any more, and when it is forgotten by hand. A feed that stays keeps its readers.
func TestReadersAreForgottenWithTheFeed(t *testing.T) {
	onGateway(t, "readers\nfeed /one.xml https://one.example/feed\nclients any", func(t *testing.T, g *Gateway, _ *origintest.Origin) {
		const stays, invented, unwanted = "https://one.example/feed", "https://two.example/page", "https://three.example/feed"
		known := func(feed string) string {
			report := stage.ReportOfReaders(t, "?url="+feed)
			return fmt.Sprint(g.engine.Subscribers(feed), " subscribers, ", len(report.Readers), " readers")
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
		const some, none = "1 subscribers, 1 readers", "0 subscribers, 0 readers"
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
