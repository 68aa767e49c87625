// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/feedpollard/pollard/cache"
)

func TestCanonical(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"https://example.com/feed.xml", "https://example.com/feed.xml"},
		{"HTTPS://Example.COM/Feed.XML", "https://example.com/Feed.XML"},
		{"https://example.com", "https://example.com/"},
		{"https://example.com?x=1", "https://example.com/?x=1"},
		{"https://example.com:443/a", "https://example.com/a"},
		{"http://example.com:80/a", "http://example.com/a"},
		{"http://example.com:443/a", "http://example.com:443/a"},
		{"https://example.com/a#part", "https://example.com/a"},
		{"https://example.com/%7euser/a%2Fb?q=%20&&b=&a", "https://example.com/%7euser/a%2Fb?q=%20&&b=&a"},
		{"https://example.com/feed?", "https://example.com/feed?"},
		{"https://user:pass@example.com/a", "https://user:pass@example.com/a"},
		{"https://[2001:DB8::1]:443/a", "https://[2001:db8::1]/a"},
		{"https://example.com//double//slash", "https://example.com//double//slash"},
	} {
		got, err := cache.Canonical(c.in)
		if err != nil || got != c.want {
			t.Errorf("%s: got %s, %v, want %s", c.in, got, err, c.want)
		}
		if again, _ := cache.Canonical(got); again != got {
			t.Errorf("%s is not canonical: %s", got, again)
		}
	}
	for _, in := range []string{
		"", "feed.xml", "ftp://example.com/", "javascript:alert(1)", "https://", "https:///path", "https://exa mple.com/",
		"https://example.com/a b", "https://example.com/\n", "file:///etc/passwd", "http://[::1", "https://x/" + strings.Repeat("a", 5000),
		"https://:80/", "feed://example.com/",
	} {
		if got, err := cache.Canonical(in); !errors.Is(err, cache.ErrNotFeedURL) {
			t.Errorf("%.40q: got %s, %v, want ErrNotFeedURL", in, got, err)
		}
	}
}

func FuzzCanonical(f *testing.F) {
	f.Add("https://example.com/?a#b")
	f.Add("HTTP://u:p@[::1%25eth0]:80//x")
	f.Fuzz(func(t *testing.T, raw string) {
		got, err := cache.Canonical(raw)
		if err != nil {
			return
		}
		if again, err := cache.Canonical(got); err != nil || again != got {
			t.Errorf("%q: %q becomes %q, %v", raw, got, again, err)
		}
	})
}
