// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package httpcache

import (
	"net/http"
	"testing"
	"time"
)

func TestRevalidation(t *testing.T) {
	scenes(t, map[string][]step{
		// RFC 9111 section 4.3.1.
		"with the validators as they came": {
			{origin: says(200, "a", "Cache-Control: max-age=60", "ETag: W/\"e\"", "Last-Modified: Wed, 01 Jan 1997 00:00:00 GMT"), asked: true, body: "a"},
			{after: time.Minute, send: []string{"X-A: 1"}, origin: says(304, ""), asked: true, sees: []string{"If-None-Match: W/\"e\"", "If-Modified-Since: Wed, 01 Jan 1997 00:00:00 GMT", "X-A: 1"}, body: "a", has: []string{"Cache-Status: Pollard; fwd=stale; fwd-status=304; ttl=60; stored"}},
			{after: 59 * time.Second, body: "a", has: []string{"Age: 59"}},
		},
		"no-cache, every time": {
			{origin: says(200, "a", "Cache-Control: no-cache, max-age=60", "ETag: \"e\""), asked: true, body: "a"},
			{origin: says(304, ""), asked: true, sees: []string{"If-None-Match: \"e\""}, body: "a"},
			{send: []string{"If-None-Match: \"e\""}, origin: says(304, ""), asked: true, sees: []string{"If-None-Match: \"e\""}, status: 304},
			{send: []string{"If-None-Match: \"x\""}, origin: says(304, ""), asked: true, sees: []string{"If-None-Match: \"e\""}, body: "a"},
		},
		"a tag alone, every time": {
			{origin: says(200, "a", "ETag: \"e\""), asked: true, body: "a"},
			{origin: says(304, ""), asked: true, sees: []string{"If-None-Match: \"e\""}, body: "a"},
			{origin: says(200, "b", "ETag: \"f\""), asked: true, sees: []string{"If-None-Match: \"e\""}, body: "b"},
			{origin: says(304, ""), asked: true, sees: []string{"If-None-Match: \"f\""}, body: "b"},
		},
		"must-revalidate, once it is stale": {
			{origin: says(200, "a", "Cache-Control: must-revalidate, max-age=60", "ETag: \"e\""), asked: true, body: "a"},
			{after: 59 * time.Second, body: "a"},
			{after: time.Second, origin: says(304, ""), asked: true, sees: []string{"If-None-Match: \"e\""}, body: "a"},
		},
		"not of an error: a 304 would not mean it": {
			{origin: says(404, "a", "Cache-Control: max-age=60", "ETag: \"e\""), asked: true, status: 404, body: "a"},
			{after: time.Minute, origin: says(200, "b"), asked: true, sees: []string{"-If-None-Match"}, body: "b"},
		},
		"a range is not asked for": {
			{origin: says(200, "ab", "Cache-Control: no-cache", "ETag: \"e\""), asked: true, body: "ab"},
			{send: []string{"Range: bytes=1-1"}, origin: says(304, ""), asked: true, sees: []string{"-Range"}, status: 206, body: "b"},
		},
		// Section 3.2.
		"a 304 updates fields": {
			{origin: says(200, "a", "Cache-Control: max-age=60", "ETag: \"e\"", "X-A: 1", "X-B: 1", "Content-Type: text/x", "Content-Encoding: x", "Age: 9"), asked: true, body: "a"},
			{after: time.Minute, origin: says(304, "", "Cache-Control: max-age=120", "X-A: 2", "Content-Type: text/html", "Content-Encoding: y", "Content-Length: 7", "Set-Cookie: a=b"), asked: true, body: "a", has: []string{"X-A: 2", "X-B: 1", "Content-Type: text/x", "Content-Encoding: x", "Content-Length: 1", "-Set-Cookie", "Age: 0"}},
			{after: 119 * time.Second, body: "a", has: []string{"X-A: 2", "X-B: 1", "Content-Type: text/x", "Content-Length: 1", "Date: @-119s", "-Set-Cookie"}},
			{after: time.Second, origin: says(200, "b"), asked: true, body: "b"},
		},
		"a 304 can forbid to keep it": {
			{origin: says(200, "a", "Cache-Control: max-age=60", "ETag: \"e\""), asked: true, body: "a"},
			{after: time.Minute, origin: says(304, "", "Cache-Control: no-store"), asked: true, body: "a"},
			{origin: says(200, "b"), asked: true, sees: []string{"-If-None-Match"}, body: "b"},
		},
		// Section 4.3.4.
		"a 304 of another version updates nothing": {
			{origin: says(200, "a", "Cache-Control: max-age=60", "ETag: \"e\"", "X-A: 1"), asked: true, body: "a"},
			{after: time.Minute, origin: says(304, "", "ETag: \"f\"", "X-A: 2"), asked: true, body: "a", has: []string{"ETag: \"e\"", "X-A: 1"}},
			{origin: says(304, "", "ETag: \"e\""), asked: true, sees: []string{"If-None-Match: \"e\""}, body: "a"},
			{body: "a"},
		},
		"a strong 304 does not update what is weak": {
			{origin: says(200, "a", "Cache-Control: max-age=60", "ETag: W/\"e\"", "X-A: 1"), asked: true, body: "a"},
			{after: time.Minute, origin: says(304, "", "ETag: \"e\"", "X-A: 2"), asked: true, body: "a", has: []string{"X-A: 1"}},
		},
		"a 304 without a Date counts from its arrival": {
			{origin: says(200, "a", "Cache-Control: max-age=60", "ETag: \"e\""), asked: true, body: "a"},
			{after: time.Hour, origin: dateless(says(304, "")), asked: true, body: "a"},
			{after: 59 * time.Second, body: "a", has: []string{"Age: 59", "Date: @-59s"}},
		},
		"a weak 304 updates what is strong": {
			{origin: says(200, "a", "Cache-Control: max-age=60", "ETag: \"e\""), asked: true, body: "a"},
			{after: time.Minute, origin: says(304, "", "ETag: W/\"e\""), asked: true, body: "a"},
			{body: "a"},
		},
		// Section 4.3.3.
		"a full answer takes its place": {
			{origin: says(200, "a", "Cache-Control: max-age=60", "ETag: \"e\""), asked: true, body: "a"},
			{after: time.Minute, origin: says(200, "b", "Cache-Control: max-age=60"), asked: true, body: "b"},
			{body: "b"},
		},
		"one that may not be stored, too": {
			{origin: says(200, "a", "Cache-Control: max-age=60", "ETag: \"e\""), asked: true, body: "a"},
			{after: time.Minute, origin: says(200, "b", "Cache-Control: no-store"), asked: true, body: "b"},
			{origin: says(200, "c"), asked: true, sees: []string{"-If-None-Match"}, body: "c"},
		},
	})
}

