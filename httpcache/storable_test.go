// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package httpcache

import (
	"testing"
	"time"
)

func TestStorable(t *testing.T) {
	twice := func(status int, reused bool, send []string, lines ...string) []step {
		return []step{
			{send: send, origin: says(status, "a", lines...), asked: true, status: status, body: "a"},
			{send: send, origin: says(status, "a", lines...), asked: !reused, status: status, body: "a"},
		}
	}
	login := []string{"Authorization: Basic eDp5"}
	scenes(t, map[string][]step{
		// RFC 9111 section 3.
		"200":                     twice(200, true, nil, "Cache-Control: max-age=60"),
		"any status with max-age": twice(599, true, nil, "Cache-Control: max-age=60"),
		"a redirect":              twice(302, true, nil, "Cache-Control: max-age=60", "Location: /x"),
		"an error with max-age":   twice(503, true, nil, "Cache-Control: max-age=60"),
		"206":                     twice(206, false, nil, "Cache-Control: max-age=60", "Content-Range: bytes 0-0/2"),
		"304 nobody asked for":    {{origin: says(304, "", "Cache-Control: max-age=60"), asked: true, status: 304}, {origin: says(200, "a"), asked: true, body: "a"}},
		"no-store":                twice(200, false, nil, "Cache-Control: max-age=60, no-store"),
		"private":                 twice(200, false, nil, "Cache-Control: max-age=60, private"),
		"no-cache, no validator":  twice(200, false, nil, "Cache-Control: max-age=60, no-cache"),
		"Vary: *":                 twice(200, false, nil, "Cache-Control: max-age=60", "Vary: *"),
		"Vary: * in a list":       twice(200, false, nil, "Cache-Control: max-age=60", "Vary: a", "Vary: , b, *"),
		"Vary that is no name":    twice(200, false, nil, "Cache-Control: max-age=60", "Vary: a b"),

		"a 201 without a lifetime": {
			{origin: says(201, "a", "ETag: \"e\""), asked: true, status: 201, body: "a"},
			{origin: says(200, "b"), asked: true, sees: []string{"-If-None-Match"}, body: "b"},
		},

		// Section 5.2.2.3.
		"must-understand":                   twice(200, true, nil, "Cache-Control: max-age=60, no-store, must-understand"),
		"must-understand, not understood":   twice(599, false, nil, "Cache-Control: max-age=60, no-store, must-understand"),
		"must-understand alone, understood": twice(404, true, nil, "Cache-Control: max-age=60, must-understand"),

		// Section 3.5.
		"Authorization":                      twice(200, false, login, "Cache-Control: max-age=60"),
		"Authorization and public":           twice(200, true, login, "Cache-Control: max-age=60, public"),
		"Authorization and s-maxage":         twice(200, true, login, "Cache-Control: s-maxage=60"),
		"Authorization and must-revalidate":  twice(200, true, login, "Cache-Control: max-age=60, must-revalidate"),
		"Authorization and proxy-revalidate": twice(200, false, login, "Cache-Control: max-age=60, proxy-revalidate"),
		"an Authorization is passed on":      {{send: login, origin: says(200, "a"), asked: true, sees: login, body: "a"}},
		"a private answer is not for others": {{send: login, origin: says(200, "a", "Cache-Control: max-age=60"), asked: true, body: "a"}, {origin: says(404, "no"), asked: true, status: 404, body: "no"}},
		"a cookie in a request says nothing": {{send: []string{"Cookie: a=b"}, origin: says(200, "a", "Cache-Control: max-age=60"), shared: true, sees: []string{"-Cookie"}, body: "a"}, {body: "a"}, {send: []string{"Cookie: c=d"}, body: "a"}},
		"Cache-Control in a request is advice": {
			{send: []string{"Cache-Control: no-store"}, origin: says(200, "a", "Cache-Control: max-age=60"), asked: true, body: "a"},
			{send: []string{"Cache-Control: no-cache", "Pragma: no-cache"}, body: "a"},
			{send: []string{"Cache-Control: max-age=0"}, body: "a"},
		},

		// Section 5.2.1.7.
		"only-if-cached, and it is not": {{send: []string{"Cache-Control: only-if-cached"}, status: 504, body: "*"}},
		"only-if-cached, and it is": {
			{origin: says(200, "a", "Cache-Control: max-age=60"), asked: true, body: "a"},
			{send: []string{"Cache-Control: only-if-cached"}, body: "a"},
		},

		// Section 4: the key.
		"another query": {
			{path: "/?a", origin: says(200, "a", "Cache-Control: max-age=60"), asked: true, body: "a"},
			{path: "/?b", origin: says(200, "b", "Cache-Control: max-age=60"), asked: true, body: "b"},
			{path: "/?a", body: "a"},
		},
	})
}

