// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package poller

import "testing"

func TestKeyText(t *testing.T) {
	for _, tt := range []struct {
		key  ShieldKey
		text string
		url  string
	}{
		{ShieldKey{Shield: "blog.test /feed/*", Scheme: "https", Host: "blog.test", Path: "/feed/"}, "shield:blog.test+%2Ffeed%2F%2A https://blog.test/feed/", "https://blog.test/feed/"},
		{ShieldKey{Shield: "b", Scheme: "http", Host: "blog.test:8080", Path: "/a%20b", Query: "x=%20&y"}, "shield:b http://blog.test:8080/a%20b?x=%20&y", "http://blog.test:8080/a%20b?x=%20&y"},
		{ShieldKey{Shield: "b", Scheme: "http", Host: "h", Path: "/p/feed", Target: "/feed", Query: "q"}, "shield:b http://h/p/feed?q target:/feed", "http://h/p/feed?q"},
		{ShieldKey{Shield: "variant:x target:y", Scheme: "http", Host: "h", Path: "/", Variant: "0123"}, "shield:variant%3Ax+target%3Ay http://h/ variant:0123", "http://h/"},
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
		"shield:b http://h/ other:x", "shield:b http://h/ variant:x target:/y", "shield:b c http://h/", "shield:%zz http://h/", "shield:b http://h/? ",
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
	f.Add("blog.test /feed/*", "blog.test", "/feed", "/x", "a=b", "00ff")
	f.Add(" target:/x", "h", "/ variant:1", "", "", "")
	f.Fuzz(func(t *testing.T, shield, host, path, target, query, variant string) {
		k := ShieldKey{Shield: shield, Scheme: "http", Host: host, Path: path, Target: target, Query: query, Variant: variant}
		got, ok := ParseShieldKey(k.String())
		if ok && got != k && got.String() == k.String() && clean(k) {
			t.Errorf("%+v and %+v have one text", k, got)
		}
		if !ok && clean(k) {
			t.Errorf("%+v cannot be read", k)
		}
	})
}

// clean reports whether a key is as requests give it: see the doc comment of its text.
func clean(k ShieldKey) bool {
	for _, part := range []string{k.Host, k.Path, k.Target, k.Query, k.Variant} {
		for i := range len(part) {
			if part[i] == ' ' {
				return false
			}
		}
	}
	for i := range len(k.Host) {
		if k.Host[i] == '/' || k.Host[i] == ':' {
			return false
		}
	}
	if k.Path == "" || k.Path[0] != '/' {
		return false
	}
	for i := range len(k.Path) {
		if k.Path[i] == '?' {
			return false
		}
	}
	return true
}
