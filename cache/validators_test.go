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

// A 304 whose strong ETag is not that of the stored response updates nothing of it (RFC
// 9111 section 4.3.4).
func TestNotModifiedOfAnotherResponse(t *testing.T) {
	const lm, other = "Mon, 02 Mar 2026 09:00:00 GMT", "Sun, 01 Mar 2026 09:00:00 GMT"
	for _, test := range []struct {
		name, stored, modified string // the 200's ETag and Last-Modified
		told                   []string
		updates                bool
	}{
		{"no validator", `"a"`, lm, nil, true},
		{"an empty one", `"a"`, lm, []string{"ETag", ""}, true},
		{"the date alone, another", `"a"`, lm, []string{"Last-Modified", other}, true},
		{"the same", `"a"`, lm, []string{"ETag", `"a"`}, true},
		{"another", `"a"`, lm, []string{"ETag", `"b"`}, false},
		{"another with the same date", `"a"`, lm, []string{"ETag", `"b"`, "Last-Modified", lm}, false},
		{"a longer one", `"a"`, lm, []string{"ETag", `"ab"`}, false},
		{"another that is weak", `"a"`, lm, []string{"ETag", `W/"b"`}, true},
		{"the same made weak", `"a"`, lm, []string{"ETag", `W/"a"`}, true},
		{"the same made strong", `W/"a"`, lm, []string{"ETag", `"a"`}, true},
		{"another than a weak one", `W/"a"`, lm, []string{"ETag", `"b"`}, false},
		{"of the plain body", `"a-gzip"`, lm, []string{"ETag", `"a"`}, true},
		{"of the compressed body", `"a"`, lm, []string{"ETag", `"a-gzip"`}, true},
		{"suffix behind the quotes", `"a"-gzip`, lm, []string{"ETag", `"a"`}, true},
		{"two dashes", `"a--gzip"`, lm, []string{"ETag", `"a"`}, true},
		{"semicolon", `"a;gzip"`, lm, []string{"ETag", `"a"`}, true},
		{"another coding", `W/"a-br"`, lm, []string{"ETag", `"a-zstd"`}, true},
		{"another and compressed", `"a-gzip"`, lm, []string{"ETag", `"b-gzip"`}, false},
		{"letters that end like a coding", `"agzip"`, lm, []string{"ETag", `"a"`}, false},
		{"without quotes", `"a"`, lm, []string{"ETag", `a`}, true},
		{"another without quotes", `"a"`, lm, []string{"ETag", `b`}, false},
		{"none is stored, the same date", "", lm, []string{"ETag", `"b"`, "Last-Modified", lm}, true},
		{"none is stored, another date", "", lm, []string{"ETag", `"b"`, "Last-Modified", other}, false},
		{"none is stored, no date", "", lm, []string{"ETag", `"b"`}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				first := ok(rss(2, ""), "ETag", test.stored, "Last-Modified", test.modified, "Cache-Control", "max-age=7200")
				then := unchanged()
				then.Header = http.Header{"Cache-Control": {"max-age=36000"}}
				for i := 0; i < len(test.told); i += 2 {
					then.Header.Set(test.told[i], test.told[i+1])
				}
				g := newGateway(t, func(ask policy.Ask) policy.Answer {
					if ask.Validators.Empty() {
						return first
					}
					return then
				}).open()
				g.get(feedURL)
				time.Sleep(2 * time.Hour)
				asked := time.Now()
				wantBody(t, g.get(feedURL), 200, "Entry 2")
				g.restart()

				want, validated := 2*time.Hour, epoch
				if test.updates {
					want, validated = 10*time.Hour, asked
				}
				a, err := g.Status(t.Context(), feedURL)
				if err != nil {
					t.Fatal(err)
				}
				if got := a.NextPoll.Sub(asked); got != want || a.Winner != policy.HintMaxAge {
					t.Errorf("the next poll comes after %v by %s, want %v", got, a.Winner, want)
				}
				if !a.Validated.Equal(validated) {
					t.Errorf("the version was confirmed at %v, want %v", a.Validated, validated)
				}
				time.Sleep(want)
				g.get(feedURL)
				if v := g.origin.last().Validators; g.origin.polls() != 3 || v.ETag != test.stored || v.LastModified != test.modified {
					t.Errorf("poll %d sent %+v, want those of the stored body", g.origin.polls(), v)
				}
			})
		})
	}
}

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
