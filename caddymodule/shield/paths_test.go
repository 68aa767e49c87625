// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package shield

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/feedpollard/pollard/caddymodule/internal/stage"
)

// Of two shields with one block, each has its own rules, defence, pings and pages for the paths that it alone
// serves, however they are written.
func TestShieldsOfSeveralPaths(t *testing.T) {
	long := []string{"jitter 0", "min_interval 1h", "ping /slow/ping", "status /slow/status", "defend {\nmax_rate 1 1h\n}"}
	short := []string{"jitter 0", "min_interval 1m", "max_interval 5m", "ping /feed/ping", "status /feed/status"}
	slow, feed := shieldOf("x", long...), shieldOf("x", short...)
	at := func(matcher, shield string) string {
		return strings.Replace(shield, "feed_shield", "feed_shield "+matcher, 1)
	}
	in := func(block, shield string) string { return block + " {\n" + shield + "}\n" }
	for name, lines := range map[string][]string{
		"matchers":       {at("/feed/*", feed), at("/slow/*", slow)},
		"handle":         {in("handle /feed/*", feed), in("handle /slow/*", slow)},
		"the rest":       {in("handle /feed/*", feed), in("handle", slow)},
		"the other rest": {in("handle /slow/*", slow), in("handle", feed)},
		"route":          {in("route /feed/*", feed), in("route /slow/*", slow)},
		"named":          {"@feed path /feed/*\n" + at("@feed", feed), "@slow path_regexp ^/slow/\n" + at("@slow", slow)},
		"not":            {"@feed not path /slow/*\n" + at("@feed", feed), at("/slow/*", slow)},
		"all before":     {in("handle_path /all/*", in("handle /feed/*", feed)+in("handle", slow))},
	} {
		for range 2 {
			t.Run(name, func(t *testing.T) { severalPaths(t, strings.Join(lines, "")) })
			slices.Reverse(lines)
		}
	}
}

func severalPaths(t *testing.T, lines string) {
	base := blog
	if strings.Contains(lines, "/all/") {
		base += "/all"
	}
	answer := stage.Feed(stage.Sample, "Cache-Control", "max-age=86400")
	stage.Run(t, blog+" {\nbind void/site\n"+lines+"}\n", answer, func(s *stage.Stage) {
		send := func(method, path, form string, header ...string) *httptest.ResponseRecorder {
			r := stage.Request(method, base+path, header...)
			r.RemoteAddr = stage.Home + ":1234"
			if form != "" {
				r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
				r.Body, r.ContentLength = io.NopCloser(strings.NewReader(form)), int64(len(form))
			}
			return s.Send(r)
		}
		for path, age := range map[string]string{"/feed/a.xml": "300", "/slow/a.xml": "86400"} {
			if w := s.Get(base + path); w.Code != 200 || w.Header().Get("Cache-Control") != "max-age="+age+stage.MayServeStale {
				t.Errorf("%s: %d %s, want max-age=%s", path, w.Code, w.Header().Get("Cache-Control"), age)
			}
		}
		s.Expect(2, "two feeds")
		if got := [2]int{s.Get(base + "/feed/a.xml").Code, s.Get(base + "/slow/a.xml").Code}; got != [2]int{200, http.StatusTooManyRequests} {
			t.Errorf("the second requests got %v", got)
		}
		for _, tt := range []struct{ at, other string }{{"/feed", "/slow"}, {"/slow", "/feed"}} {
			page := send("GET", tt.at+"/status/feeds", "", "Accept", "application/json").Body.String()
			if !strings.Contains(page, base+tt.at+"/a.xml") || strings.Contains(page, tt.other+"/a.xml") {
				t.Errorf("the page at %s shows %s", tt.at, page)
			}
			time.Sleep(2 * time.Minute)
			for feed, want := range map[string]int{tt.at: 204, tt.other: 404} {
				if w := send("POST", tt.at+"/ping", "hub.mode=publish&hub.url="+base+feed+"/a.xml"); w.Code != want {
					t.Errorf("a ping at %s for %s: %d, want %d", tt.at, feed, w.Code, want)
				}
			}
		}
		time.Sleep(2 * time.Minute)
		if n := len(s.Calls()); n != 1 {
			t.Errorf("%d polls because of pings, want one of the feed that may be polled each minute", n)
		}
		time.Sleep(time.Hour)
	})
}

// Two ports of one name are two sites. Where both shields serve a feed, the stricter of each line applies.
func TestShieldsOfSeveralPorts(t *testing.T) {
	short, long := shieldOf("x", "jitter 0", "max_interval 1m"), shieldOf("x", "jitter 0", "max_interval 10m")
	site := func(port, inner string) string {
		return "http://blog.test" + port + " {\nbind void/site\n" + inner + "}\n"
	}
	both := strings.Replace(short, "feed_shield", "feed_shield /both/*", 1) + strings.Replace(long, "feed_shield", "feed_shield /both/b/*", 1)
	for _, sites := range []string{site(":80", short) + site(":8080", long+both), site(":8080", both+long) + site("", short)} {
		stage.Run(t, sites, stage.Feed(stage.Sample, "Cache-Control", "max-age=86400"), func(s *stage.Stage) {
			ports := map[string]string{"http://blog.test": "60", "http://blog.test:8080": "600"}
			for server := range 2 {
				for address, age := range ports {
					w := httptest.NewRecorder()
					stage.Serve(t, server, w, stage.Request("GET", address+"/feed.xml"))
					if got := w.Header().Get("Cache-Control"); got != "max-age="+age+stage.MayServeStale {
						t.Errorf("%s: %s, want %s", address, got, age)
					}
				}
			}
			time.Sleep(time.Hour)
		})
	}
}
