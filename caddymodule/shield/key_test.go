// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package shield

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/feedpollard/pollard/caddymodule/internal/stage"
)

// No query makes a request look like the rewrite of another one.
func TestShieldKeyIsUnambiguous(t *testing.T) {
	s := &Shield{Host: "blog.test", host: "blog.test", name: "b"}
	seen := make(map[string]string)
	for _, targets := range [][2]string{ // original, rewritten
		{"/feed", "/feed"}, {"/feed", "/index.php"}, {"/index.php", "/index.php"}, {"/feed?a /index.php", "/feed?a /index.php"},
		{"/feed?a", "/index.php?a"}, {"/feed?a%20/index.php", "/x?b"}, {"/feed%20/index.php", "/feed%20/index.php"},
		{"/feed?target:/x", "/feed?target:/x"}, {"/feed?x target:/x", "/feed?x target:/x"}, {"/feed%20target:/x", "/feed%20target:/x"},
		{"/feed%09X=1", "/feed%09X=1"}, {"//feed", "//feed"}, {"/feed#/x", "/feed#/x"}, {"/feed?#/x", "/feed?#/x"},
	} {
		r := stage.Request("GET", "/")
		// HTTP/2 allows a space in the query.
		r.URL = asSent(t, targets[1])
		original := http.Request{URL: asSent(t, targets[0])}
		r = r.WithContext(context.WithValue(r.Context(), caddyhttp.OriginalRequestCtxKey, original))
		k, ok := s.keyOf(r)
		if !ok {
			t.Errorf("%q has no key", targets)
		}
		key := k.String()
		if other, ok := seen[key]; ok {
			t.Errorf("%q and %s have the key %q", targets, other, key)
		}
		seen[key] = fmt.Sprintf("%q", targets)
		if strings.Count(key, " ") > 2 || strings.Contains(key, "\t") {
			t.Errorf("%q has the key %q", targets, key)
		}
	}
}

// asSent returns the URL of a request line.
func asSent(t *testing.T, target string) *url.URL {
	t.Helper()
	u, err := url.ParseRequestURI(target)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// Polls are for a host of the configuration, whatever readers send.
func TestHostOfRequest(t *testing.T) {
	for _, tt := range []struct {
		name  string
		sites []string
		host  string // the line
		asked string // by the reader
		tls   bool
		want  string // empty: not shared
	}{
		{"name", []string{"blog.test"}, "", "blog.test", true, "blog.test"},
		{"letters and port", []string{"http://blog.test"}, "", "BLOG.test:666", false, "blog.test"},
		{"port of the site", []string{"http://blog.test:8080"}, "", "blog.test", false, "blog.test:8080"},
		{"port of the other scheme", []string{"http://blog.test:8080", "https://blog.test:8443"}, "", "blog.test:8080", true, "blog.test:8443"},
		{"default ports", []string{"http://blog.test:80"}, "", "blog.test:80", false, "blog.test"},
		{"second site", []string{"http://blog.test", "http://www.blog.test"}, "", "www.blog.test", false, "www.blog.test"},
		{"wildcard", []string{"*.blog.test"}, "", "a.blog.test", true, "a.blog.test"},
		{"wildcard, two labels", []string{"*.blog.test"}, "", "a.b.blog.test", true, ""},
		{"wildcard, no name", []string{"*.blog.test"}, "", "a/b.blog.test", true, ""},
		{"another host", []string{"blog.test"}, "", "evil.test", true, ""},
		{"any host", []string{":8080"}, "", "evil.test", false, ""},
		{"any host, with a line", []string{":8080"}, "Blog.test", "evil.test", false, "blog.test"},
		{"a line with a port", []string{":8080"}, "blog.test:8080", "evil.test", false, "blog.test:8080"},
		{"IPv4", []string{"http://127.0.0.1:8080"}, "", "127.0.0.1:8080", false, "127.0.0.1:8080"},
		{"IPv6", []string{"http://[::1]:8080"}, "", "[::1]:8080", false, "[::1]:8080"},
		{"IPv6 without port", []string{"http://[::1]"}, "", "[::1]", false, "[::1]"},
		{"no Host", []string{"blog.test"}, "", "", true, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := &Shield{Sites: tt.sites, Host: tt.host}
			if err := s.resolveSite(caddy.NewReplacer()); err != nil {
				t.Fatal(err)
			}
			r := stage.Request("GET", "/")
			r.Host = tt.asked
			if tt.tls {
				r.TLS = new(tls.ConnectionState)
			}
			got, ok := s.hostOf(r, scheme(r))
			if !ok {
				got = ""
			}
			if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestQueryKept(t *testing.T) {
	for _, tt := range []struct {
		query *Query
		raw   string
		want  string
	}{
		{nil, "", ""},
		{nil, "b=1&a=2&&x", "b=1&a=2&&x"},
		{nil, "a b", "a%20b"},
		{&Query{Ignore: true}, "a=1", ""},
		{&Query{Keep: []string{"a"}}, "b=1&a=2&a=3&A=4", "a=2&a=3"},
		{&Query{Keep: []string{"a b"}}, "a+b=1&a%20b=2&ab=3", "a+b=1&a%20b=2"},
		{&Query{Keep: []string{"a"}}, "%zz=1&a", "a"},
		{&Query{Keep: []string{"a"}}, "b", ""},
	} {
		if got := tt.query.kept(tt.raw); got != tt.want {
			t.Errorf("%+v of %q: got %q, want %q", tt.query, tt.raw, got, tt.want)
		}
	}
}
