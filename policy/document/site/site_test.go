// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package site

import (
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/feedpollard/pollard/internal/feedurl"
)

func TestRead(t *testing.T) {
	const atom = "application/atom+xml"
	tests := []struct {
		name, page string
		title      string
		want       []Feed
	}{
		{
			"a blog", `<!doctype html><title> My
			blog &amp; more </title><link rel="alternate" type="application/atom+xml" title="Posts" href="/atom.xml"><link rel=alternate type=application/rss+xml href="rss?a=1&amp;b=2">`,
			"My blog & more", []Feed{{"https://blog.example/atom.xml", "Posts", atom}, {"https://blog.example/sub/rss?a=1&b=2", "", "application/rss+xml"}},
		},
		{"base", `<base href="https://cdn.example/x/"><base href="https://no.example/"><link rel=alternate type=application/atom+xml href=f>`, "", []Feed{{"https://cdn.example/x/f", "", atom}}},
		{"many words", `<link rel="ALTERNATE home" type="Application/Atom+XML; charset=utf-8" href=/f>`, "", []Feed{{"https://blog.example/f", "", atom}}},
		{"JSON Feed", `<link rel=alternate type=application/feed+json href=/f.json>`, "", []Feed{{"https://blog.example/f.json", "", "application/feed+json"}}},
		{"twice", `<link rel=alternate type=application/atom+xml href=/f title=a><link rel=alternate type=application/atom+xml href=/f title=b>`, "", []Feed{{"https://blog.example/f", "a", atom}}},
		{"in the body", `<body><p>x<link rel=alternate type=application/atom+xml href=/f>`, "", []Feed{{"https://blog.example/f", "", atom}}},
		{"latin-1", "<meta charset=iso-8859-1><title>B\xfccher</title>", "Bücher", nil},
		{"programming interface", `<link rel=alternate type=application/json href=/wp-json/>`, "", nil},
		{"another language", `<link rel=alternate hreflang=de href=/de/>`, "", nil},
		{"stylesheet", `<link rel=stylesheet type=application/atom+xml href=/f>`, "", nil},
		{"in a comment", `<!-- <link rel=alternate type=application/atom+xml href=/f> -->`, "", nil},
		{"javascript", `<link rel=alternate type=application/atom+xml href="javascript:alert(1)">`, "", nil},
		{"empty", ``, "", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := Read([]byte(tt.page), "text/html", "https://blog.example/sub/")
			if got.Title != tt.title || !reflect.DeepEqual(got.Feeds, tt.want) {
				t.Errorf("got %q, %+v, want %q, %+v", got.Title, got.Feeds, tt.title, tt.want)
			}
		})
	}
	many := Read([]byte(strings.Repeat(`<link rel=alternate type=application/atom+xml href="/f"><link rel=alternate type=application/atom+xml href="`+strings.Repeat("/x", 20)+`">`, 10000)), "text/html", "https://blog.example/")
	if len(many.Feeds) != 2 {
		t.Errorf("found %d feeds", len(many.Feeds))
	}
}

// Each link is resolved against the base: one that is as long as no address is does not
// count, or a page could cost many times its size.
func TestReadWithALongBase(t *testing.T) {
	page := []byte(`<base href="/` + strings.Repeat("a/", 50_000) + `">` + strings.Repeat(`<link rel=alternate type=application/atom+xml href=f>`, 1000))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got := Read(page, "text/html", "https://site.example/")
	runtime.ReadMemStats(&after)
	if want := []Feed{{"https://site.example/f", "", "application/atom+xml"}}; !reflect.DeepEqual(got.Feeds, want) {
		t.Errorf("got %+v, want %+v", got.Feeds, want)
	}
	if allocated := after.TotalAlloc - before.TotalAlloc; allocated > uint64(64*len(page)) {
		t.Errorf("%d bytes allocated for a page of %d", allocated, len(page))
	}
}

func FuzzRead(f *testing.F) {
	f.Add("<title>x</title><base href=//y.example><link rel=alternate type=application/rss+xml href='/f?a&b'>", "text/html; charset=utf-8")
	f.Add("\xfe\xff<\x00l", "text/html")
	f.Fuzz(func(t *testing.T, page, contentType string) {
		site := Read([]byte(page), contentType, "https://blog.example/")
		for _, found := range site.Feeds {
			if u, err := feedurl.Parse(found.URL); err != nil || u.String() != found.URL {
				t.Errorf("found %q: %v", found.URL, err)
			}
		}
		if len(site.Feeds) > maxFeeds || strings.ContainsAny(site.Title, "\r\n") {
			t.Errorf("%d feeds, title %q", len(site.Feeds), site.Title)
		}
	})
}
