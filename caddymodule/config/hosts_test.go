// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package config

import "testing"

func TestHostTable(t *testing.T) {
	var table HostTable[string]
	for _, p := range []string{"example.com", "*.example.com", "*.b.example.com", "Bücher.example.", "192.0.2.1", "[2001:db8::1]", "*.home.arpa"} {
		if added, err := table.Add(p, p); err != nil || !added {
			t.Fatalf("adding %s: %v, %v", p, added, err)
		}
	}
	if added, _ := table.Add("EXAMPLE.com.", ""); added {
		t.Error("a pattern was added twice in two spellings")
	}
	tests := []struct{ url, want string }{
		{"https://example.com/", "example.com"},
		{"https://EXAMPLE.COM./", "example.com"},
		{"https://example.com:8443/", "example.com"},
		{"https://www.example.com/", "*.example.com"},
		{"https://b.example.com/", "*.example.com"},
		{"https://a.b.example.com/", "*.b.example.com"},
		{"https://x.a.b.example.com/", "*.b.example.com"},
		{"https://notexample.com/", ""},
		{"https://example.com.evil.test/", ""},
		{"https://bücher.example/", "Bücher.example."},
		{"https://xn--bcher-kva.example/", "Bücher.example."},
		{"https://BÜCHER.example/", "Bücher.example."},
		{"https://192.0.2.1:80/", "192.0.2.1"},
		{"https://[2001:db8:0::1]/", "[2001:db8::1]"},
		{"https://home.arpa/", ""},
		{"https://nas.home.arpa/", "*.home.arpa"},
		{"https://localhost/", ""},
	}
	for _, tt := range tests {
		t.Run(tt.url, func(t *testing.T) {
			if got, _ := table.Find(HostOf(tt.url)); got != tt.want {
				t.Errorf("found %q, want %q", got, tt.want)
			}
		})
	}
}

func TestParseHostPatternRefuses(t *testing.T) {
	for _, p := range []string{"", "*", "*.", "*example.com", "a.*.com", "https://example.com", "example.com/feed", "example.com:80", "exa mple.com", "-a.com", "*.*.com", "a..b"} {
		if got, err := ParseHostPattern(p); err == nil {
			t.Errorf("%q was taken as %q", p, got)
		}
	}
}
