// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/internal/status"
)

// addresses of one feed, and the feed itself.
var addresses = []string{"https://a.test/", "https://b.test/", "http://target.test/feed", "https://target.test/d"}

const targetURL = "https://target.test/feed"

// severalAddresses is a web in which they lead to one feed.
func severalAddresses(url string) response {
	if url == targetURL {
		return given(rss(2, ""), "ETag", `"t"`, "Cache-Control", "max-age=3600")
	}
	return redirect([]int{301, 301, 302, 307}[slices.Index(addresses, url)], targetURL)
}

// Each address of one feed gives it in its first request, in any order. From then on the feed is asked once in its
// interval for all that have moved to it, and once for each temporary redirect; none of the addresses fails.
func TestAddressesOfOneFeed(t *testing.T) {
	gaps := []time.Duration{0, time.Second, 5 * time.Minute, time.Hour - time.Second, time.Hour + time.Minute}
	n := 0
	for _, order := range permutations(append(addresses, targetURL)) {
		if slices.Index(order, addresses[0]) > slices.Index(order, addresses[1]) {
			continue // the two differ in their names alone
		}
		if gap := gaps[n%len(gaps)]; n%30 == 0 || !testing.Short() {
			bubble(t, fmt.Sprint(order, gap), func(t *testing.T) { readAddresses(t, order, gap) })
		}
		n++
	}
}

// permutations returns a list in all orders.
func permutations(list []string) (all [][]string) {
	if len(list) == 0 {
		return [][]string{nil}
	}
	for i, first := range list {
		for _, rest := range permutations(slices.Delete(slices.Clone(list), i, i+1)) {
			all = append(all, append([]string{first}, rest...))
		}
	}
	return all
}

func readAddresses(t *testing.T, order []string, gap time.Duration) {
	g := newWebGateway(t, severalAddresses).open()
	g.by = household
	for _, url := range order {
		if w := g.feed(url); w.Code != 200 || !strings.Contains(w.Body.String(), "Entry 2") {
			t.Errorf("the first request for %s gives %d %s", url, w.Code, w.Body)
		}
		time.Sleep(gap)
	}
	time.Sleep(2 * time.Hour)
	began, before := time.Now(), len(g.requested(targetURL))
	for range 3 * 12 {
		for _, url := range order {
			if w := g.feed(url); w.Code != 200 {
				t.Fatalf("%v later %s gives %d %s", time.Since(began), url, w.Code, w.Body)
			}
		}
		time.Sleep(20 * time.Minute)
	}
	at := g.requested(targetURL)[before:]
	if len(at) < 3*10 || len(at) > 3*12 { // for itself and two temporary redirects
		t.Errorf("it was asked %d times in 12 hours", len(at))
	}
	own := g.asked(targetURL)
	for i := 1; i < len(own); i++ {
		if d := own[i].Sub(own[i-1]); d < time.Hour {
			t.Errorf("the feed was polled %v after the time before", d)
		}
	}
	for _, moved := range addresses[:2] {
		if n := len(g.requested(moved)); n > 3 {
			t.Errorf("%s, which has moved, was asked %d times in 14 hours", moved, n)
		}
	}
	for _, f := range g.accounts() {
		if f.State != status.StateFresh && f.State != status.StateDue {
			t.Errorf("%s is %s: %s", f.URL, f.State, f.Reason)
		}
	}
}

// A target that is another one in each answer leaves no record behind.
func TestTargetsThatChange(t *testing.T) {
	slow(t)
	synctest.Test(t, func(t *testing.T) {
		n := 0
		g := newWebGateway(t, func(url string) response {
			if strings.HasPrefix(url, "https://cdn.test/") {
				return given(rss(2, ""))
			}
			n++
			return redirect(302, fmt.Sprint("https://cdn.test/", n))
		}).open()
		for range 20 * 24 {
			wantBody(t, g.get(feedURL), 200, "Entry 2")
			time.Sleep(time.Hour)
		}
		if all := g.accounts(); len(all) != 1 || n < 20 {
			t.Errorf("%d records after %d polls", len(all), n)
		}
		if _, err := g.store.Sweep(t.Context(), store.SweepQuery{}); err != nil {
			t.Error(err)
		}
		if left := must(g.store.Records(t.Context(), store.ID{}, 100, true)); len(left) > 1 {
			t.Errorf("%d URLs are remembered that a redirect led to", len(left))
		}
	})
}
