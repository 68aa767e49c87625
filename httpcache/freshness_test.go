// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package httpcache

import (
	"testing"
	"time"
)

// fresh is a scene in which an answer is served from the store for as long as it
// should be, and the origin is asked one second later.
func fresh(lifetime time.Duration, lines ...string) []step {
	return []step{
		{origin: says(200, "a", lines...), asked: true, body: "a"},
		{after: lifetime - time.Second, body: "a"},
		{after: time.Second, origin: says(200, "b", "Cache-Control: no-store"), asked: true, body: "b"},
	}
}

// never is a scene in which an answer is not reused.
func never(lines ...string) []step {
	return []step{
		{origin: says(200, "a", lines...), asked: true, body: "a"},
		{origin: says(200, "b"), asked: true, body: "b"},
	}
}

func TestFreshness(t *testing.T) {
	scenes(t, map[string][]step{
		// RFC 9111 section 4.2.1.
		"max-age":                        fresh(time.Minute, "Cache-Control: max-age=60"),
		"s-maxage before max-age":        fresh(time.Hour, "Cache-Control: max-age=60, s-maxage=3600"),
		"short s-maxage before max-age":  fresh(time.Minute, "Cache-Control: max-age=3600, s-maxage=60"),
		"max-age before Expires":         fresh(time.Minute, "Cache-Control: max-age=60", "Expires: @1h"),
		"max-age in spite of an Expires": fresh(time.Minute, "Cache-Control: max-age=60", "Expires: 0"),
		"Expires":                        fresh(time.Hour, "Expires: @1h"),
		"Expires less Date":              fresh(time.Minute, "Expires: @1h", "Date: @59m"),
		"the smallest of two":            fresh(time.Minute, "Cache-Control: max-age=60, max-age=120"),
		"of any case":                    fresh(time.Minute, "Cache-Control: Max-AGE=60"),
		"beside an extension":            fresh(time.Minute, "Cache-Control: foo=\"max-age=1\", max-age=60"),
		"nothing":                        never(),
		"max-age=0":                      never("Cache-Control: max-age=0"),
		"max-age that is no number":      never("Cache-Control: max-age=1h"),
		"Expires 0":                      never("Expires: 0"),
		"Expires in the past":            never("Expires: @-1h"),
		"Expires without GMT":            never("Expires: Thu, 18 Aug 2050 02:01:18 UTC"),
		"Expires with doubled spaces":    never("Expires: Thu, 18  Aug  2050 02:01:18 GMT"),
		"Expires with an hour of 1":      never("Expires: Thu, 18 Aug 2050 2:01:18 GMT"),

		// Section 4.2.3: age.
		"Age":                 fresh(time.Minute, "Cache-Control: max-age=120", "Age: 60"),
		"Age of the first":    fresh(time.Minute, "Cache-Control: max-age=120", "Age: 60, 0"),
		"Age that is invalid": fresh(time.Minute, "Cache-Control: max-age=60", "Age: -5"),
		"an old Date":         fresh(time.Minute, "Cache-Control: max-age=120", "Date: @-1m"),
		"Age beyond":          never("Cache-Control: max-age=60", "Age: 60"),
		"Age and Expires":     never("Expires: @20s", "Date: @10s", "Age: 15"),
		"a Date that is none": fresh(time.Minute, "Expires: @1m", "Date: yesterday"),
		"Age beyond 32 bits":  never("Cache-Control: max-age=60", "Age: 4294967297"),
		"the wait for the answer": {
			{origin: slow(5*time.Second, says(200, "a", "Cache-Control: max-age=60", "Age: 10", "Date: @5s")), asked: true, body: "a"},
			{after: 44 * time.Second, body: "a", has: []string{"Age: 59"}},
			{after: time.Second, origin: says(200, "b"), asked: true, body: "b"},
		},
		"max-age of 40 digits": {{origin: says(200, "a", "Cache-Control: max-age=9999999999999999999999999999999999999999"), asked: true, body: "a"}, {after: 100 * time.Hour, body: "a"}},

		// Section 4.2.2: heuristics.
		"a tenth of the age":       fresh(time.Hour, "Last-Modified: @-10h"),
		"at most a day":            fresh(24*time.Hour, "Last-Modified: @-9000h"),
		"modified in the future":   never("Last-Modified: @1h"),
		"not under max-age":        never("Cache-Control: max-age=0", "Last-Modified: @-10h"),
		"not with a cookie":        never("Set-Cookie: a=b", "Last-Modified: @-10h"),
		"not with Pragma":          never("Pragma: no-cache", "Last-Modified: @-10h"),
		"nor for a private answer": never("Cache-Control: private", "Last-Modified: @-10h"),
	})
}

