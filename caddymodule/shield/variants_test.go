// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package shield

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddyserver/caddy/v2"
	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/feedpollard/pollard/caddymodule/internal/stage"
	"github.com/feedpollard/pollard/caddymodule/poller"
)

// echo responds with a feed that contains request fields.
func echo(vary string) stage.Answer {
	return func(w http.ResponseWriter, r *http.Request) error {
		var said strings.Builder
		for name := range strings.SplitSeq(vary, ",") {
			fmt.Fprintf(&said, "[%s]", strings.Join(r.Header[http.CanonicalHeaderKey(strings.TrimSpace(name))], ","))
		}
		return stage.Feed(stage.FeedNamed(said.String()), "Vary", vary)(w, r)
	}
}

// Each variant of a feed has its own polls.
func TestShieldVariants(t *testing.T) {
	stage.Run(t, stage.ShieldedSite(blog, ""), echo("Accept-Language, X-Plan,Accept-Encoding"), func(s *stage.Stage) {
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
			// The value of one field must not count as another field.
			{[]string{"Accept-Language", "fr\tX-Plan=a"}, "[fr\tX-Plan=a][]", 1},
			{[]string{"Accept-Language", "fr X-Plan=a"}, "[fr X-Plan=a][]", 1},
			{[]string{"X-Plan", "a"}, "[][a]", 1},
		} {
			w := s.Get(blog+"/feed", tt.header...)
			stage.WantBody(t, fmt.Sprint(tt.header), w, 200, "<title>"+tt.want[:strings.IndexByte(tt.want, ']')])
			for _, poll := range s.Expect(tt.polls, fmt.Sprint(tt.header)) {
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
			s.Get(blog+"/feed", "Accept-Language", language)
		}
		s.Expect(2, "two variants are due")
	})
}

// Stored variants are served after a restart.
func TestShieldVariantsOutliveRestart(t *testing.T) {
	sites := stage.ShieldedSite(blog, "")
	stage.Run(t, sites, echo("Accept-Language"), func(s *stage.Stage) {
		languages := []string{"de", "fr"}
		for _, language := range languages {
			stage.WantBody(t, language, s.Get(blog+"/feed", "Accept-Language", language), 200, "["+language+"]")
		}
		s.Expect(1+2, "the plain feed and two variants")
		s.Stop()
		s.Load(sites)
		for _, language := range languages {
			stage.WantBody(t, language, s.Get(blog+"/feed", "Accept-Language", language), 200, "["+language+"]")
		}
		s.Expect(0, "after a restart")
		_, c := poller.Running()
		if n := len(c.Keys(context.Background(), poller.ShieldCommon)); n != 1+2 {
			t.Errorf("%d feeds are known", n)
		}
	})
}

// Invented variants fill neither store nor memory, and are forgotten.
func TestShieldVariantsAreBounded(t *testing.T) {
	stage.Run(t, stage.ShieldedSite(blog, ""), echo("X-Any"), func(s *stage.Stage) {
		s.Get(blog + "/feed")
		invent := func(n int) {
			for i := range n {
				stage.WantBody(t, "an invention", s.Get(blog+"/feed", "X-Any", fmt.Sprint(time.Now().Unix(), i)), 200, fmt.Sprint(i, "]"))
			}
		}
		known := func() int {
			synctest.Wait()
			_, c := poller.Running()
			return len(c.Keys(context.Background(), poller.ShieldCommon))
		}
		invent(100)
		s.Expect(1+100, "the plain feed and a hundred inventions")
		if got := known(); got != 1+maxVariants {
			t.Errorf("%d feeds are known", got)
		}
		for range 2 {
			stage.WantBody(t, "an honest variant", s.Get(blog+"/feed", "X-Any", "honest"), 200, "honest")
		}
		invent(100)
		s.Calls()
		s.Get(blog+"/feed", "X-Any", "honest")
		s.Expect(0, "an honest variant")
		time.Sleep(48 * time.Hour)
		if got := known(); got > 1 {
			t.Errorf("%d feeds are known two days later", got)
		}
		invent(1)
	})
}

