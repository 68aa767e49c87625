// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/feedpollard/pollard/cache"
	"github.com/feedpollard/pollard/policy"
)

// A pause that such a 304 asks for is kept all the same.
func TestNotModifiedOfAnotherResponseAsksForAPause(t *testing.T) {
	for name, fields := range map[string]http.Header{
		policy.HintRetryAfter: {"Etag": {`"b"`}, "Retry-After": {"30000"}},
		policy.HintRateLimit:  {"Etag": {`"b"`}, "X-Ratelimit-Remaining": {"0"}, "X-Ratelimit-Reset": {"30000"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			answer := ok(rss(2, ""), "ETag", `"a"`)
			g := newGateway(t, func(policy.Ask) policy.Answer { return answer }).open()
			g.get(feedURL)
			answer = unchanged()
			answer.Header = fields
			time.Sleep(time.Hour)
			g.get(feedURL)
			a, err := g.Status(t.Context(), feedURL)
			if err != nil {
				t.Fatal(err)
			}
			if got := time.Until(a.NextPoll); got != 30000*time.Second || a.Winner != name {
				t.Errorf("the next poll comes in %v by %s, want 30000s by %s", got, a.Winner, name)
			}
		})
	}
}

// Nor do the readers of a shielded feed get its fields.
func TestFieldsOfAnotherResponseAreNotServed(t *testing.T) {
	const key = "shield/feed.xml"
	for tag, want := range map[string]string{`"a"`: "new", `"b"`: "old"} {
		synctest.Test(t, func(t *testing.T) {
			answer := ok(rss(2, ""), "ETag", `"a"`, "X-Site", "old")
			g := newGateway(t, func(policy.Ask) policy.Answer { return answer })
			g.settings.Site = func(string) cache.Origin { return g.origin }
			g.open()
			g.get(key)
			answer = unchanged()
			answer.Header = http.Header{"Etag": {tag}, "X-Site": {"new"}}
			time.Sleep(time.Hour)
			if got := g.get(key).Header().Get("X-Site"); got != want || g.origin.polls() != 2 {
				t.Errorf("ETag %s: readers get %q after %d polls, want %q after 2", tag, got, g.origin.polls(), want)
			}
		})
	}
}
