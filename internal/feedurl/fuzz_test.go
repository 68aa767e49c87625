// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package feedurl

import (
	"errors"
	"strings"
	"testing"
)

// FuzzPattern reads a pattern of hosts. Its normal form is read as itself, and covers
// the hosts that it should.
func FuzzPattern(f *testing.F) {
	for _, s := range []string{"*", "*.Example.com.", "example.com", "[::1]", "1.2.3.4", "*.1.2.3.4", "b\u00fccher.example", "*.*.a", "a%2e", "a:80"} {
		f.Add(s, "www.example.com")
	}
	f.Fuzz(func(t *testing.T, pattern, host string) {
		normal, err := ParsePattern(pattern)
		if err != nil {
			if strings.ContainsAny(err.Error(), "\n\r") {
				t.Errorf("not one line: %q", err)
			}
			return
		}
		if again, err := ParsePattern(normal); err != nil || again != normal {
			t.Fatalf("%q became %q, and that %q, %v", pattern, normal, again, err)
		}
		var table HostTable[int]
		if err := errors.Join(table.Add(pattern, 1), table.Add(normal, 2)); !errors.Is(err, ErrDuplicate) {
			t.Errorf("%q and %q in one table: %v", pattern, normal, err)
		}
		name, err := ParseHost(host)
		if err != nil {
			return
		}
		_, found := table.Find(name)
		want := normal == "*" || normal == name
		if parent, wild := strings.CutPrefix(normal, "*"); wild && normal != "*" {
			want = strings.HasSuffix(name, parent)
		}
		if found != want {
			t.Errorf("%q covers %q: %v, want %v", normal, name, found, want)
		}
	})
}

// FuzzGateway makes addresses of feeds at a gateway. Each leads back to its feed, and to
// no other.
func FuzzGateway(f *testing.F) {
	f.Add("https://feeds.example/", "", "https://a.example/feed?x=%20&y")
	f.Add("http://[::1]:8080/below/", "s/3 cret", "http://u:p@a.example/../b%2Fc")
	f.Add("HTTP://Feeds.Example", "~", "feed://a.example/./#x")
	f.Fuzz(func(t *testing.T, base, secret, feed string) {
		g, err := ParseGateway(base, secret)
		if err != nil {
			return
		}
		address, err := g.Address(feed)
		if err != nil {
			return
		}
		if again, err := g.Address(address); err != nil || again != address {
			t.Fatalf("%q became %q, and that %q, %v", feed, address, again, err)
		}
		if address == feed {
			return // it was one of the gateway's
		}
		back, ok := g.Feed(address)
		if !ok {
			t.Fatalf("%q at %q is %q, which is no feed", feed, base, address)
		}
		want, errWant := Parse(feed)
		got, errGot := Parse(back)
		if errWant != nil || errGot != nil || want != got {
			t.Errorf("%q became %q, and leads to %q", feed, address, back)
		}
	})
}
