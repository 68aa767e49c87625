// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package httpcache

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"
)

// FuzzVary checks that a request always matches what its own answer selected, that
// values which differ in more than form do not match, and that "*" never does.
func FuzzVary(f *testing.F) {
	f.Add("Foo, Bar", "Foo", "1, 2", "1,2")
	f.Add("foo,,FOO", "Foo", "", "x")
	f.Add("Foo, *", "Foo", "1", "1")
	f.Add("Accept-Encoding", "Accept-Encoding", "gzip, br;q=0", "br;q=0 ,GZIP")
	f.Add("Foo", "Foo", "\"a\\", "\"a, b\"")
	f.Fuzz(func(t *testing.T, vary, name, one, other string) {
		r := httptest.NewRequest(http.MethodGet, home, nil)
		r.Header.Set(name, one)
		s, ok := selectionOf(http.Header{"Vary": {vary}}, r)
		if slices.Contains(strings.Split(strings.ReplaceAll(vary, " ", ""), ","), "*") && ok {
			t.Fatal("a star can be matched")
		}
		if !ok {
			return
		}
		if !s.matches(r) {
			t.Fatalf("%v does not match its own request", s)
		}
		second := r.Clone(r.Context())
		second.Header.Set(name, other)
		if s.matches(second) != (s.of(r) == s.of(second)) {
			t.Fatal("matching and the key that requests are collapsed under disagree")
		}
		letters := func(text string) string {
			all := strings.Split(strings.ToLower(strings.Map(func(c rune) rune {
				if c == ' ' || c == '\t' || c == ',' {
					return -1
				}
				return c
			}, text)), "")
			slices.Sort(all)
			return strings.Join(all, "")
		}
		named := slices.ContainsFunc(s, func(x selector) bool { return x.name == http.CanonicalHeaderKey(name) })
		if named && s.matches(second) && letters(one) != letters(other) {
			t.Fatalf("%q matches %q", one, other)
		}
	})
}

// FuzzRules checks what must hold for any Cache-Control, targeted or not.
func FuzzRules(f *testing.F) {
	f.Add("max-age=60, no-store", "")
	f.Add("private=\"set-cookie, x\", s-maxage=10", "max-age=10")
	f.Add("no-cache=\"", "no-store=?0")
	f.Add("MAX-AGE=99999999999999999999", "max-age=1;a=b, private=\"x\"")
	now := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, control, targeted string) {
		header := http.Header{"Cache-Control": {control}, "Etag": {"\"e\""}, "X": {"1"}}
		if targeted != "" {
			header["Cdn-Cache-Control"] = []string{targeted}
		}
		rules := rulesOf(200, header, now)
		if rules.lifetime < 0 || rules.lifetime > (1<<31)*time.Second || rules.whileRevalidate < 0 || rules.ifError < 0 {
			t.Fatalf("%+v", rules)
		}
		r := httptest.NewRequest(http.MethodGet, home, nil)
		e := newEntry(r, 200, header, now, now)
		if e != nil && (rules.private || rules.noStore && !rules.mustUnderstand) {
			t.Fatal("stored against the rules")
		}
		if e != nil && rules.noCache && e.reusable(now) {
			t.Fatal("no-cache, and reused")
		}
		if e != nil && slices.Contains(rules.omitted, "X") && e.header.Get("X") != "" {
			t.Fatal("a field was stored that was not to be")
		}
		if _, ok := controlOf(header); ok && parseTargeted([]string{targeted}) == nil {
			t.Fatal("an invalid targeted field counts")
		}
	})
}