func TestStoredFields(t *testing.T) {
	scenes(t, map[string][]step{
		// RFC 9111 section 3.1.
		"end-to-end fields": {
			{origin: says(200, "a", "Cache-Control: max-age=60", "X-A: 1", "Content-Type: text/x", "ETag: \"e\"", "Link: <a>", "Link: <b>", "Date: @-5s"), asked: true, body: "a"},
			{body: "a", has: []string{"X-A: 1", "Content-Type: text/x", "ETag: \"e\"", "Cache-Control: max-age=60", "Date: @-5s", "Content-Length: 1"}},
		},
		"not those that Connection names": {
			{origin: says(200, "a", "Cache-Control: max-age=60", "Connection: x-a, X-B", "X-A: 1", "X-B: 1", "X-C: 1", "Keep-Alive: timeout=5", "Proxy-Authenticate: Basic", "Te: x", "Upgrade: x"), asked: true, body: "a", has: []string{"-X-A", "-X-B", "-Keep-Alive", "-Connection", "-Upgrade", "X-C: 1"}},
			{body: "a", has: []string{"-X-A", "-X-B", "-Keep-Alive", "-Connection", "-Proxy-Authenticate", "-Te", "-Upgrade", "X-C: 1"}},
		},
		"neither in requests": {
			{send: []string{"Connection: x-a", "X-A: 1", "Te: trailers, gzip", "Proxy-Authorization: x", "X-C: 1", "X-D: 1"}, origin: says(200, "a"), shared: true, sees: []string{"-X-A", "Te: trailers", "-Proxy-Authorization", "-Connection", "-Upgrade", "X-C: 1"}, body: "a"},
		},
		"a cookie is for one reader": {
			{origin: says(200, "a", "Cache-Control: max-age=60", "Set-Cookie: a=b"), asked: true, body: "a", has: []string{"Set-Cookie: a=b"}},
			{body: "a", has: []string{"-Set-Cookie"}},
		},
		// Sections 5.2.2.4 and 5.2.2.7: with field names the directives concern those only.
		"no-cache and private with names": {
			{origin: says(200, "a", "Cache-Control: max-age=60, no-cache=\"x-a, X-B\", private=\"x-c\"", "X-A: 1", "X-B: 1", "X-C: 1", "X-D: 1"), asked: true, body: "a", has: []string{"X-A: 1", "X-C: 1"}},
			{body: "a", has: []string{"-X-A", "-X-B", "-X-C", "X-D: 1"}},
		},
		// Section 5.1.
		"Age": {
			{origin: says(200, "a", "Cache-Control: max-age=60", "Age: 10"), asked: true, body: "a", has: []string{"Age: 10"}},
			{after: 5 * time.Second, body: "a", has: []string{"Age: 15"}},
		},
		// RFC 9110 section 6.6.1.
		"a Date is added": {
			{origin: says(200, "a", "Cache-Control: max-age=60", "Date: x"), asked: true, body: "a"},
			{after: 5 * time.Second, body: "a", has: []string{"Date: @-5s"}},
		},
		// RFC 9211.
		"Cache-Status": {
			{origin: says(200, "a", "Cache-Control: max-age=60"), asked: true, body: "a", has: []string{"Cache-Status: Pollard; fwd=uri-miss; fwd-status=200; ttl=60; stored"}},
			{after: 5 * time.Second, body: "a", has: []string{"Cache-Status: Pollard; hit; ttl=55"}},
			{after: 60 * time.Second, origin: says(503, "x"), asked: true, body: "a", has: []string{"Cache-Status: Pollard; fwd=stale; fwd-status=503; ttl=-5; detail=stale-if-error"}},
			{path: "/n", origin: says(200, "a", "Cache-Control: no-store"), asked: true, body: "a", has: []string{"Cache-Status: Pollard; fwd=uri-miss; fwd-status=200"}},
			{method: "POST", origin: says(200, "a"), asked: true, body: "a", has: []string{"Cache-Status: Pollard; fwd=method; fwd-status=200"}},
		},
	})
}
