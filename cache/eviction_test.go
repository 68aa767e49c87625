// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cespare/xxhash/v2"
	"pgregory.net/rapid"

	"github.com/feedpollard/pollard/policy"
)

// ask is what a reader asks for, and what happens before.
type ask struct {
	after  time.Duration
	feed   int
	accept string
	// condition: none, or a validator of the answer that this reader got last.
	condition string
	restart   bool
	change    bool // the origin has another version from now on
}

const evictionFeeds = 5

func drawAsks(t *rapid.T) []ask {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) ask {
		return ask{
			after: rapid.SampledFrom([]time.Duration{0, 50 * time.Second, 70 * time.Second, 25 * time.Minute, 2 * time.Hour}).Draw(t, "after") +
				time.Duration(rapid.IntRange(1, 1e6).Draw(t, "moment")), // at which nothing else happens
			feed:      rapid.IntRange(0, evictionFeeds-1).Draw(t, "feed"),
			accept:    rapid.SampledFrom([]string{"", "gzip", "gzip;q=0.5, identity"}).Draw(t, "accept"),
			condition: rapid.SampledFrom([]string{"", "Etag", "Last-Modified"}).Draw(t, "condition"),
			restart:   rapid.IntRange(0, 15).Draw(t, "restart") == 0,
			change:    rapid.IntRange(0, 3).Draw(t, "change") == 0,
		}
	}), 20, 60).Draw(t, "asks")
}

// Whatever memory drops, and whenever: readers are answered by the same bytes and fields,
// and origins are asked the same at the same times. (Prefetching is left out, as it picks
// its moments by chance.)
func TestMemoryIsOnlyMemory(t *testing.T) {
	setFlag(t, "rapid.checks", strconv.Itoa(max(*lives, 3)))
	setFlag(t, "rapid.nofailfile", "true") // a seed is enough
	rapid.Check(t, func(rt *rapid.T) {
		asks := drawAsks(rt)
		// From nothing at all, over room for a feed or two, to far too little of it.
		budget := rapid.SampledFrom([]int64{100, 3000, 12_000, 60_000}).Draw(rt, "budget")
		var want, got []string
		synctest.Test(t, func(t *testing.T) { want = answersOf(t, asks, 4<<20) })
		synctest.Test(t, func(t *testing.T) { got = answersOf(t, asks, budget) })
		for i := range want {
			if i >= len(got) || got[i] != want[i] {
				rt.Fatalf("with %d bytes of memory line %d is\n%s, want\n%s", budget, i, append(got, "missing")[i], want[i])
			}
		}
		if len(got) > len(want) {
			rt.Fatalf("with %d bytes of memory there is also\n%s", budget, got[len(want)])
		}
	})
}

// answersOf is what readers and origins see of a gateway with so much memory.
func answersOf(t *testing.T, asks []ask, budget int64) (seen []string) {
	versions := make(map[string]int)
	see := func(format string, args ...any) {
		seen = append(seen, time.Now().Format("2006-01-02 15:04:05.000000 ")+fmt.Sprintf(format, args...))
	}
	g := newGateway(t, func(a policy.Ask) policy.Answer {
		n := versions[a.URL.String()]
		see("%s is polled with %+v", a.URL, a.Validators)
		tag := fmt.Sprintf(`"%d"`, n)
		if a.Validators.ETag == tag {
			return unchanged()
		}
		return ok(rss(1+40*n%170, fmt.Sprint(n)), "ETag", tag)
	})
	g.budget = budget
	g.open()
	var last [evictionFeeds]http.Header
	for _, a := range asks {
		time.Sleep(a.after)
		url := fmt.Sprintf("https://host%d.test/feed", a.feed)
		if a.change {
			versions[url]++
		}
		if a.restart {
			g.restart()
		}
		headers := []string{"Accept-Encoding", a.accept}
		if value := last[a.feed].Get(a.condition); value != "" {
			headers = append(headers, map[string]string{"Etag": "If-None-Match", "Last-Modified": "If-Modified-Since"}[a.condition], value)
		}
		w := g.get(url, headers...)
		see("%s with %q: %d %v, %d bytes %x", url, headers, w.Code, w.Header(), w.Body.Len(), xxhash.Sum64(w.Body.Bytes()))
		if w.Code == http.StatusOK {
			last[a.feed] = w.Header()
		}
	}
	g.close()
	return seen
}

// Readers are served whatever the budget is.
func TestAbsurdBudgets(t *testing.T) {
	slow(t)
	for _, budget := range []int64{1, math.MaxInt64} {
		synctest.Test(t, func(t *testing.T) {
			large := strings.Replace(rss(1, ""), "some words", strings.Repeat("some words", policy.SmallBody/10), 1)
			g := newGateway(t, func(policy.Ask) policy.Answer { return ok(large, "ETag", `"v"`) })
			g.budget = budget
			g.open()
			wantBody(t, g.get(feedURL), http.StatusOK, "Entry 1")
			g.restart()
			wantBody(t, g.get(feedURL), http.StatusOK, "Entry 1")
		})
	}
}
