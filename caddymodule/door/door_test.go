// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package door

import (
	"context"
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// received returns a request as Caddy hands it to a handler.
func received(trusted bool, client string, header ...string) *http.Request {
	r := httptest.NewRequest("GET", "/feed", nil)
	r.Host, r.RemoteAddr = "pollard:8080", "192.168.1.2:1234"
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	r = caddyhttp.PrepareRequest(r, caddy.NewReplacer(), httptest.NewRecorder(), nil)
	caddyhttp.SetVar(r.Context(), caddyhttp.TrustedProxyVarKey, trusted)
	caddyhttp.SetVar(r.Context(), caddyhttp.ClientIPVarKey, client)
	return r
}

// What a proxy says of a request counts if Caddy trusts the proxy.
func TestRead(t *testing.T) {
	const proxy, reader = "192.168.1.2", "198.51.100.7"
	for _, tt := range []struct {
		name                      string
		trusted                   bool
		client                    string
		header                    []string
		forwarded, scheme, sender string
	}{
		{"no proxy", false, reader, nil, "", "http", reader},
		{"a proxy that is not trusted", false, proxy, []string{"X-Forwarded-For", reader, "X-Forwarded-Host", "a.example", "X-Forwarded-Proto", "https"}, "", "http", proxy},
		{"a trusted proxy", true, reader, []string{"X-Forwarded-For", reader, "X-Forwarded-Host", "a.example", "X-Forwarded-Proto", "HTTPS"}, "a.example", "https", reader},
		{"a list of names", true, reader, []string{"X-Forwarded-Host", "b.example", "X-Forwarded-Host", "evil.example, a.example:8443"}, "a.example:8443", "http", reader},
		{"no host", true, reader, []string{"X-Forwarded-Host", "a.example, user@b.example", "X-Forwarded-Proto", "ftp"}, "", "http", reader},
		{"a proxy that says no address", true, proxy, []string{"X-Forwarded-For", "unknown"}, "", "http", "a client without an IP address"},
	} {
		in := Read(received(tt.trusted, tt.client, tt.header...))
		if in.Trusted != tt.trusted || in.Host != "pollard:8080" || in.Forwarded != tt.forwarded || in.Scheme != tt.scheme || in.Client.String() != tt.sender {
			t.Errorf("%s: %v, %s and %q, %s, %s", tt.name, in.Trusted, in.Host, in.Forwarded, in.Scheme, in.Client)
		}
	}
	r := received(false, reader)
	r.TLS = new(tls.ConnectionState)
	if in := Read(r); in.Scheme != "https" || in.SiteAddress() != "https://pollard:8080" {
		t.Errorf("over TLS: %s", in.SiteAddress())
	}
}

// A handler sees the URL before rewrites, if Caddy has recorded it.
func TestSent(t *testing.T) {
	r := received(false, "192.0.2.1")
	r.URL = &url.URL{Path: "/index.php"}
	if in := Read(r); in.Sent.Path != "/feed" || in.URL.Path != "/index.php" {
		t.Errorf("rewritten: %s, sent as %s", in.URL, in.Sent)
	}
	if in := Read(r.WithContext(context.Background())); in.Sent != r.URL {
		t.Errorf("without Caddy: %s, sent as %s", in.URL, in.Sent)
	}
}

// A hit reads its request, so reading takes no memory, unless addresses in a field have to be compared.
func TestReadAllocates(t *testing.T) {
	for _, tt := range []struct {
		name string
		r    *http.Request
		most float64
	}{
		{"a reader", received(false, "2001:db8::1", "Accept-Encoding", "gzip", "If-None-Match", `"a"`), 0},
		{"a trusted proxy", received(true, "198.51.100.7", "X-Forwarded-For", "198.51.100.7", "X-Forwarded-Proto", "https"), 2},
	} {
		if n := testing.AllocsPerRun(100, func() {
			in := Read(tt.r)
			if in.MayBeOfOtherSite() || in.OfOtherSite() {
				t.Errorf("%s is taken for a page", tt.name)
			}
		}); n > tt.most {
			t.Errorf("%s: %g allocations, want %g at most", tt.name, n, tt.most)
		}
	}
}
