// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"fmt"
	"net/http"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/feedpollard/pollard/caddymodule/internal/stage"
)

// moody are origins whose feeds change, fail, move and lie by the hour.
func moody(begun time.Time) stage.Web {
	return func(r *http.Request) (int, string, http.Header) {
		hour := int(time.Since(begun) / time.Hour)
		header := http.Header{"Content-Type": {"application/rss+xml"}, "Etag": {fmt.Sprintf(`"%d"`, hour)}}
		kind, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		switch {
		case kind == "changes":
			return 200, strings.Replace(feed, "Good", fmt.Sprint("Hour ", hour), 1), header
		case kind == "flaps" && hour%2 == 1:
			return 503, "", http.Header{"Retry-After": {"60"}}
		case kind == "lies" && hour%2 == 1:
			return 200, "<html><title>Log in</title>", header
		case kind == "moves" && hour%3 == 1:
			return 301, "", http.Header{"Location": {"http://moved.test" + r.URL.Path}}
		case kind == "fails":
			return 404, "", nil
		case kind == "loops":
			return 302, "", http.Header{"Location": {r.URL.Path}}
		case kind == "bombs":
			return 200, rssOpen + repeat("<x>", 1000), header
		case kind == "grows":
			return 200, rssOpen + numbered("<item><guid>%d</guid></item>", 10*(hour+1)) + rssClose, header
		}
		return 200, feed, header
	}
}

// After a day of readers every two minutes and of origins that do all of that, a gateway holds no
// more memory, goroutines and descriptors than in the morning.
func TestNothingLeaksInADay(t *testing.T) {
	kinds := []string{"changes", "flaps", "lies", "moves", "fails", "loops", "bombs", "grows", "stays"}
	stage.RunGateways(t, moody(time.Now()), func(t *testing.T, o *stage.Stage) {
		o.MustLoadFeeds("", "min_interval 15m\ndefault_interval 15m\nunvalidated_interval 15m\nmax_interval 30m\nprefetch", "feed /own.xml http://own.test/changes/own")
		type held struct{ goroutines, objects, descriptors int }
		measure := func() (h held) {
			runtime.GC()
			runtime.GC() // of what the first one has only finalized
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			names, _ := os.ReadDir("/proc/self/fd") // it is known on Linux only
			return held{runtime.NumGoroutine(), int(m.HeapObjects), len(names)}
		}
		hour := func() {
			for minute := range 30 {
				for i, kind := range kinds {
					// Each with a Host, an agent and conditions of its own.
					stage.Get(t, fmt.Sprintf("http://feeds.test/by-url/http://%s%d.test/%s/%d", kind, minute%3, kind, minute%3), stage.Outside, "User-Agent", fmt.Sprintf("reader/%d", minute*10+i), "If-None-Match", `"x"`)
				}
				stage.Get(t, "http://feeds.test/own.xml", stage.Home)
				time.Sleep(2 * time.Minute)
			}
		}
		for range 6 {
			hour()
		}
		morning := measure()
		more := 18
		if testing.Short() {
			more = 3
		}
		for range more {
			hour()
		}
		evening := measure()
		t.Logf("in the morning %+v, in the evening %+v", morning, evening)
		// Feeds keep a history of polls and of versions, which is full by noon.
		if evening.goroutines > morning.goroutines+5 || evening.descriptors > morning.descriptors+2 || evening.objects > morning.objects+morning.objects/10+20_000 {
			t.Errorf("something leaks: in the morning %+v, in the evening %+v", morning, evening)
		}
	})
}
