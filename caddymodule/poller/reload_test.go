// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package poller_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/feedpollard/pollard/caddymodule/internal/stage"
	"github.com/feedpollard/pollard/internal/origintest"
)

// A configuration that does not start leaves no feeds, and no polls of them.
func TestFailedReloadLeavesNoFeed(t *testing.T) {
	var one, two atomic.Int64
	web := func(r *http.Request) (int, string, http.Header) {
		if r.URL.Host == "one.example" {
			one.Add(1)
		} else {
			two.Add(1)
		}
		return 200, stage.Sample, nil
	}
	stage.RunGateways(t, web, func(t *testing.T, o *stage.Stage) {
		o.MustLoadFeeds("", "prefetch", "feed /one.xml https://one.example/feed")
		const failing = `"failing":{},`
		for _, apps := range []string{failing, failing, failing, `"events":{"subscriptions":[{"handlers":[{"handler":"none"}]}]},`} {
			o.Apps = apps // which start in any order
			if o.LoadFeeds("", "prefetch", "feed /one.xml https://one.example/feed\nfeed /two.xml https://two.example/feed") == nil {
				t.Fatalf("it loads with %s", apps)
			}
			time.Sleep(25 * time.Hour)
		}
		if w := stage.Get(t, "http://feeds.test/one.xml", stage.Home); w.Code != 200 {
			t.Errorf("the feed of the configuration in force: %d", w.Code)
		}
		if one.Load() < 4 || two.Load() > 0 {
			t.Errorf("%d polls, and %d of what was never in force", one.Load(), two.Load())
		}
		for _, path := range []string{"/pollard/feeds", "/pollard/readers"} {
			if code, text := stage.Call(t, "GET", path); code != 200 || strings.Contains(text, "two.example") {
				t.Errorf("%s: %d %s", path, code, text)
			}
		}
	})
}

// Polls go through the proxy for all hosts or for their own. A reload that changes it keeps the schedule.
// Shields ask their origin without a proxy.
func TestProxyAcrossReloads(t *testing.T) {
	origin := origintest.New(origintest.OK(origintest.Feed(1, ""))).Start(t)
	first, second := &origintest.Proxy{To: origin.Listener.Addr().String()}, &origintest.Proxy{To: origin.Listener.Addr().String()}
	sites := "http://feeds.test {\n\tbind void/site\n\tfeed_gateway {\n\t\tclients any\n\t}\n}\n" + stage.ShieldedSite("http://blog.test", "")
	app := "proxy {env.POLLARD_TEST_PROXY}\nhost *.onion {\n\tproxy {env.POLLARD_TEST_PROXY}\n\tspacing 0\n}"
	t.Setenv("POLLARD_TEST_PROXY", "socks5h://"+first.Start(t))
	stage.RunInstance(t, app, sites, func(s *stage.Stage, _ string) {
		s.Now(stage.Feed(stage.Sample))
		want := func(target string, ofFirst, ofSecond int) {
			t.Helper()
			if w := s.Get(target); w.Code != http.StatusOK {
				t.Errorf("%s: %d %s", target, w.Code, w.Body)
			}
			if a, b := len(first.Asked()), len(second.Asked()); a != ofFirst || b != ofSecond {
				t.Errorf("%s: the proxies got %d and %d requests, want %d and %d", target, a, b, ofFirst, ofSecond)
			}
		}
		want("http://feeds.test/http://8.8.8.8/feed", 1, 0)
		want("http://feeds.test/http://one.onion/feed", 2, 0)
		t.Setenv("POLLARD_TEST_PROXY", "socks5h://"+second.Start(t))
		s.Load(sites)
		s.Now(stage.Feed(stage.Sample))
		want("http://feeds.test/http://one.onion/feed", 2, 0)
		want("http://feeds.test/http://two.onion/feed", 2, 1)
		want("http://blog.test/feed", 2, 1)
	})
}
