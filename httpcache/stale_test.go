// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package httpcache

import (
	"errors"
	"net/http"
	"testing"
	"time"
)

// outage is a scene in which an origin fails some time after an answer went stale.
func outage(after time.Duration, failure func(*http.Request) (*http.Response, error), lines ...string) []step {
	return []step{
		{origin: says(200, "a", lines...), asked: true, body: "a"},
		{after: after, origin: failure, asked: true, body: "a"},
	}
}

// relayed is the same scene where nothing stale may be served.
func relayed(after time.Duration, lines ...string) []step {
	return []step{
		{origin: says(200, "a", lines...), asked: true, body: "a"},
		{after: after, origin: says(503, "down"), asked: true, status: 503, body: "down"},
	}
}

func TestStaleIfError(t *testing.T) {
	down := says(503, "down")
	scenes(t, map[string][]step{
		// RFC 9111 section 4.2.4, RFC 5861 section 4.
		"500":                outage(2*time.Minute, says(500, "down"), "Cache-Control: max-age=60"),
		"502":                outage(2*time.Minute, says(502, "down"), "Cache-Control: max-age=60"),
		"503":                outage(2*time.Minute, down, "Cache-Control: max-age=60"),
		"504":                outage(2*time.Minute, says(504, "down"), "Cache-Control: max-age=60"),
		"no connection":      outage(2*time.Minute, fails(errors.New("refused")), "Cache-Control: max-age=60"),
		"a panic":            outage(2*time.Minute, func(*http.Request) (*http.Response, error) { panic("oops") }, "Cache-Control: max-age=60"),
		"an error's status":  outage(2*time.Minute, fails(&OriginError{502, errors.New("refused")}), "Cache-Control: max-age=60"),
		"a validated one":    outage(2*time.Minute, down, "Cache-Control: max-age=60", "ETag: \"e\""),
		"end of the window":  outage(staleIfError+59*time.Second, down, "Cache-Control: max-age=60"),
		"after the window":   relayed(staleIfError+time.Minute, "Cache-Control: max-age=60"),
		"directive's window": outage(30*time.Hour+59*time.Second, down, "Cache-Control: max-age=60, stale-if-error=108000"),
		"after it":           relayed(30*time.Hour+60*time.Second, "Cache-Control: max-age=60, stale-if-error=108000"),
		"shorter than usual": relayed(70*time.Second, "Cache-Control: max-age=60, stale-if-error=10"),
		"must-revalidate":    relayed(time.Minute, "Cache-Control: max-age=60, must-revalidate, stale-if-error=600"),
		"proxy-revalidate":   relayed(time.Minute, "Cache-Control: max-age=60, proxy-revalidate, stale-if-error=600"),
		"s-maxage":           relayed(time.Minute, "Cache-Control: s-maxage=60, stale-if-error=600"),
		"no-cache":           relayed(time.Minute, "Cache-Control: no-cache, stale-if-error=600", "ETag: \"e\""),
		"a 404 is an answer": {
			{origin: says(200, "a", "Cache-Control: max-age=60"), asked: true, body: "a"},
			{after: time.Minute, origin: says(404, "gone"), asked: true, status: 404, body: "gone"},
			{origin: says(503, "down"), asked: true, status: 503, body: "down"}, // and newer than what was stored
		},
		"a stored error is none better": {
			{origin: says(503, "a", "Cache-Control: max-age=60"), asked: true, status: 503, body: "a"},
			{after: time.Minute, origin: says(502, "b"), asked: true, status: 502, body: "b"},
		},
		"an error with a lifetime does not take its place": {
			{origin: says(200, "a", "Cache-Control: max-age=60"), asked: true, body: "a"},
			{after: time.Minute, origin: says(503, "down", "Cache-Control: max-age=600"), asked: true, body: "a"},
			{after: time.Minute, origin: says(200, "b"), asked: true, body: "b"},
		},
		"nor does it lose the validators, after the window too": {
			{origin: says(200, "a", "Cache-Control: max-age=60", "ETag: \"e\""), asked: true, body: "a"},
			{after: 2 * staleIfError, origin: says(503, "down"), asked: true, status: 503, body: "down"},
			{origin: says(304, ""), asked: true, sees: []string{"If-None-Match: \"e\""}, body: "a"},
		},
		"a HEAD, too": {
			{origin: says(200, "a", "Cache-Control: max-age=60"), asked: true, body: "a"},
			{after: time.Minute, method: "HEAD", origin: down, asked: true, has: []string{"Content-Length: 1"}},
		},
	})
}

func TestOriginError(t *testing.T) {
	bubble(t, func(t *testing.T, b *bench) {
		b.run([]step{{origin: says(200, "a", "Cache-Control: max-age=60"), asked: true, body: "a"}})
		time.Sleep(time.Minute)
		gone := errors.New("gone")
		b.origin(fails(&OriginError{http.StatusNotFound, gone}))
		if _, err := b.try(request("GET", "/")); err != gone { //nolint:errorlint // it must be unchanged
			t.Errorf("got %v, want the origin's own error: a 404 is no failure", err)
		}
		b.origin(fails(gone))
		if _, err := b.try(request("GET", "/other")); err != gone { //nolint:errorlint // it must be unchanged
			t.Errorf("got %v, want the origin's own error", err)
		}
	})
}

func TestStaleWhileRevalidate(t *testing.T) {
	const lines = "Cache-Control: max-age=60, stale-while-revalidate=30"
	scenes(t, map[string][]step{
		// RFC 5861 section 3.
		"in the window": {
			{origin: says(200, "a", lines, "ETag: \"e\""), asked: true, body: "a"},
			{after: 60 * time.Second, send: []string{"X-A: 1", "If-None-Match: \"x\""}, origin: says(200, "b", lines), asked: true, sees: []string{"X-A: 1", "If-None-Match: \"e\""}, body: "a", has: []string{"Age: 60", "Cache-Status: Pollard; hit; ttl=0; detail=stale-while-revalidate"}},
			{body: "b"},
		},
		"confirmed in the background": {
			{origin: says(200, "a", lines, "ETag: \"e\""), asked: true, body: "a"},
			{after: 89 * time.Second, origin: says(304, "", "X-B: 1"), asked: true, body: "a"},
			{after: 59 * time.Second, body: "a", has: []string{"X-B: 1", "Age: 59"}},
		},
		"a HEAD makes a GET of it": {
			{origin: says(200, "a", lines), asked: true, body: "a"},
			{after: 60 * time.Second, method: "HEAD", origin: says(200, "b", lines), asked: true},
			{body: "b"},
		},
		"after the window": {
			{origin: says(200, "a", lines), asked: true, body: "a"},
			{after: 90 * time.Second, origin: says(200, "b"), asked: true, body: "b"},
		},
		"not against must-revalidate": {
			{origin: says(200, "a", lines+", must-revalidate"), asked: true, body: "a"},
			{after: 60 * time.Second, origin: says(200, "b"), asked: true, body: "b"},
		},
		"a failure in the background": {
			{origin: says(200, "a", lines), asked: true, body: "a"},
			{after: 60 * time.Second, origin: fails(errors.New("refused")), asked: true, body: "a"},
			{origin: says(200, "b"), asked: true, body: "a"},
			{origin: says(200, "c"), asked: true, body: "c"},
		},
	})
}
