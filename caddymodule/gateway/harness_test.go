// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/feedpollard/pollard/caddymodule/internal/stage"
	"github.com/feedpollard/pollard/caddymodule/poller"
	"github.com/feedpollard/pollard/internal/origintest"
	"github.com/feedpollard/pollard/upstream"
)

// gatewayOf returns a gateway with these Caddyfile lines, and an app that is not started.
func gatewayOf(t testing.TB, block string) (*Gateway, *poller.App, *origintest.Origin) {
	t.Helper()
	o := &origintest.Origin{Answer: func(r *http.Request) origintest.Answer {
		switch {
		case strings.HasPrefix(r.URL.Path, "/gone"):
			return origintest.Status(http.StatusGone)
		case strings.HasPrefix(r.URL.Path, "/page"):
			return origintest.OK("<!DOCTYPE html><html><body>Hello</body></html>")
		}
		return origintest.OK(stage.Sample, "ETag", `"one"`)
	}}
	ctx, a := stage.Provision(t, upstream.New(upstream.WithTransport(o)), "")
	return provisioned(t, ctx, block), a, o
}

// provisioned returns a provisioned gateway with these lines.
func provisioned(t testing.TB, ctx caddy.Context, block string) *Gateway {
	t.Helper()
	g := new(Gateway)
	if err := g.UnmarshalCaddyfile(caddyfile.NewTestDispenser("feed_gateway {\n" + block + "\n}")); err != nil {
		t.Fatal(err)
	}
	if err := g.Provision(ctx); err != nil {
		t.Fatal(err)
	}
	return g
}

// start starts the app, and stops it at the end of the test.
func start(t testing.TB, a *poller.App) {
	t.Helper()
	if err := a.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Stop() })
}

// ask sends a request from an address to the gateway.
func ask(t *testing.T, g *Gateway, method, target, client string, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(method, target, nil)
	r.Host = "feeds.home.arpa"
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	r = caddyhttp.PrepareRequest(r, caddy.NewReplacer(), w, nil)
	caddyhttp.SetVar(r.Context(), caddyhttp.ClientIPVarKey, client)
	nothing := caddyhttp.HandlerFunc(func(http.ResponseWriter, *http.Request) error { return nil })
	if err := g.ServeHTTP(w, r, nothing); err != nil {
		t.Fatalf("%s %s: %v", method, target, err)
	}
	return w
}
