// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/feedpollard/pollard/cache/feedstate"
	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/internal/origintest"
	"github.com/feedpollard/pollard/policy"
)

var (
	stranger  = store.Any
	guest     = store.OwnerOf(store.KindNamed, "192.168.1.9")
	household = store.OwnerOf(store.KindNamed, "192.168.1.7")
)

// askAs asks for a feed as a reader of an owner does.
func (g *gateway) askAs(by store.Owner, url string) int {
	g.t.Helper()
	return g.ask(by, url, httptest.NewRequest(http.MethodGet, "/", nil)).Code
}

// longestGap is the longest time between two requests to a URL.
func (g *gateway) longestGap(url string) (longest time.Duration) {
	at := g.requested(url)
	for i := 1; i < len(at); i++ {
		longest = max(longest, at[i].Sub(at[i-1]))
	}
	return longest
}

// A host may give any answer for a stranger's URL: a configured feed of that host is polled on time, and its readers
// get the same answers as without the stranger.
func TestStrangersSilenceNoConfiguredFeed(t *testing.T) {
	for name, answer := range some(map[string]response{
		"control":                      given(rss(1, "")),
		"429 for a week":               origintest.Status(429, "Retry-After", "604800"),
		"429 without a time":           origintest.Status(429),
		"404 for a week":               origintest.Status(404, "Retry-After", "604800"),
		"503 for a week":               origintest.Status(503, "Retry-After", "604800"),
		"302 for a week":               {Status: 302, Header: http.Header{"Location": {"https://good.test/"}, "Retry-After": {"604800"}}},
		"200 with an exhausted limit":  given(rss(1, ""), "RateLimit", `"d";r=0;t=604800`),
		"redirect of another host":     origintest.Status(429, "Retry-After", "604800"),
		"redirect to a 503 of a week":  origintest.Status(503, "Retry-After", "604800"),
		"200 with an X-RateLimit of 0": given(rss(1, ""), "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "604800"),
	}) {
		bubble(t, name, func(t *testing.T) {
			g := newWebGateway(t, func(url string) response {
				switch {
				case url == feedURL:
					return given(rss(2, ""), "Cache-Control", "max-age=600")
				case strings.HasPrefix(url, "https://attacker.test/"):
					return redirect(302, "https://origin.test/from?"+url[len("https://attacker.test/"):])
				case strings.HasPrefix(url, "https://origin.test/"):
					return answer
				}
				return given(rss(1, ""))
			})
			g.often(10 * time.Minute)
			g.settings.Feeds, g.settings.Prefetch = []string{feedURL}, true
			g.open()
			site := "https://origin.test/"
			if strings.HasPrefix(name, "redirect") {
				site = "https://attacker.test/"
			}
			for n := range 24 * 12 {
				if n%3 == 1 {
					g.askAs(stranger, fmt.Sprint(site, n))
				}
				w := g.get(feedURL)
				var age int
				if _, err := fmt.Sscanf(w.Header().Get("Cache-Control"), "max-age=%d", &age); n > 0 && (w.Code != 200 || err != nil || age > 700) {
					t.Fatalf("readers get %d, %s", w.Code, w.Header().Get("Cache-Control"))
				}
				time.Sleep(5 * time.Minute)
			}
			if gap := g.longestGap(feedURL); gap > 16*time.Minute || len(g.requested(feedURL)) < 90 {
				t.Errorf("the configured feed was polled %d times in a day, once after %v", len(g.requested(feedURL)), gap)
			}
		})
	}
}

// URLs that a guest has made up and that are refused do not delay the household's feed of that site.
func TestGuestDelaysNoFeed(t *testing.T) {
	slow(t)
	synctest.Test(t, func(t *testing.T) {
		g := newWebGateway(t, func(url string) response {
			if url == feedURL {
				return given(rss(2, ""), "Cache-Control", "max-age=3600")
			}
			return origintest.Status(429, "Retry-After", "604800")
		}).open()
		for n := range 5 * 24 * 12 {
			g.askAs(household, feedURL)
			if n%(3*12) == 13 { // a bad one every three hours
				g.askAs(guest, fmt.Sprint("https://origin.test/", n))
			}
			time.Sleep(5 * time.Minute)
		}
		if gap := g.longestGap(feedURL); gap > 72*time.Minute {
			t.Errorf("the household's feed was polled once after %v", gap)
		}
	})
}

// A host that tells its limit only by fields of good answers is asked within that limit, by feeds of all owners together.
func TestRateLimitOfAHost(t *testing.T) {
	slow(t)
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex // guards what follows
		var last time.Time
		refused, answered := 0, map[string]int{}
		g := newWebGateway(t, func(url string) response {
			mu.Lock()
			defer mu.Unlock()
			if since := time.Since(last); since < 3*time.Second {
				refused++
				return origintest.Status(429)
			}
			last = time.Now()
			answered[url]++
			return given(rss(2, ""), "X-RateLimit-Limit", "1", "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "3")
		})
		rules := policy.DefaultRules()
		rules.MinInterval, rules.DefaultInterval, rules.UnvalidatedInterval, rules.MaxInterval, rules.Jitter = time.Hour, time.Hour, time.Hour, time.Hour, 0
		g.settings.Rules = func(feedstate.Key) policy.Rules { return rules }
		g.settings.Prefetch = true
		urls := make([]string, 20)
		for n := range urls {
			if urls[n] = fmt.Sprint("https://origin.test/", n); n < 5 {
				g.settings.Feeds = append(g.settings.Feeds, urls[n])
			}
		}
		g.open()
		owners := []store.Owner{0, household, guest, stranger}
		for range 5 * 24 { // they are read for days
			var crowd sync.WaitGroup
			for n, url := range urls {
				crowd.Go(func() { g.askAs(owners[n/5], url) })
			}
			crowd.Wait()
			time.Sleep(time.Hour)
		}
		mu.Lock()
		defer mu.Unlock()
		if refused > 0 || len(answered) != len(urls) {
			t.Errorf("%d requests were refused, and %d of %d feeds were had", refused, len(answered), len(urls))
		}
		for url, n := range answered {
			if n < 40 {
				t.Errorf("%s was polled %d times in 5 days", url, n)
			}
		}
	})
}
