// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/feedpollard/pollard/internal/feedurl"
)

func TestParsedRequests(t *testing.T) {
	const target = "/https://one.example/feed"
	feed, err := feedurl.Parse("https://one.example/feed")
	if err != nil {
		t.Fatal(err)
	}
	parse := func(raw string) *url.URL {
		u, err := url.ParseRequestURI(raw)
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	for _, tt := range []struct {
		name, added, asked, original string
		want                         bool
	}{
		{"the same", target, target, target, true},
		{"the same query", target + "?a=1", target + "?a=1", target + "?a=1", true},
		{"another query", target + "?a=1", target + "?a=2", target + "?a=2", false},
		{"no query", target + "?a=1", target, target, false},
		{"an empty query", target, target + "?", target + "?", false},
		{"an escaped slash", target + "/b", target + "%2Fb", target + "%2Fb", false},
		{"rewritten", target, target, "/prefix" + target, false},
		{"never added", "", target, target, false},
		{"too long", target + strings.Repeat("x", maxParsedURL), target + strings.Repeat("x", maxParsedURL), target + strings.Repeat("x", maxParsedURL), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			k := newParsedRequests()
			if tt.added != "" {
				k.add(parse(tt.added), parse(tt.added), urlRequest{}, feed)
			}
			if got := k.find(parse(tt.asked), parse(tt.original)); (got != nil) != tt.want {
				t.Errorf("got %v, want it found: %t", got, tt.want)
			}
		})
	}
}

func TestParsedRequestsAreBounded(t *testing.T) {
	k := newParsedRequests()
	for i := range 10 * maxParsed {
		u := &url.URL{Path: fmt.Sprintf("/https://one.example/%d", i)}
		k.add(u, u, urlRequest{}, feedurl.URL{})
	}
	if n := k.byPath.Len(); n != maxParsed {
		t.Errorf("%d requests are stored, want %d", n, maxParsed)
	}
}
