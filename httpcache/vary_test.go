// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package httpcache

import (
	"fmt"
	"net/http"
	"strconv"
	"testing"
)

func TestVary(t *testing.T) {
	lines := func(vary string) []string { return []string{"Cache-Control: max-age=60", "Vary: " + vary} }
	// same and differ send one request after the other.
	same := func(vary string, first, second []string) []step {
		return []step{
			{send: first, origin: says(200, "a", lines(vary)...), asked: true, body: "a"},
			{send: second, body: "a"},
		}
	}
	differ := func(vary string, first, second []string) []step {
		return []step{
			{send: first, origin: says(200, "a", lines(vary)...), asked: true, body: "a"},
			{send: second, origin: says(200, "b", lines(vary)...), asked: true, body: "b", has: []string{"Cache-Status: Pollard; fwd=vary-miss; fwd-status=200; ttl=60; stored"}},
			{send: first, body: "a"}, // both are kept
			{send: second, body: "b"},
		}
	}
	scenes(t, map[string][]step{
		// RFC 9111 section 4.1.
		"match":                     same("Foo", []string{"Foo: 1"}, []string{"Foo: 1"}),
		"no match":                  differ("Foo", []string{"Foo: 1"}, []string{"Foo: 2"}),
		"absent matches absent":     same("Foo", nil, nil),
		"absent, then there":        differ("Foo", nil, []string{"Foo: 1"}),
		"there, then absent":        differ("Foo", []string{"Foo: 1"}, nil),
		"empty is not absent":       differ("Foo", []string{"Foo:"}, nil),
		"two":                       same("Foo, Bar", []string{"Foo: 1", "Bar: 2"}, []string{"Foo: 1", "Bar: 2"}),
		"two, one of them other":    differ("Foo, Bar", []string{"Foo: 1", "Bar: 2"}, []string{"Foo: 1", "Bar: 3"}),
		"two, exchanged":            differ("Foo, Bar", []string{"Foo: 1", "Bar: 2"}, []string{"Foo: 2", "Bar: 1"}),
		"three, one absent":         same("Foo, Bar, Baz", []string{"Foo: 1", "Baz: 3"}, []string{"Foo: 1", "Baz: 3"}),
		"another field is nothing":  same("Foo", []string{"Foo: 1", "Bar: 1"}, []string{"Foo: 1", "Bar: 2"}),
		"of any case":               same("fOO", []string{"Foo: 1"}, []string{"Foo: 1"}),
		"values keep their case":    differ("Foo", []string{"Foo: a"}, []string{"Foo: A"}),
		"lines are joined":          same("Foo", []string{"Foo: 1, 2"}, []string{"Foo: 1", "Foo: 2"}),
		"space in lists":            same("Foo", []string{"Foo: 1,2"}, []string{"Foo: 1 ,  2"}),
		"space in quotes":           differ("Foo", []string{"Foo: \"1,2\""}, []string{"Foo: \"1, 2\""}),
		"codings in any order":      same("Accept-Encoding", []string{"Accept-Encoding: gzip, br"}, []string{"Accept-Encoding: BR,GZIP"}),
		"codings and weights":       differ("Accept-Encoding", []string{"Accept-Encoding: gzip, br"}, []string{"Accept-Encoding: gzip, br;q=0"}),
		"languages of any case":     same("Accept-Language", []string{"Accept-Language: en, de"}, []string{"Accept-Language: EN, De"}),
		"languages in their order":  differ("Accept-Language", []string{"Accept-Language: en, de"}, []string{"Accept-Language: de, en"}),
		"a reader's validators and": same("Foo", []string{"Foo: 1"}, []string{"Foo: 1", "If-None-Match: \"x\""}),
		"a stale one is validated for its own kind": {
			{send: []string{"Foo: 1"}, origin: says(200, "a", "Cache-Control: no-cache", "Vary: Foo", "ETag: \"a\""), asked: true, body: "a"},
			{send: []string{"Foo: 2"}, origin: says(200, "b", "Cache-Control: no-cache", "Vary: Foo", "ETag: \"b\""), asked: true, sees: []string{"-If-None-Match"}, body: "b"},
			{send: []string{"Foo: 1"}, origin: says(304, ""), asked: true, sees: []string{"If-None-Match: \"a\"", "Foo: 1"}, body: "a"},
			{send: []string{"Foo: 2"}, origin: says(304, ""), asked: true, sees: []string{"If-None-Match: \"b\"", "Foo: 2"}, body: "b"},
		},
		"a Vary of its own for each answer": {
			{send: []string{"Foo: 1"}, origin: says(200, "a", lines("Foo")...), asked: true, body: "a"},
			{send: []string{"Foo: 2", "Bar: 1"}, origin: says(200, "b", lines("Bar")...), asked: true, body: "b"},
			{send: []string{"Foo: 1"}, body: "a"},
			{send: []string{"Foo: 3", "Bar: 1"}, body: "b"},
		},
	})
	t.Run("Host", func(t *testing.T) {
		bubble(t, func(t *testing.T, b *bench) {
			b.origin(func(r *http.Request) (*http.Response, error) { return says(200, r.Host, lines("Host")...)(r) })
			for _, host := range []string{"example.com", "evil.test", "example.com"} {
				r := request("GET", "/")
				r.Host = host
				if got := text(b.serve(r)); got != host {
					t.Errorf("got %q, want %q", got, host)
				}
			}
			if n := len(b.requests()); n != 2 {
				t.Errorf("the origin was asked %d times, want 2: for all, and by the reader of another host", n)
			}
		})
	})
}

// TestVariantsAreBounded sends more kinds of requests than are kept.
func TestVariantsAreBounded(t *testing.T) {
	bubble(t, func(t *testing.T, b *bench) {
		b.origin(says(200, "a", "Cache-Control: max-age=60", "Vary: Foo"))
		for i := range 3 * maxVariants {
			b.serve(request("GET", "/", "Foo: "+strconv.Itoa(i)))
		}
		if n := len(b.cache.store.get("site " + home + "/").entries); n != maxVariants {
			t.Errorf("%d variants are stored, want %d", n, maxVariants)
		}
		b.requests()
		b.serve(request("GET", "/", fmt.Sprintf("Foo: %d", 3*maxVariants-1)))
		if n := len(b.requests()); n != 0 {
			t.Error("the newest variant was forgotten")
		}
	})
}
