// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package readers

import (
	"net/http"
	"net/netip"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"
)

func header(lines ...string) http.Header {
	h := http.Header{}
	for _, line := range lines {
		name, value, _ := strings.Cut(line, ": ")
		h.Add(name, value)
	}
	return h
}

func TestFromHTTP(t *testing.T) {
	at := time.Unix(1e9, 0)
	r := FromHTTP(&http.Request{Method: "GET", Host: "example.org", URL: &url.URL{Path: "/feed"}, Header: header(
		"User-Agent: X/1", "If-None-Match: \"a\"", "If-Modified-Since: then", "Referer: https://example.org/", "Accept-Encoding: gzip",
	)}, "https://example.org/feed", netip.MustParseAddr("192.0.2.1"), at)
	want := Request{
		Time: at, Feed: "https://example.org/feed", UserAgent: "X/1", Client: netip.MustParseAddr("192.0.2.1"), Method: "GET",
		IfNoneMatch: "\"a\"", IfModifiedSince: "then", Person: true, Compression: true,
	}
	if !reflect.DeepEqual(r, want) {
		t.Errorf("got %+v, want %+v", r, want)
	}
}

func TestPerson(t *testing.T) {
	for _, tc := range []struct {
		name string
		h    http.Header
		want bool
	}{
		{"nothing", header(), false},
		{"anything", header("Accept: */*"), false},
		{"a browser's navigation", header("Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"), true},
		{"fetch metadata of a navigation", header("Sec-Fetch-Mode: navigate"), true},
		{"fetch metadata of a program in a browser", header("Sec-Fetch-Mode: cors", "Accept: */*"), false},
		{"feeds only", header("Accept: application/atom+xml, application/rss+xml"), false},
		{"feeds, then pages", header("Accept: application/atom+xml, application/rss+xml, text/html;q=0.7"), false},
		{"feeds in the first line", header("Accept: application/feed+json", "Accept: text/html"), false},
		{"a link on another site", header("Referer: https://www.example.com/"), true},
		{"a link on the same site", header("Referer: https://blog.example/"), true},
		{"the feed itself", header("Referer: https://blog.example/feed/"), false},
		{"the feed itself, written otherwise", header("Referer: http://Blog.Example:80/feed?x=1"), false},
		{"no URL", header("Referer: example"), false},
	} {
		r := FromHTTP(&http.Request{Host: "blog.example:8080", URL: &url.URL{Path: "/feed"}, Header: tc.h}, "", netip.Addr{}, time.Time{})
		if r.Person != tc.want {
			t.Errorf("%s: %v", tc.name, r.Person)
		}
	}
}
