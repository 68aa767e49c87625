// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// echo answers with a feed that has some request fields in it.
func echo(vary string) answer {
	return func(w http.ResponseWriter, r *http.Request) error {
		var said strings.Builder
		for name := range strings.SplitSeq(vary, ",") {
			fmt.Fprintf(&said, "[%s]", strings.Join(r.Header[http.CanonicalHeaderKey(strings.TrimSpace(name))], ","))
		}
		return feed(feedNamed(said.String()), "Vary", vary)(w, r)
	}
}

// What a site tells readers apart by, the shield does too, with polls of their own.
func TestShieldVariants(t *testing.T) {
	onStage(t, shieldedSite(blog, ""), echo("Accept-Language, X-Plan,Accept-Encoding"), func(s *stage) {
		for _, tt := range []struct {
			header []string
			want   string
			polls  int
		}{
			{nil, "[][]", 1},
			{[]string{"Accept-Language", "de"}, "[de][]", 1},
			{[]string{"Accept-Language", "fr", "X-Plan", "a"}, "[fr][a]", 1},
			{[]string{"Accept-Language", "de"}, "[de][]", 0},
			{[]string{"Accept-Language", "de", "Accept-Encoding", "gzip;q=0", "Cookie", "a=b", "X-Other", "c"}, "[de][]", 0},
			// One field's value must not be taken for another field.
			{[]string{"Accept-Language", "fr\tX-Plan=a"}, "[fr\tX-Plan=a][]", 1},
			{[]string{"Accept-Language", "fr X-Plan=a"}, "[fr X-Plan=a][]", 1},
			{[]string{"X-Plan", "a"}, "[][a]", 1},
		} {
			w := s.get(blog+"/feed", tt.header...)
			wantBody(t, fmt.Sprint(tt.header), w, 200, "<title>"+tt.want[:strings.IndexByte(tt.want, ']')])
			for _, poll := range s.expect(tt.polls, fmt.Sprint(tt.header)) {
				if poll.Header["Cookie"] != nil || poll.Header["X-Other"] != nil || !strings.HasPrefix(poll.UserAgent(), "Pollard") {
					t.Errorf("%v: the poll had %v", tt.header, poll.Header)
				}
			}
			if got := w.Header().Get("Vary"); got != "Accept-Encoding, accept-language, x-plan" {
				t.Errorf("Vary: %s", got)
			}
		}
		time.Sleep(2 * time.Minute)
		for _, language := range []string{"", "de", "de"} {
			s.get(blog+"/feed", "Accept-Language", language)
		}
		s.expect(2, "two variants are due")
	})
}

// An inventive reader fills neither store nor memory, and its inventions are
// forgotten.
func TestShieldVariantsAreBounded(t *testing.T) {
	onStage(t, shieldedSite(blog, ""), echo("X-Any"), func(s *stage) {
		s.get(blog + "/feed")
		invent := func(n int) {
			for i := range n {
				wantBody(t, "an invention", s.get(blog+"/feed", "X-Any", fmt.Sprint(time.Now().Unix(), i)), 200, fmt.Sprint(i, "]"))
			}
		}
		known := func() int {
			synctest.Wait()
			_, c := running()
			return len(c.Keys(shieldPrefix))
		}
		invent(100)
		s.expect(1+100, "the plain feed and a hundred inventions")
		if got := known(); got != 1+maxVariants {
			t.Errorf("%d feeds are known", got)
		}
		time.Sleep(2 * time.Hour)
		wantBody(t, "an honest variant", s.get(blog+"/feed", "X-Any", "honest"), 200, "honest")
		s.calls()
		s.get(blog+"/feed", "X-Any", "honest")
		s.expect(0, "an honest variant, when the inventor has gone")
		time.Sleep(48 * time.Hour)
		if got := known(); got > 1 {
			t.Errorf("%d feeds are known two days later", got)
		}
		invent(1)
	})
}

