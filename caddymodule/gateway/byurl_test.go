// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"net/url"
	"strings"
	"testing"
)

func TestParseByURL(t *testing.T) {
	tests := []struct {
		name    string
		request string
		want    string // "": not by URL
		secret  string
	}{
		{"https", "/https://example.com/feed.xml", "https://example.com/feed.xml", ""},
		{"http", "/http://example.com/feed.xml", "http://example.com/feed.xml", ""},
		{"query", "/https://example.com/?feed=rss2&x", "https://example.com/?feed=rss2&x", ""},
		{"empty query", "/https://example.com/feed?", "https://example.com/feed?", ""},
		{"upper case", "/HTTPS://Example.com/F", "https://Example.com/F", ""},
		{"slash too many", "//http://example.com/f", "http://example.com/f", ""},
		{"feed scheme", "/feed://example.com/f", "http://example.com/f", ""},
		{"podcast app's scheme", "/pcast://example.com/f?x", "http://example.com/f?x", ""},
		{"podcast app's scheme, escaped", "/itpc%3A%2F%2Fexample.com%2Ff", "http://example.com/f", ""},
		{"podcast before https, one slash", "/podcast:https:/example.com/f", "https://example.com/f", ""},
		{"parameter, podcast app's scheme", "/?url=itpc%3A%2F%2Fexample.com%2Ff", "itpc://example.com/f", ""},
		{"parameter, pseudo scheme pasted", "/?url=pcast://example.com/f?a=1&b=2", "pcast://example.com/f?a=1&b=2", ""},
		{"feed before https", "/feed:https://example.com/f", "https://example.com/f", ""},
		{"feed before http, escaped", "/feed%3Ahttp%3A%2F%2Fexample.com%2Ff", "http://example.com/f", ""},
		{"a URL in the path", "/https://a.example/https://b.example/f", "https://a.example/https://b.example/f", ""},
		{"escaped colon", "/https%3A//example.com/f?x=1", "https://example.com/f?x=1", ""},
		{"escaped whole, reader's query", "/https%3a%2f%2fexample.com%2Ff%3Fx%3D1?_=99", "https://example.com/f?x=1", ""},
		{"escaped but the query", "/https%3A%2F%2Fexample.com%2Ff?x=1", "https://example.com/f?x=1", ""},
		{"host", "/~s3cret/example.com/feed.xml?x", "https://example.com/feed.xml?x", "s3cret"},
		{"host and port", "/~s3cret/example.com:8080/f", "https://example.com:8080/f", "s3cret"},
		{"IPv4 host", "/~s3cret/192.0.2.1/f", "https://192.0.2.1/f", "s3cret"},
		{"Unicode host", "/~s3cret/b%C3%BCcher.example/f", "https://b%C3%BCcher.example/f", "s3cret"},
		{"parameter", "/?url=https%3A%2F%2Fexample.com%2Ff%3Fa%3D1%26b%3D2", "https://example.com/f?a=1&b=2", ""},
		{"parameter among others", "/?v=1&url=https%3A%2F%2Fexample.com%2Ff&_=99", "https://example.com/f", ""},
		{"parameter, plus", "/?url=https%3A%2F%2Fexample.com%2Fa%2Bb", "https://example.com/a+b", ""},
		{"parameter, pasted", "/?url=https://example.com/f?a=1&b=%20", "https://example.com/f?a=1&b=%20", ""},
		{"parameter, escaped in part", "/?url=https://example.com/f%3Fa=1&_=99", "https://example.com/f?a=1", ""},
		{"parameter, host only", "/?url=example.com/f", "https://example.com/f", ""},
		{"parameter, host without a slash", "/?url=example.com", "https://example.com", ""},
		{"parameter, port", "/?url=example.com:8080", "https://example.com:8080", ""},
		{"token", "/~s3cret/https://example.com/f?x", "https://example.com/f?x", "s3cret"},
		{"token, parameter", "/~s3cret/?url=https%3A%2F%2Fexample.com%2F", "https://example.com/", "s3cret"},
		{"token, escaped", "/~s3%63ret/https://example.com/f", "https://example.com/f", "s3cret"},
		{"token, tilde escaped", "/%7Es3cret/https://example.com/f", "https://example.com/f", "s3cret"},
		{"empty token", "/~/https://example.com/f", "https://example.com/f", ""},

		{"a path of Nextcloud", "/index.php/apps/files", "", ""},
		{"a path of Socket.IO", "/socket.io/?EIO=4&transport=polling", "", ""},
		{"a host without a token", "/example.com/feed.xml", "", ""},
		{"root", "/", "", ""},
		{"empty parameter", "/?url=", "", ""},
		{"favicon", "/favicon.ico", "", ""},
		{"bare file", "/feed.xml?url=x", "", ""},
		{"folder", "/feeds/rachel.xml", "", ""},
		{"version number", "/1.2/f", "", ""},
		{"port without number", "/example.com:/f", "", ""},
		{"another scheme", "/ftp://example.com/f", "", ""},
		{"host with underscore at a dot", "/a..b/f", "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			u, err := url.ParseRequestURI(tt.request)
			if err != nil {
				t.Fatal(err)
			}
			got, ok := parseByURL(u, u)
			if ok != (tt.want != "") || ok && got.target != tt.want {
				t.Errorf("got %q, %v, want %q", got.target, ok, tt.want)
			}
			if got.token != tt.secret || ok && got.hasToken != strings.HasPrefix(u.Path, "/~") {
				t.Errorf("secret %q (%v), want %q", got.token, got.hasToken, tt.secret)
			}
		})
	}
}

func FuzzParseByURL(f *testing.F) {
	for _, s := range []string{
		"example.com/feed.xml", "example.com/a%2Fb?x=%20&y", "example.com", "example.com/?", "u:p@h/", "[::1]/", "a//b/../c", "%", "?", "~s/https://a.b/",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, written string) {
		for _, prefix := range []string{"/https://", "/https:/", "/~s/https://", "/feeds/https://"} {
			original, err := url.ParseRequestURI(prefix + written)
			if err != nil {
				return
			}
			u := *original
			if rest, ok := strings.CutPrefix(original.EscapedPath(), "/feeds"); ok {
				if u.Path, err = url.PathUnescape(rest); err != nil {
					t.Fatalf("EscapedPath gave %q", rest)
				}
				u.RawPath = rest
			}
			got, ok := parseByURL(&u, original)
			if !ok {
				t.Fatalf("%q is not understood", prefix+written)
			}
			path, query, asked := strings.Cut(written, "?")
			if original.EscapedPath() != prefix+path || strings.HasPrefix(path, "/") || strings.HasPrefix(strings.ToLower(path), "%2f") {
				continue // no valid spelling of a path, or slashes that mean something here
			}
			want := "https://" + path
			if asked {
				want += "?" + query
			}
			if got.target != want {
				t.Fatalf("%q became %q, want %q", prefix+written, got.target, want)
			}
		}
		for _, prefix := range []string{"/", "/?url=", "/~"} {
			if u, err := url.ParseRequestURI(prefix + written); err == nil {
				parseByURL(u, nil)
			}
		}
	})
}
