// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dunglas/httpsfv"

	"github.com/feedpollard/pollard/policy"
)

// Age and max-age come from one clock, and Cache-Status by its grammar (RFC 9211,
// RFC 8941), in whatever state a feed is.
func TestFreshnessThatReadersAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		delay := time.Duration(0)
		a := ok(rss(2, ""), "ETag", `"v"`)
		g := newGateway(t, func(policy.Ask) policy.Answer { time.Sleep(delay); return a }).open()
		check := func(state, control string, want ...string) {
			t.Helper()
			h := g.get(feedURL).Header()
			if h["Age"] != nil || h.Get("Cache-Control") != control {
				t.Errorf("%s: Age %s, Cache-Control %s, want none and %s", state, h.Get("Age"), h.Get("Cache-Control"), control)
			}
			list, err := httpsfv.UnmarshalList(h["Cache-Status"])
			if err != nil || len(list) != 1 {
				t.Fatalf("%s: Cache-Status %q: %v", state, h["Cache-Status"], err)
			}
			item := list[0].(httpsfv.Item)
			var got []string
			for _, name := range item.Params.Names() {
				v, _ := item.Params.Get(name)
				got = append(got, fmt.Sprintf("%s=%v", name, v))
			}
			if item.Value != httpsfv.Token("Pollard") || strings.Join(got, " ") != strings.Join(want, " ") {
				t.Errorf("%s: %v %q, want %q", state, item.Value, got, want)
			}
		}
		check("cold", "max-age=3600", "fwd=miss", "fwd-status=200", "stored=true", "ttl=3600", "detail=default")
		time.Sleep(10*time.Minute + 500*time.Millisecond)
		check("fresh", "max-age=3000", "hit=true", "ttl=2999", "detail=default")
		time.Sleep(time.Hour)
		a = unchanged()
		check("due", "max-age=3600", "fwd=stale", "fwd-status=304", "ttl=3600", "detail=default")
		time.Sleep(2 * time.Hour)
		delay = 10 * time.Second
		a = failed(500, policy.FailureStatus)
		check("slow", "max-age=60", "hit=true", "ttl=-3603", "detail=default")
		time.Sleep(10 * time.Second)
		check("failing", "max-age=7197", "hit=true", "ttl=7197", "detail=back-off")
		a, delay = failed(410, policy.FailureGone), 0
		time.Sleep(3 * time.Hour)
		check("gone", "max-age=86400", "fwd=stale", "fwd-status=410", "detail=gone")
	})
}

func TestOriginTagThatReadersMaySend(t *testing.T) {
	tests := map[string]struct {
		tags    []string // of one answer after the other
		entries []int
		sent    string // by a reader, after the last
		want    int
	}{
		"of the version":                      {[]string{`"1"`, `"2"`}, []int{1, 2}, `"2"`, 304},
		"of the version before":               {[]string{`"1"`, `"2"`}, []int{1, 2}, `"1"`, 200},
		"the same for two versions":           {[]string{`"0"`, `"0"`}, []int{1, 2}, `"0"`, 200},
		"the same for three versions":         {[]string{`"0"`, `"0"`, `"0"`}, []int{1, 2, 3}, `"0"`, 200},
		"new, of the same bytes":              {[]string{`"1"`, `"2"`}, []int{1, 1}, `"2"`, 304},
		"old, of the same bytes":              {[]string{`"1"`, `"2"`}, []int{1, 1}, `"1"`, 200},
		"empty, which damaged ones look like": {[]string{`""`}, []int{1}, `""`, 200},
	}
	for name, test := range tests {
		bubble(t, name, func(t *testing.T) {
			n := -1
			g := newGateway(t, func(policy.Ask) policy.Answer {
				n++
				return ok(rss(test.entries[n], ""), "ETag", test.tags[n])
			}).open()
			for range test.tags {
				g.get(feedURL)
				time.Sleep(25 * time.Hour)
			}
			n-- // the next poll brings the same again
			if w := g.get(feedURL, "If-None-Match", test.sent); w.Code != test.want {
				t.Errorf("got %d, want %d", w.Code, test.want)
			}
		})
	}
}
