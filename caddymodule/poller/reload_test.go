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
	stage.RunGateways(t, web, func(t *testing.T, o *stage.Gateways) {
		o.MustLoad("", "prefetch", "feed /one.xml https://one.example/feed")
		for _, apps := range []string{`"failing":{},`, `"events":{"subscriptions":[{"handlers":[{"handler":"none"}]}]},`} {
			o.Apps = apps
			if o.Load("", "prefetch", "feed /one.xml https://one.example/feed\nfeed /two.xml https://two.example/feed") == nil {
				t.Fatalf("it loads with %s", apps)
			}
			time.Sleep(50 * time.Hour)
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
