// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/cryptotest"
	"testing/synctest"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/feedpollard/pollard/caddymodule/internal/stage"
	"github.com/feedpollard/pollard/caddymodule/poller"
	"github.com/feedpollard/pollard/internal/origintest"
	"github.com/feedpollard/pollard/upstream"
)

const secret = "s3cret-of-alice-0001"

// homePage is a web page that links to two feeds.
const homePage = `<!doctype html><title>A &amp; B</title><link rel=alternate type=application/atom+xml title=Posts href=/atom.xml>` +
	`<link rel=alternate type=application/rss+xml href="https://user:secret@other.example/feed">`

// answer is several origins.
func answer(r *http.Request) origintest.Answer {
	switch {
	case r.URL.Host == "nope.invalid":
		return origintest.Fail(&net.DNSError{Err: "no such host", Name: r.URL.Host, IsNotFound: true})
	case r.URL.Host == "none.example":
		return origintest.Status(http.StatusNotFound)
	case strings.HasPrefix(r.URL.Path, "/gone"):
		return origintest.Status(http.StatusGone)
	case strings.HasSuffix(r.URL.Host, "site.example"):
		return origintest.OK(homePage, "Content-Type", "text/html")
	case r.URL.Host == "empty.example", strings.HasPrefix(r.URL.Path, "/page"):
		return origintest.OK("<!doctype html><title>Nothing</title>", "Content-Type", "text/html")
	}
	return origintest.OK(stage.FeedNamed("My weblog"), "ETag", `"one"`)
}

// gatewayOf returns a gateway with these Caddyfile lines, and an app that is not started.
func gatewayOf(t testing.TB, lines string) (*Gateway, *poller.App, *origintest.Origin) {
	t.Helper()
	o := &origintest.Origin{Answer: answer}
	ctx, a := stage.Provision(t, upstream.New(upstream.WithTransport(o)), "")
	return provisioned(t, ctx, lines), a, o
}

// sameKey gives stores the same key in each run: with some keys, two readers have one place in a sketch,
// and are counted once.
func sameKey(t *testing.T) { cryptotest.SetGlobalRandom(t, 1) }

// onGateway runs a test in a bubble, on a gateway with these lines.
func onGateway(t *testing.T, lines string, run func(t *testing.T, g *Gateway, o *origintest.Origin)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		g, a, o := gatewayOf(t, lines)
		start(t, a)
		run(t, g, o)
	})
}

// provisioned returns a provisioned gateway with these lines.
func provisioned(t testing.TB, ctx caddy.Context, lines string) *Gateway {
	t.Helper()
	g := new(Gateway)
	if err := g.UnmarshalCaddyfile(caddyfile.NewTestDispenser("feed_gateway {\n" + lines + "\n}")); err != nil {
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

// ask sends a request from an address to the gateway. On its site, nothing else answers.
func ask(t *testing.T, g *Gateway, method, target, client string, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	return send(t, g, httptest.NewRequest(method, target, nil), client, func(http.ResponseWriter, *http.Request) error { return nil }, header...)
}

// post sends a form.
func post(t *testing.T, g *Gateway, target, client, contentType, body string, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	return send(t, g, httptest.NewRequest("POST", target, strings.NewReader(body)), client, nil, append(header, "Content-Type", contentType)...)
}

func send(t *testing.T, g *Gateway, r *http.Request, client string, next caddyhttp.HandlerFunc, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	r.Host = "feeds.home.arpa"
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	r = caddyhttp.PrepareRequest(r, caddy.NewReplacer(), w, nil)
	caddyhttp.SetVar(r.Context(), caddyhttp.ClientIPVarKey, client)
	if err := g.ServeHTTP(w, r, next); err != nil {
		t.Fatalf("%s %s: %v", r.Method, r.URL, err)
	}
	return w
}
