// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package feedurl

import "testing"

// Addresses as people, browsers and lists of other programs write them.
func TestParseWritten(t *testing.T) {
	for _, tt := range []struct{ written, want string }{
		{"https://example.com/feed", "https://example.com/feed"},
		{"example.com/feed", "https://example.com/feed"},
		{" example.com ", "https://example.com/"},
		{"example.com?feed=rss2", "https://example.com/?feed=rss2"},
		{"Example.com:8080/feed#top", "https://example.com:8080/feed"},
		{"nas:8080/feed", "https://nas:8080/feed"},
		{"192.0.2.1/feed", "https://192.0.2.1/feed"},
		{"[2001:db8::1]/feed", "https://[2001:db8::1]/feed"},
		{"b\u00fccher.example/feed", "https://xn--bcher-kva.example/feed"},
		{"https:/example.com/feed", "https://example.com/feed"},
		{"HTTP:/example.com/feed", "http://example.com/feed"},
		{"feed://example.com/feed", "http://example.com/feed"},
		{"feed:example.com/feed", "http://example.com/feed"},
		{"FEED:https://example.com/feed", "https://example.com/feed"},
		{"feed:https:/example.com/feed", "https://example.com/feed"},
		{"feed://https://example.com/feed", "https://example.com/feed"},
		{"pcast://example.com/show", "http://example.com/show"},
		{"pcast:https://example.com/show", "https://example.com/show"},
		{"itpc://example.com/show", "http://example.com/show"},
		{"podcast://example.com:8080/show", "http://example.com:8080/show"},
		{"//pcast://example.com/show", "http://example.com/show"},

		{"", ""},
		{"example", ""},
		{"example/feed", ""},
		{"/feed", ""},
		{"1.2/feed", ""},
		{"mailto:me@example.com", ""},
		{"me@example.com", ""},
		{"javascript:alert(1)", ""},
		{"ftp://example.com/", ""},
		{"feed:", ""},
		{"C:\\feeds.opml", ""},
	} {
		u, err := ParseWritten(tt.written)
		if u.String() != tt.want || (err == nil) != (tt.want != "") {
			t.Errorf("%q: got %q, %v, want %q", tt.written, u, err, tt.want)
		}
	}
}

// Spellings of one URL are one feed, and what a site may tell apart stays two.
func TestSpellings(t *testing.T) {
	for _, tt := range []struct {
		one  []string // of one feed
		sent string   // its request line's target
	}{
		{[]string{
			"https://b\u00fccher.example/f", "https://B\u00dcCHER.example./f", "https://bu\u0308cher.example:443/f", "https://xn--bcher-kva.example/f",
			"https://XN--BCHER-KVA.EXAMPLE/f", "https://b%C3%BCcher.example/f", "https://b\u00fccher\u3002example/f", "feed:https://b\u00fccher.example/f",
		}, "/f"},
		{[]string{"https://a.example/\u65b0\u805e", "https://a.example/%E6%96%B0%E8%81%9E"}, "/%E6%96%B0%E8%81%9E"},
		{[]string{"https://a.example/caf\xe9", "https://a.example/caf%E9"}, "/caf%E9"},
		{[]string{"https://a.example/@@rss"}, "/@@rss"},
		{[]string{"https://a.example/a b.xml", "https://a.example/a%20b.xml"}, "/a%20b.xml"},
		{[]string{"https://a.example/a+b"}, "/a+b"},
		{[]string{"https://a.example/f?x=a|b[0]&y={z}"}, "/f?x=a|b[0]&y={z}"},
		{[]string{"https://a.example/f;v=1?x;y"}, "/f;v=1?x;y"},
		{[]string{"https://a.example/a//b"}, "/a//b"},
		{[]string{"https://a.example/a%2Fb"}, "/a%2Fb"},
		{[]string{"https://a.example/a%2fb"}, "/a%2fb"},
		{[]string{"https://a.example/./a"}, "/./a"},
		{[]string{"https://a.example/f/"}, "/f/"},
		{[]string{"https://a.example/f"}, "/f"},
		{[]string{"https://a.example/f?"}, "/f?"},
		{[]string{"https://a.example/f?b=1&a=2"}, "/f?b=1&a=2"},
		{[]string{"https://a.example/f?a=2&b=1"}, "/f?a=2&b=1"},
		{[]string{"https://a.example/?u=https://b.example/f?x=1"}, "/?u=https://b.example/f?x=1"},
		{[]string{"https://a.example/https://b.example/f"}, "/https://b.example/f"},
		{[]string{"https://a.example/100%"}, "/100%"},
		{[]string{"https://a.example/f!$&'()*,:="}, "/f!$&'()*,:="},
	} {
		for _, spelling := range tt.one {
			u, err := Parse(spelling)
			if err != nil || u != MustParse(tt.one[0]) || u.RequestURL().RequestURI() != tt.sent {
				t.Errorf("%q: %q, %v, sends %q, want %q", spelling, u, err, u.RequestURL().RequestURI(), tt.sent)
			}
		}
	}
}