func TestHead(t *testing.T) {
	stored := step{origin: says(200, "abc", "Cache-Control: max-age=60", "ETag: \"e\"", "X-A: 1"), asked: true, body: "abc"}
	scenes(t, map[string][]step{
		// RFC 9110 section 9.3.2.
		"from a stored GET": {
			stored,
			{after: time.Second, method: "HEAD", has: []string{"Content-Length: 3", "ETag: \"e\"", "Age: 1", "X-A: 1"}},
		},
		"goes through, and is not a GET": {
			{method: "HEAD", origin: says(200, "abc", "Cache-Control: max-age=60"), own: true},
			{origin: says(200, "abc"), shared: true, body: "abc"},
		},
		// What is stored and stale is brought up to date for all.
		"of a stale one that is confirmed": {
			stored,
			{after: time.Minute, method: "HEAD", origin: says(304, "", "X-A: 2", "Cache-Control: max-age=60"), shared: true, sees: []string{"If-None-Match: \"e\""}, has: []string{"Content-Length: 3", "X-A: 2"}},
			{body: "abc", has: []string{"X-A: 2"}},
		},
		"of a stale one that has changed": {
			stored,
			{after: time.Minute, method: "HEAD", origin: func(r *http.Request) (*http.Response, error) {
				if r.Method != http.MethodGet {
					t.Errorf("%s", r.Method)
				}
				return says(200, "abcd", "Cache-Control: max-age=60", "Content-Length: 4")(r)
			}, shared: true, has: []string{"Content-Length: 4"}},
			{body: "abcd"},
		},
		"of one that must not be kept any more": {
			stored,
			{after: time.Minute, method: "HEAD", origin: says(200, "abc", "Cache-Control: no-store"), shared: true},
			{origin: says(200, "b"), own: true, sees: []string{"-If-None-Match"}, body: "b"},
		},
	})
}

// dateless takes the Date from an origin's answer.
func dateless(answer func(*http.Request) (*http.Response, error)) func(*http.Request) (*http.Response, error) {
	return func(r *http.Request) (*http.Response, error) {
		a, err := answer(r)
		a.Header.Del("Date")
		return a, err
	}
}
