// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/feedpollard/pollard/policy"
	"github.com/feedpollard/pollard/upstream"
)

const sample = `<?xml version="1.0"?><rss version="2.0"><channel><title>T</title><link>https://example.com/</link>` +
	`<item><title>One</title><link>https://example.com/1</link></item></channel></rss>`

// origin is all of the web: each URL is a feed, or what its path says. It keeps a log.
type origin struct {
	mu     sync.Mutex // guards the log
	urls   []string
	agents []string
}

func (o *origin) RoundTrip(r *http.Request) (*http.Response, error) {
	o.mu.Lock()
	o.urls = append(o.urls, r.URL.Scheme+"://"+r.URL.Host+r.URL.RequestURI())
	o.agents = append(o.agents, r.UserAgent())
	o.mu.Unlock()
	status, body := http.StatusOK, sample
	switch {
	case strings.HasPrefix(r.URL.Path, "/gone"):
		status = http.StatusGone
	case strings.HasPrefix(r.URL.Path, "/page"):
		body = "<!DOCTYPE html><html><body>Hello</body></html>"
	}
	h := http.Header{"Content-Type": {"application/rss+xml"}, "Etag": {`"one"`}}
	return &http.Response{
		StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: h, Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)),
	}, nil
}

func (o *origin) asked() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.urls)
}

func (o *origin) agent(i int) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.agents[i]
}

// gatewayOf makes a gateway of the lines of its Caddyfile block, and an engine
// that is not started.
func gatewayOf(t testing.TB, block string) (*Gateway, *App, *origin) {
	t.Helper()
	o := new(origin)
	a := &App{feeds: make(map[string]policy.Rules), log: zap.NewNop(), Policy: Policy{Jitter: new(float64)}}
	if err := a.check(); err != nil {
		t.Fatal(err)
	}
	if err := a.resolveSettings(caddy.NewReplacer()); err != nil {
		t.Fatal(err)
	}
	a.engine = newEngine(t.TempDir(), upstream.New(upstream.WithTransport(o)))
	g := &Gateway{log: zap.NewNop()}
	if err := g.UnmarshalCaddyfile(caddyfile.NewTestDispenser("feed_gateway {\n" + block + "\n}")); err != nil {
		t.Fatal(err)
	}
	var err error
	if g.access, _, err = newAccess(g, caddy.NewReplacer()); err != nil {
		t.Fatal(err)
	}
	if err := g.resolveFeeds(a, caddy.NewReplacer()); err != nil {
		t.Fatal(err)
	}
	return g, a, o
}

// start starts the app, until the end of the test.
func start(t testing.TB, a *App) {
	t.Helper()
	if err := a.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Stop(); a.engine.Destruct() })
}

// ask sends a request from an address through the gateway.
func ask(t *testing.T, g *Gateway, method, target, client string, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(method, target, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	r = caddyhttp.PrepareRequest(r, caddy.NewReplacer(), w, nil)
	caddyhttp.SetVar(r.Context(), caddyhttp.ClientIPVarKey, client)
	next := caddyhttp.HandlerFunc(func(http.ResponseWriter, *http.Request) error {
		return fmt.Errorf("%s %s was passed on", method, target)
	})
	if err := g.ServeHTTP(w, r, next); err != nil {
		t.Fatalf("%s %s: %v", method, target, err)
	}
	return w
}

const (
	home   = "192.168.1.7"
	abroad = "203.0.113.5"
)
