// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/feedpollard/pollard/cache"
	"github.com/feedpollard/pollard/cache/store/sqlite"
	"github.com/feedpollard/pollard/policy"
)

// sink is a response writer that costs nothing, so that what is measured is ours.
type sink struct {
	header http.Header
	status int
}

func (s *sink) Header() http.Header         { return s.header }
func (s *sink) WriteHeader(status int)      { s.status = status }
func (s *sink) Write(b []byte) (int, error) { return len(b), nil }

func BenchmarkHit(b *testing.B) {
	origin := &script{answer: func(policy.Ask) policy.Answer { return ok(rss(150, ""), "ETag", `"v"`) }}
	c, err := cache.New(cache.Options{Store: sqlite.NewMemory(nil), Origin: origin})
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	f, err := c.Feed(b.Context(), feedURL)
	if err != nil {
		b.Fatal(err)
	}
	first := httptest.NewRecorder()
	if _, err := f.Serve(first, httptest.NewRequest(http.MethodGet, "/", nil)); err != nil {
		b.Fatal(err)
	}
	const browser = "gzip, deflate, br, zstd"
	for _, test := range []struct {
		name   string
		header http.Header
		want   int
	}{
		{"304 by tag", http.Header{"If-None-Match": first.Header()["Etag"], "Accept-Encoding": {"gzip"}}, 304},
		{"304 by date", http.Header{"If-Modified-Since": first.Header()["Last-Modified"], "Accept-Encoding": {"gzip"}}, 304},
		{"200 gzip", http.Header{"Accept-Encoding": {"gzip"}}, 200},
		{"200 of many codings", http.Header{"Accept-Encoding": {browser}}, 200},
		{"200 identity", http.Header{}, 200},
	} {
		b.Run(test.name, func(b *testing.B) {
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			r.Header = test.header
			w := &sink{header: http.Header{}}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := f.Serve(w, r); err != nil {
					b.Fatal(err)
				}
			}
			if w.status != test.want {
				b.Fatalf("got %d, want %d", w.status, test.want)
			}
		})
	}
}
