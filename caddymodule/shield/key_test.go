// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package shield

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/cache/store/sqlite"
	"github.com/feedpollard/pollard/caddymodule/door"
	"github.com/feedpollard/pollard/caddymodule/internal/stage"
)

// No query makes a request look like the rewrite of another one.
func TestShieldKeyIsUnambiguous(t *testing.T) {
	s := &Shield{identity: "b", entries: new(entries)}
	seen := make(map[string]string)
	for _, targets := range [][2]string{ // original, rewritten
		{"/feed", "/feed"}, {"/feed", "/index.php"}, {"/index.php", "/index.php"}, {"/feed?a /index.php", "/feed?a /index.php"},
		{"/feed?a", "/index.php?a"}, {"/feed?a%20/index.php", "/x?b"}, {"/feed%20/index.php", "/feed%20/index.php"},
		{"/feed?sent:/x", "/feed?sent:/x"}, {"/feed?x sent:/x", "/feed?x sent:/x"}, {"/feed%20sent:/x", "/feed%20sent:/x"},
		{"/feed%09X=1", "/feed%09X=1"}, {"//feed", "//feed"}, {"/feed#/x", "/feed#/x"}, {"/feed?#/x", "/feed?#/x"},
	} {
		r := stage.Request("GET", "/")
		// HTTP/2 allows a space in the query.
		r.URL = asSent(t, targets[1])
		r.Host = "blog.test"
		original := http.Request{URL: asSent(t, targets[0])}
		r = r.WithContext(context.WithValue(r.Context(), caddyhttp.OriginalRequestCtxKey, original))
		in := door.Read(r)
		k, ok := s.keyOf(&in)
		if !ok {
			t.Errorf("%q has no key", targets)
		}
		key := k.String()
		if other, ok := seen[key]; ok {
			t.Errorf("%q and %s have the key %q", targets, other, key)
		}
		seen[key] = fmt.Sprintf("%q", targets)
		if strings.Count(key, " ") > 2 || strings.Contains(key, "\t") {
			t.Errorf("%q has the key %q", targets, key)
		}
	}
}

// Requests with very long URLs have no key, so nothing of them is stored.
func TestLongURLHasNoKey(t *testing.T) {
	in := door.Read(stage.Request("GET", blog+"/feed?"+strings.Repeat("x", maxKey)))
	if k, ok := (&Shield{entries: new(entries)}).keyOf(&in); ok {
		t.Errorf("a key of %d bytes", len(k.String()))
	}
}

// asSent returns the URL of a request line.
func asSent(t *testing.T, target string) *url.URL {
	t.Helper()
	u, err := url.ParseRequestURI(target)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func TestQueryKept(t *testing.T) {
	for _, tt := range []struct {
		query *Query
		raw   string
		want  string
	}{
		{nil, "", ""},
		{nil, "b=1&a=2&&x", "b=1&a=2&&x"},
		{nil, "a b", "a%20b"},
		{&Query{Ignore: true}, "a=1", ""},
		{&Query{Keep: []string{"a"}}, "b=1&a=2&a=3&A=4", "a=2&a=3"},
		{&Query{Keep: []string{"a b"}}, "a+b=1&a%20b=2&ab=3", "a+b=1&a%20b=2"},
		{&Query{Keep: []string{"a"}}, "%zz=1&a", "a"},
		{&Query{Keep: []string{"a"}}, "b", ""},
	} {
		if got := tt.query.kept(tt.raw); got != tt.want {
			t.Errorf("%+v of %q: got %q, want %q", tt.query, tt.raw, got, tt.want)
		}
	}
}

// Feeds count for the shield, from their first poll on, and for none of their readers.
func TestShieldedFeedsHaveAskers(t *testing.T) {
	const out, home = "203.0.113.9", stage.Home
	for _, tt := range []struct {
		name, lines, path, reader string
		want                      store.Kind
	}{
		{"no query", "", "/feed", out, store.KindShield},
		{"a query", "", "/feed?x=1", out, store.KindShield},
		{"a query from inside", "", "/feed?x=1", home, store.KindShield},
		{"a query that is ignored", "query ignore", "/feed?x=1", out, store.KindShield},
		{"a query that is named", "query keep x", "/feed?x=1&y=2", out, store.KindShield},
		{"a query that is rewritten away", "", "/old/feed?x=1", out, store.KindShield},
		{"a query that a rewrite adds", "", "/new/feed", out, store.KindShield},
	} {
		t.Run(tt.name, func(t *testing.T) {
			sites := blog + " {\nbind void/site\nrewrite /old/feed /feed?\nrewrite /new/feed /feed?a=1\n" + shieldOf("x", tt.lines) + "}\n"
			answer := stage.Plain(http.StatusServiceUnavailable, "later") // the first poll alone says for whom it was
			stage.Run(t, sites, answer, func(s *stage.Stage) {
				s.Send(from(tt.reader, blog+tt.path))
				s.Stop()
				db, err := sqlite.Open(s.Dir, sqlite.Options{})
				if err != nil {
					t.Fatal(err)
				}
				defer db.Close()
				records, err := db.Records(s.T.Context(), store.ID{}, 9, false)
				if err != nil || len(records) != 1 || len(records[0].Askers) != 1 {
					t.Fatalf("%+v, %v", records, err)
				}
				if got := records[0].Askers[0].Owner.Kind(); got != tt.want {
					t.Errorf("kind %d, want %d", got, tt.want)
				}
			})
		})
	}
}
