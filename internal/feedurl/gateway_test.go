// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package feedurl

import "testing"

func TestGatewayAddress(t *testing.T) {
	tests := []struct{ base, secret, feed, want string }{
		{"http://feeds.home.arpa", "", "https://a.example/f?x=1&y=%2F", "http://feeds.home.arpa/https://a.example/f?x=1&y=%2F"},
		{"HTTP://Feeds.Home.Arpa:80/", "", "http://a.example", "http://feeds.home.arpa/http://a.example"},
		{"https://example.com/feeds/", "", "https://a.example/f", "https://example.com/feeds/https://a.example/f"},
		{"https://example.com", "s/3 cret", "https://a.example/f", "https://example.com/~s%2F3%20cret/https://a.example/f"},
		{"https://example.com", "", " HTTPS://bob:pw@A.example:443/ö ", "https://example.com/HTTPS://bob:pw@A.example:443/ö"},
		{"https://example.com", "", "feed://a.example/f", "https://example.com/http://a.example/f"},
		{"https://example.com", "t", "https://example.com/https://a.example/f", "https://example.com/https://a.example/f"},
		{"https://example.com", "t", "https://EXAMPLE.com:443/rachel.xml", "https://EXAMPLE.com:443/rachel.xml"},
		{"https://example.com/feeds", "", "https://example.com/feedsy/f", "https://example.com/feeds/https://example.com/feedsy/f"},
	}
	for _, tt := range tests {
		g, err := ParseGateway(tt.base, tt.secret)
		if err != nil {
			t.Errorf("%s: %v", tt.base, err)
			continue
		}
		if got, err := g.Address(tt.feed); err != nil || got != tt.want {
			t.Errorf("%s for %q: got %q, %v, want %q", tt.base, tt.feed, got, err, tt.want)
		}
	}
}

func TestGatewayRefuses(t *testing.T) {
	for _, base := range []string{"", "feeds.home.arpa", "ftp://feeds.home.arpa", "http://feeds.home.arpa/?x=1"} {
		if g, err := ParseGateway(base, ""); err == nil {
			t.Errorf("%q: got %+v", base, g)
		}
	}
	g, err := ParseGateway("http://feeds.home.arpa", "")
	if err != nil {
		t.Fatal(err)
	}
	for _, feed := range []string{"", "exec:~/bin/feed", "file:///etc/passwd", "|cat", "a.example/f"} {
		if got, err := g.Address(feed); err == nil {
			t.Errorf("%q: got %q", feed, got)
		}
	}
	if got, err := (Gateway{}).Address("http://a.example/"); err == nil {
		t.Errorf("no gateway: got %q", got)
	}
}

func TestGatewayFeed(t *testing.T) {
	g, err := ParseGateway("https://example.com/feeds", "mine")
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct{ address, want string }{
		{"https://example.com/feeds/https://a.example/f?x=1", "https://a.example/f?x=1"},
		{"https://Example.com:443/feeds/~another/http://a.example", "http://a.example"},
		{"https://example.com/feeds/https:/a.example/f", "https://a.example/f"},
		{"https://example.com/feeds//http://a.example/f", "http://a.example/f"},
		{"https://example.com/feeds/~mine/?url=https%3A%2F%2Fa.example%2F%3Fx%3D1&y=2", "https://a.example/?x=1"},
		{"https://example.com/feeds/rachel.xml", ""},
		{"https://example.com/feeds/-/about", ""},
		{"https://example.com/feeds/", ""},
		{"https://example.com/feeds/?url=ftp%3A%2F%2Fa.example%2F", ""},
		{"https://example.com/https://a.example/f", ""},
		{"exec:feed", ""},
	}
	for _, tt := range tests {
		if got, ok := g.Feed(tt.address); got != tt.want || ok != (tt.want != "") {
			t.Errorf("%s: got %q, %v, want %q", tt.address, got, ok, tt.want)
		}
	}
	for _, feed := range []string{"https://bob:pw@a.example/f?x=1#y", "http://a.example", "HTTP://A.example/%zz/ö", "http://[::1]:8080/?"} {
		address, err := g.Address(feed)
		if err != nil {
			t.Errorf("%s: %v", feed, err)
		}
		if back, ok := g.Feed(address); !ok || back != feed {
			t.Errorf("%s became %s and %s, %v", feed, address, back, ok)
		}
	}
}