// A private variant does not affect the others.
func TestShieldVariantOfOneReader(t *testing.T) {
	origin := func(w http.ResponseWriter, r *http.Request) error {
		if r.Header.Get("X-Plan") == "gold" {
			return stage.Feed(stage.FeedNamed("gold"), "Vary", "X-Plan", "Cache-Control", "private")(w, r)
		}
		return stage.Feed(stage.FeedNamed("for all"), "Vary", "X-Plan")(w, r)
	}
	stage.Run(t, stage.ShieldedSite(blog, ""), origin, func(s *stage.Stage) {
		for range 3 {
			stage.WantBody(t, "everybody", s.Get(blog+"/feed"), 200, "for all")
			stage.WantBody(t, "gold", s.Get(blog+"/feed", "X-Plan", "gold"), 200, "gold")
		}
		synctest.Wait()
		s.Expect(1+1+3, "three private answers and a probe of them")
	})
}

// Feeds of invented URLs are forgotten after a day, and very long URLs are not stored.
func TestShieldForgetsInventedURLs(t *testing.T) {
	stage.Run(t, stage.ShieldedSite(blog, ""), stage.Feed(stage.Sample), func(s *stage.Stage) {
		for i := range 50 {
			s.Get(fmt.Sprintf("%s/feed?bust=%d", blog, i))
		}
		_, c := poller.Running()
		if n := len(c.Keys(context.Background(), poller.ShieldCommon)); n != 50 {
			t.Errorf("%d feeds are known", n)
		}
		time.Sleep(26 * time.Hour)
		if n := len(c.Keys(context.Background(), poller.ShieldCommon)); n != 0 {
			t.Errorf("%d feeds are known a day later", n)
		}
		s.Calls()
		s.Get(blog + "/feed?" + strings.Repeat("x", maxKey))
		if n := len(c.Keys(context.Background(), poller.ShieldCommon)); n != 0 {
			t.Error("a URL without end was kept")
		}
		s.Expect(1, "a URL without end")
	})
}

// A shield has a bounded number of keys in memory. Invented URLs do not evict an honest feed
// from it, and an evicted key keeps its feed in the store.
func TestShieldMemoryIsBounded(t *testing.T) {
	other := "http://other.test"
	stage.Run(t, stage.ShieldedSite(blog, "")+stage.ShieldedSite(other, ""), stage.Feed(stage.Sample), func(s *stage.Stage) {
		const limit = 30
		app, err := caddy.ActiveContext().App("pollard")
		if err != nil {
			t.Fatal(err)
		}
		memory := app.(*poller.App).Keep("feed_shield "+blog, nil).(*entries)
		if memory.byKey, err = lru.New2Q[string, *entry](limit); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			s.Get(blog + "/feed")
			s.Get(other + "/feed")
		}
		s.Expect(2, "two feeds")
		for i := range 2 * limit {
			s.Get(fmt.Sprintf("%s/feed?bust=%d", blog, i))
		}
		s.Expect(2*limit, "invented URLs")
		if n := memory.byKey.Len(); n > limit {
			t.Errorf("%d keys are in memory, want at most %d", n, limit)
		}
		if memory.get(feedKey("/feed")) == nil {
			t.Error("the honest feed is not in memory")
		}
		for i := range 2 * limit {
			s.Get(fmt.Sprintf("%s/feed?bust=%d", blog, i))
		}
		s.Get(blog + "/feed")
		s.Get(other + "/feed")
		s.Expect(0, "feeds that are stored")
		synctest.Wait()
		_, c := poller.Running()
		if n := len(c.Keys(context.Background(), poller.ShieldPrefix(blog))); n != 2*limit+1 {
			t.Errorf("%d feeds are stored, want %d", n, 2*limit+1)
		}
	})
}