// A variant whose answer is its reader's own leaves the others alone.
func TestShieldVariantOfOneReader(t *testing.T) {
	origin := func(w http.ResponseWriter, r *http.Request) error {
		if r.Header.Get("X-Plan") == "gold" {
			return feed(feedNamed("gold"), "Vary", "X-Plan", "Cache-Control", "private")(w, r)
		}
		return feed(feedNamed("for all"), "Vary", "X-Plan")(w, r)
	}
	onStage(t, shieldedSite(blog, ""), origin, func(s *stage) {
		for range 3 {
			wantBody(t, "everybody", s.get(blog+"/feed"), 200, "for all")
			wantBody(t, "gold", s.get(blog+"/feed", "X-Plan", "gold"), 200, "gold")
		}
		synctest.Wait()
		s.expect(1+1+3, "three private answers and a probe of them")
	})
}

func TestVariantsAdmit(t *testing.T) {
	var v variants
	now := time.Unix(0, 0)
	for i := range maxVariants {
		if !v.admit("a", fmt.Sprint(i), now) {
			t.Fatalf("variant %d was refused", i)
		}
	}
	if v.admit("a", "more", now.Add(variantRest-1)) {
		t.Error("a variant too many was admitted")
	}
	if !v.admit("a", "0", now.Add(variantRest-1)) {
		t.Error("a known variant was refused")
	}
	if !v.admit("a", "more", now.Add(variantRest)) || !v.admit("a", "0", now.Add(variantRest)) {
		t.Error("those that rest make no room")
	}
	for i := range maxVariedFeeds - 1 {
		if !v.admit(fmt.Sprint("feed", i), "x", now) {
			t.Fatalf("feed %d was refused", i)
		}
	}
	if v.admit("one more", "x", now) {
		t.Error("a feed too many was admitted")
	}
	if !v.admit("one more", "x", now.Add(variantRest)) || len(v.known) > 2 {
		t.Errorf("feeds that rest make no room: there are %d", len(v.known))
	}
}

// What a shield may keep has an end, also of feeds at ever new URLs, and those that
// nobody wants do not stay.
func TestShieldForgetsInventedURLs(t *testing.T) {
	onStage(t, shieldedSite(blog, ""), feed(sample), func(s *stage) {
		for i := range 50 {
			s.get(fmt.Sprintf("%s/feed?bust=%d", blog, i))
		}
		_, c := running()
		if n := len(c.Keys(shieldPrefix)); n != 50 {
			t.Errorf("%d feeds are known", n)
		}
		time.Sleep(26 * time.Hour)
		if n := len(c.Keys(shieldPrefix)); n != 0 {
			t.Errorf("%d feeds are known a day later", n)
		}
		s.calls()
		s.get(blog + "/feed?" + strings.Repeat("x", maxKey))
		if n := len(c.Keys(shieldPrefix)); n != 0 {
			t.Error("a URL without end was kept")
		}
		s.expect(1, "a URL without end")
	})
}

// Beyond what a shield may keep, requests pass through, and gateways go on.
func TestShieldIsBounded(t *testing.T) {
	onStage(t, shieldedSite(blog, ""), feed(sample), func(s *stage) {
		_, c := running()
		for i := range 20_000 {
			if _, err := c.Feed(fmt.Sprintf("shield:%s/%d", blog, i)); err != nil && i < 10_000 {
				t.Fatalf("feed %d: %v", i, err)
			} else if err == nil && i >= 10_000 {
				t.Fatalf("feed %d was taken", i)
			}
		}
		for range 3 {
			wantBody(t, "one more feed", s.get(blog+"/feed"), 200, "One")
		}
		s.expect(3, "one more feed")
		if _, err := c.Feed("https://example.com/feed"); err != nil {
			t.Errorf("a gateway's feed: %v", err)
		}
		time.Sleep(4 * time.Hour)
		s.get(blog + "/feed")
		s.get(blog + "/feed")
		s.expect(1, "when the others are forgotten")
	})
}
