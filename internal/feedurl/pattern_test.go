// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package feedurl

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

func TestHostTable(t *testing.T) {
	var table HostTable[string]
	for _, p := range []string{"example.com", "*.example.com", "*.b.example.com", "B\u00fccher.example.", "192.0.2.1", "[2001:DB8::1]", "*.home.arpa", "localhost"} {
		if err := table.Add(p, p); err != nil {
			t.Fatal(err)
		}
	}
	if err := table.Add("EXAMPLE.com.", ""); !errors.Is(err, ErrDuplicate) {
		t.Errorf("a pattern in a second spelling: %v", err)
	}
	hosts := []struct{ url, want string }{
		{"https://example.com/", "example.com"},
		{"https://EXAMPLE.COM./", "example.com"},
		{"https://www.example.com/", "*.example.com"},
		{"https://a.b.example.com/", "*.b.example.com"},
		{"https://notexample.com/", ""},
		{"https://example.com.evil.test/", ""},
		{"https://b\u00fccher.example/", "B\u00fccher.example."},
		{"https://192.0.2.1:80/", "192.0.2.1"},
		{"https://[2001:db8:0::1]/", "[2001:DB8::1]"},
		{"https://home.arpa/", ""},
		{"https://nas.home.arpa/", "*.home.arpa"},
		{"https://localhost/", "localhost"},
	}
	check := func(t *testing.T, otherwise string) {
		for _, h := range hosts {
			u, err := Parse(h.url)
			if err != nil {
				t.Fatal(err)
			}
			want := h.want
			if want == "" {
				want = otherwise
			}
			if got, found := table.Find(u.Name()); got != want || found != (want != "") {
				t.Errorf("%s: found %q, want %q", h.url, got, want)
			}
		}
	}
	check(t, "")
	if err := table.Add("*", "all"); err != nil {
		t.Fatal(err)
	}
	check(t, "all")
	for pattern, want := range map[string]string{
		"a.b.example.com": "all *.example.com *.b.example.com",
		"*.b.example.com": "all *.example.com *.b.example.com",
		"b.example.com":   "all *.example.com",
		"example.com":     "all example.com",
		"com":             "all",
		"*":               "all",
		"2001:db8::1":     "all [2001:DB8::1]",
	} {
		if got := table.Covering(pattern); !slices.Equal(got, strings.Fields(want)) {
			t.Errorf("%s is covered by %q, want %s", pattern, got, want)
		}
	}
}

func TestParsePatternRefuses(t *testing.T) {
	for _, p := range []string{
		"", "*.", "**", "*.*", "*example.com", "a.*.com", "https://example.com", "example.com/feed", "example.com:80", "*.example.com:80",
		"exa mple.com", "-a.com", "*.*.com", "a..b", "*.192.0.2.1", "*.[2001:db8::1]", "*.2001:db8::1", "127.1", "fe80::1%eth0",
	} {
		if got, err := ParsePattern(p); err == nil || errors.Is(err, ErrInvalid) {
			t.Errorf("%q was taken as %q, %v", p, got, err)
		}
	}
	for p, want := range map[string]string{"2001:DB8::1": "2001:db8::1", "[::ffff:192.0.2.1]": "192.0.2.1", "*.Example.COM.": "*.example.com"} {
		if got, err := ParsePattern(p); got != want {
			t.Errorf("%q became %q, %v, want %q", p, got, err, want)
		}
	}
}
