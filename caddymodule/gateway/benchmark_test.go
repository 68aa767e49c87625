// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/feedpollard/pollard/caddymodule/internal/stage"
)

// discard is a response writer that keeps its header only.
type discard struct{ h http.Header }

func (d discard) Header() http.Header         { return d.h }
func (d discard) Write(p []byte) (int, error) { return len(p), nil }
func (d discard) WriteHeader(int)             {}

// The cost of a hit above Caddy's own work for a request.
func BenchmarkHit(b *testing.B) {
	for _, bb := range []struct {
		name, target string
		line         string
	}{
		{"path", "/one.xml", ""},
		{"path, readers", "/one.xml", "readers"},
		{"url", "/https://one.example/feed", ""},
	} {
		b.Run(bb.name, func(b *testing.B) {
			g, a, _ := gatewayOf(b, bb.line+"\nfeed /one.xml https://one.example/feed")
			start(b, a)
			r := httptest.NewRequest("GET", bb.target, nil)
			r.Header.Set("User-Agent", "FreshRSS/1.24.1 (Linux; https://freshrss.org)")
			r = caddyhttp.PrepareRequest(r, caddy.NewReplacer(), nil, nil)
			caddyhttp.SetVar(r.Context(), caddyhttp.ClientIPVarKey, stage.Home)
			w := discard{make(http.Header)}
			b.ReportAllocs()
			for b.Loop() {
				clear(w.h)
				if err := g.ServeHTTP(w, r, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