func TestHeuristicStatus(t *testing.T) {
	for status, want := range map[int]bool{
		200: true, 203: true, 204: true, 300: true, 301: true, 308: true, 404: true, 405: true, 410: true, 414: true, 501: true,
		201: false, 202: false, 206: false, 302: false, 307: false, 400: false, 403: false, 429: false, 500: false, 502: false, 503: false, 504: false, 599: false,
	} {
		bubble(t, func(t *testing.T, b *bench) {
			b.run([]step{
				{origin: says(status, "", "Last-Modified: @-10h"), asked: true, status: status},
				{after: time.Minute, origin: says(status, "", "Last-Modified: @-10h"), asked: !want, status: status},
			})
		})
	}
	scenes(t, map[string][]step{
		"public makes any status heuristically cacheable": {
			{origin: says(599, "", "Cache-Control: public", "Last-Modified: @-10h"), asked: true, status: 599},
			{after: time.Minute, status: 599},
		},
	})
}

func TestTargetedCacheControl(t *testing.T) {
	scenes(t, map[string][]step{
		// RFC 9213 section 2.2.
		"before Cache-Control":      fresh(time.Hour, "CDN-Cache-Control: max-age=3600", "Cache-Control: max-age=60"),
		"before a no-store":         fresh(time.Hour, "CDN-Cache-Control: max-age=3600", "Cache-Control: no-store"),
		"before Expires":            fresh(time.Hour, "CDN-Cache-Control: max-age=3600", "Expires: 0"),
		"Expires does not stand in": never("CDN-Cache-Control: foo", "Expires: @1h"),
		"no-store":                  never("CDN-Cache-Control: no-store", "Cache-Control: max-age=60"),
		"private":                   never("CDN-Cache-Control: private", "Cache-Control: max-age=60"),
		"no-cache":                  never("CDN-Cache-Control: no-cache", "Cache-Control: max-age=60"),
		"Age counts":                fresh(time.Minute, "CDN-Cache-Control: max-age=120", "Age: 60"),
		"parameters do not":         fresh(time.Minute, "CDN-Cache-Control: max-age=60;foo=bar"),

		// Section 2.1: a field that is no dictionary, or is empty, is not there.
		"no dictionary":        fresh(time.Minute, "CDN-Cache-Control: max-age=3600, &&&", "Cache-Control: max-age=60"),
		"empty":                fresh(time.Minute, "CDN-Cache-Control:", "Cache-Control: max-age=60"),
		"a string for seconds": fresh(time.Minute, "CDN-Cache-Control: max-age=\"3600\"", "Cache-Control: max-age=60"),
		"a decimal":            fresh(time.Minute, "CDN-Cache-Control: max-age=3600.5", "Cache-Control: max-age=60"),
		"a negative number":    fresh(time.Minute, "CDN-Cache-Control: max-age=-1", "Cache-Control: max-age=60"),
		"a denied no-store":    fresh(time.Minute, "CDN-Cache-Control: max-age=3600, no-store=?0", "Cache-Control: max-age=60"),
		"an inner list":        fresh(time.Minute, "CDN-Cache-Control: max-age=(1 2)", "Cache-Control: max-age=60"),
	})
	scenes(t, map[string][]step{
		"the field goes on to caches further down": {
			{origin: says(200, "a", "CDN-Cache-Control: max-age=60"), asked: true, body: "a"},
			{body: "a", has: []string{"CDN-Cache-Control: max-age=60"}},
		},
	})
}
