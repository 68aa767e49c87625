// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package poller

import (
	"strings"
	"testing"
)

func TestKeyText(t *testing.T) {
	for _, tt := range []struct {
		key  ShieldKey
		text string
		url  string
	}{
		{ShieldKey{Shield: "00ff", Scheme: "https", Host: "blog.test", Path: "/feed/"}, "shield:00ff https://blog.test/feed/", "https://blog.test/feed/"},
		{ShieldKey{Shield: "b", Scheme: "http", Host: "blog.test:8080", Path: "/a%20b", Query: "x=%20&y"}, "shield:b http://blog.test:8080/a%20b?x=%20&y", "http://blog.test:8080/a%20b?x=%20&y"},
		{ShieldKey{Shield: "b", Scheme: "http", Host: "h", Path: "/feed", Query: "q", Sent: "/p/feed?q"}, "shield:b http://h/feed?q sent:/p/feed?q", "http://h/p/feed?q"},
		{ShieldKey{Shield: "b", Scheme: "http", Host: "h:81", Forwarded: "blog.test", Path: "/feed", Sent: "/p/feed"}, "shield:b http://h:81/feed forwarded:blog.test sent:/p/feed", "http://blog.test/p/feed"},
	} {
		if got := tt.key.String(); got != tt.text {
			t.Errorf("got %q, want %q", got, tt.text)
		}
		if got, ok := ParseShieldKey(tt.text); !ok || got != tt.key {
			t.Errorf("%q was read as %+v, %v", tt.text, got, ok)
		}
		if got := ReadersURL(tt.text); got != tt.url {
			t.Errorf("the URL of %q is %q, want %q", tt.text, got, tt.url)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for _, text := range []string{
		"", "shield:", "shield:b", "shield:b ", "shield:b http://h", "shield:b h/feed", "https://example.com/",
		"shield:b http://h/ other:x", "shield:b http://h/ sent:/y sent:/z", "shield:b c http://h/", "shield:b http://h/? ", "shield: http://h/",
		"shield:b http://h/ sent:/y forwarded:b", "shield:b http://h/ forwarded:", "shield:b http://h/ forwarded:b forwarded:c",
	} {
		if k, ok := ParseShieldKey(text); ok {
			t.Errorf("%q was read as %+v", text, k)
		}
	}
	if got := ReadersURL("https://example.com/feed"); got != "https://example.com/feed" {
		t.Errorf("a URL became %q", got)
	}
}

// Two keys have one text only if they are the same.
func FuzzKey(f *testing.F) {
	f.Add("00ff", "blog.test", "b.test", "/feed", "a=b", "/x")
	f.Add("a", "h", "", "/ sent:1", "", "")
	f.Fuzz(func(t *testing.T, shield, host, forwarded, path, query, sent string) {
		k := ShieldKey{Shield: shield, Scheme: "http", Host: host, Forwarded: forwarded, Path: path, Query: query, Sent: sent}
		got, ok := ParseShieldKey(k.String())
		if clean := shield != "" && strings.HasPrefix(path, "/") && !strings.Contains(path, "?") && !strings.ContainsAny(host, "/:") &&
			!strings.Contains(shield+host+forwarded+path+query+sent, " "); clean && (!ok || got != k) {
			t.Errorf("%+v was read as %+v, %v", k, got, ok)
		}
	})
}
