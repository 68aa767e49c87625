// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// discard is a response writer that keeps nothing but its header map.
type discard struct{ h http.Header }

func (d discard) Header() http.Header         { return d.h }
func (d discard) Write(p []byte) (int, error) { return len(p), nil }
func (d discard) WriteHeader(int)             {}

// What a hit costs above Caddy's own work for a request.
func BenchmarkHit(b *testing.B) {
	g, a, _ := gatewayOf(b, "feed /one.xml https://one.example/feed")
	start(b, a)
	for _, bb := range []struct {
		name, target string
		off          bool
	}{
		{"path", "/one.xml", false},
		{"path, readers off", "/one.xml", true},
		{"url", "/https://one.example/feed", false},
	} {
		b.Run(bb.name, func(b *testing.B) {
			a.engine.unobserved.Store(bb.off)
			r := httptest.NewRequest("GET", bb.target, nil)
			r.Header.Set("User-Agent", "FreshRSS/1.24.1 (Linux; https://freshrss.org)")
			r = caddyhttp.PrepareRequest(r, caddy.NewReplacer(), nil, nil)
			caddyhttp.SetVar(r.Context(), caddyhttp.ClientIPVarKey, home)
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

// The same for a shield, with the ledger of readers and without, and with a defence.
func BenchmarkShieldHit(b *testing.B) {
	for _, bb := range []struct {
		name   string
		off    bool
		defend *Defend
	}{
		{"plain", false, nil},
		{"readers off", true, nil},
		{"defended", false, &Defend{Unconditional: 1, SkipHours: true}},
	} {
		b.Run(bb.name, func(b *testing.B) {
			_, a, _ := gatewayOf(b, "")
			a.settings.unobserved = bb.off
			start(b, a)
			s := &Shield{engine: a.engine, Defend: bb.defend, site: newSite(shieldRules(), a.settings.origin)}
			host := caddyhttp.MatchHost{"blog.test"}
			s.position.Store(&position{known: true, hosts: []*caddyhttp.MatchHost{&host}})
			next := caddyhttp.HandlerFunc(func(w http.ResponseWriter, r *http.Request) error { return feed(sample)(w, r) })
			r := request("GET", blog+"/feed/")
			r = caddyhttp.PrepareRequest(r, caddy.NewReplacer(), nil, nil)
			caddyhttp.SetVar(r.Context(), caddyhttp.ClientIPVarKey, home)
			w := discard{make(http.Header)}
			b.ReportAllocs()
			for b.Loop() {
				clear(w.h)
				if err := s.ServeHTTP(w, r, next); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
