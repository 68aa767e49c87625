// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package shield

import (
	"fmt"
	"html"
	"net/url"
	"strings"
	"testing"

	"github.com/feedpollard/pollard/caddymodule/internal/stage"
	"github.com/feedpollard/pollard/caddymodule/pages"
	"github.com/feedpollard/pollard/internal/status"
)

// The pages of a shield are below its status path, and are not public.
func TestStatus(t *testing.T) {
	site := stage.ShieldedSite("http://blog.example", "{\nstatus /feed/status\n}") + "http://other.example {\nbind void/site\n" + shieldOf("other") + "}\n"
	stage.Run(t, site, stage.Feed(stage.FeedNamed("one")), func(s *stage.Stage) {
		for _, host := range []string{"blog.example", "other.example"} {
			stage.WantBody(t, host, s.Get("http://"+host+"/feed.xml"), 200, "one")
		}
		for target, want := range map[string]string{
			"/feed/status":       "1 feed",
			"/feed/status/":      "1 feed",
			"/feed/status/feeds": "blog.example",
			"/feed/status/feeds?url=http://blog.example/feed.xml": "this shield",
			"/feed/status/readers":                                "reader",
			"/feed/status/about":                                  "expects of feed readers",
			"/feed/status/savings":                                "Your site was spared",
		} {
			r := stage.Request("GET", "http://blog.example"+target)
			r.RemoteAddr = stage.Home + ":1234"
			w := s.Send(r)
			stage.WantBody(t, target, w, 200, want)
		}
		s.Expect(2, "feeds")
		for _, name := range pages.Names() {
			for _, accept := range []string{"text/html", "application/json"} {
				r := stage.Request("GET", "http://blog.example/feed/status/"+name, "Accept", accept)
				r.RemoteAddr = stage.Home + ":1234"
				if page := s.Send(r).Body.String(); strings.Contains(page, "other.example") {
					t.Errorf("%s as %s tells of another shield: %s", name, accept, page)
				}
			}
		}
		for target, status := range map[string]int{"/feed/status": 403, "/feed/status/feeds": 403, "/feed/status/about": 200} {
			if w := s.Get("http://blog.example" + target); w.Code != status {
				t.Errorf("%s from abroad: %d, want %d", target, w.Code, status)
			}
			relayed := stage.Request("GET", "http://blog.example"+target, "X-Forwarded-For", "8.8.8.8")
			relayed.RemoteAddr = stage.Home + ":1234"
			if w := s.Send(relayed); w.Code != status {
				t.Errorf("%s through a proxy: %d, want %d", target, w.Code, status)
			}
		}
		s.Expect(0, "pages")
		if w := s.Get("http://blog.example/feed/statuses"); strings.Contains(w.Body.String(), "Pollard") {
			t.Errorf("another path: %s", w.Body)
		}
	})
}

// A feed has a page, however its reader has written the query.
func TestStatusOfOddQuery(t *testing.T) {
	stage.Run(t, stage.ShieldedSite("http://blog.example", "{\nstatus /feed/status\n}"), stage.Feed(stage.FeedNamed("one")), func(s *stage.Stage) {
		r := stage.Request("GET", "http://blog.example/feed/")
		r.URL.RawQuery = "s=\u8a9e"
		r.RequestURI += "?" + r.URL.RawQuery
		stage.WantBody(t, "the feed", s.Send(r), 200, "one")
		r = stage.Request("GET", "http://blog.example/feed/status/feeds?url="+url.QueryEscape("http://blog.example/feed/?s=\u8a9e"))
		r.RemoteAddr = stage.Home + ":1234"
		stage.WantBody(t, "its page", s.Send(r), 200, "<h1><bdi>one")
	})
}

// The status page says first what of the site keeps the shield from its work, and what was passed on.
func TestStatusNotices(t *testing.T) {
	for _, tt := range []struct {
		name, lines string
		header      []string
		notice      string // empty: none
		passed      string
	}{
		{"good for a month", "", []string{"Cache-Control", "max-age=2592000"}, "Your server allows 1 feed to be kept for 30 days, so new posts show after 24 hours.", ""},
		{"mended", "max_interval 10m", []string{"Cache-Control", "max-age=2592000"}, "", ""},
		{"by agent", "", []string{"Vary", "User-Agent"}, "Your site varies 1 feed by User-Agent (Vary)", "2 because of User-Agent."},
		{"by origin", "", []string{"Vary", "Origin"}, "", "1 because of Origin."},
		{"ignored", "vary ignore User-Agent", []string{"Vary", "User-Agent"}, "", "1 because of Origin."},
	} {
		t.Run(tt.name, func(t *testing.T) {
			stage.Run(t, stage.ShieldedSite(blog, "{\nstatus /feed/status\n"+tt.lines+"\n}"), stage.Feed(stage.Sample, tt.header...), func(s *stage.Stage) {
				s.Get(blog + "/feed")
				if tt.passed != "" {
					s.Get(blog+"/feed", "Origin", "https://other.test")
				}
				for _, accept := range []string{"text/html", "application/json"} {
					r := stage.Request("GET", blog+"/feed/status/feeds", "Accept", accept)
					r.RemoteAddr = stage.Home + ":1234"
					page := s.Send(r).Body.String()
					if tt.notice == "" && (strings.Contains(page, "into feed_shield") || strings.Contains(page, `"notices"`)) || !strings.Contains(page, tt.notice) {
						t.Errorf("%s: %s, want %q", accept, page, tt.notice)
					}
					if accept == "text/html" && !strings.Contains(page, tt.passed) || (tt.passed != "") != strings.Contains(page, map[string]string{"text/html": "Passed on", "application/json": `"passed"`}[accept]) {
						t.Errorf("%s: %s, want %q", accept, page, tt.passed)
					}
				}
			})
		})
	}
}

// A feed that may not be shared is not a mistyped address: the page names the field, and how the block takes it out.
func TestStatusOfFeedsThatMayNotBeShared(t *testing.T) {
	for _, tt := range []struct {
		name   string
		header []string
		why    string // empty: it is shared
		mended string // in the origin block
	}{
		{"a session", []string{"Cache-Control", "no-store, no-cache, must-revalidate", "Expires", "Thu, 19 Nov 1981 08:52:00 GMT", "Pragma", "no-cache", "Set-Cookie", "PHPSESSID=1"}, "Cache-Control: no-store", "header -Cache-Control"},
		{"private", []string{"Cache-Control", "private, max-age=0"}, "Cache-Control: private", "header -Cache-Control"},
		{"compressed", []string{"Cache-Control", "private", "Content-Encoding", "x"}, "Cache-Control: private", ""},
		{"any Vary", []string{"Vary", "*"}, "Vary: *", "header -Vary"},
		{"a cookie alone", []string{"Set-Cookie", "PHPSESSID=1"}, "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			page := func(s *stage.Stage, target string) string {
				r := stage.Request("GET", blog+"/feed/status/"+target, "Accept", "text/html")
				r.RemoteAddr = stage.Home + ":1234"
				return html.UnescapeString(s.Send(r).Body.String())
			}
			site := stage.ShieldedSite(blog, "{\nstatus /feed/status\n}")
			stage.Run(t, site, stage.Feed(stage.Sample, tt.header...), func(s *stage.Stage) {
				for range 3 {
					s.Get(blog + "/feed")
				}
				list, one := page(s, "feeds"), page(s, "feeds?url="+blog+"/feed")
				field, _, _ := strings.Cut(tt.why, ":")
				if tt.why == "" {
					if strings.Contains(list, "forbids") {
						t.Errorf("list: %s", list)
					}
					return
				}
				for _, want := range []string{"Your site forbids to share 1 feed (" + tt.why, "write header -" + field + " into the origin block", "2 because of " + tt.why, "1 is failing"} {
					if !strings.Contains(list, want) {
						t.Errorf("the list lacks %q: %s", want, list)
					}
				}
				if !strings.Contains(one, tt.why) || strings.Contains(list+one, "never gave a feed") || strings.Contains(one, "comes back") {
					t.Errorf("its page: %s", one)
				}
			})
			if tt.mended == "" {
				return
			}
			stage.Run(t, strings.Replace(site, "backend", tt.mended+"\nbackend", 1), stage.Feed(stage.Sample, tt.header...), func(s *stage.Stage) {
				s.Get(blog + "/feed")
				s.Calls()
				s.Get(blog + "/feed")
				s.Expect(0, "shared")
				if list := page(s, "feeds"); strings.Contains(list, "forbids") {
					t.Errorf("mended: %s", list)
				}
			})
		})
	}
}

// A page that may not be shared is not counted as a feed.
func TestStatusOfPagesThatMayNotBeShared(t *testing.T) {
	stage.Run(t, stage.ShieldedSite(blog, "{\nstatus /feed/status\n}"), stage.Plain(200, "<html>a page", "Cache-Control", "private"), func(s *stage.Stage) {
		s.Get(blog + "/feed/page")
		r := stage.Request("GET", blog+"/feed/status/feeds")
		r.RemoteAddr = stage.Home + ":1234"
		if list := s.Send(r).Body.String(); strings.Contains(list, "forbids") || strings.Contains(list, "failing</a>") {
			t.Errorf("%s", list)
		}
	})
}

// A shield keeps statistics of its readers, also of those that it refuses.
func TestShieldRecordsReaders(t *testing.T) {
	stage.Run(t, defended("unconditional 4h"), stage.Feed(stage.Sample), func(s *stage.Stage) {
		for i := range 4 {
			if w := (visitor{header: []string{"User-Agent", "Rude/1.0"}}).ask(s, "GET"); (w.Code == 429) != (i > 1) {
				t.Errorf("request %d got %d", i, w.Code)
			}
		}
		visitor{header: []string{"User-Agent", "Good/1.0"}}.ask(s, "GET", "If-None-Match", "*")
		s.Send(stage.Request("POST", blog+"/feed"))
		want := status.Answers{Full: 2, NotModified: 1, Limited: 2}
		for _, query := range []string{"", "?url=http://blog.test/feed", "?url=https://blog.test/feed"} {
			if got := stage.ReportOfReaders(t, query).Total.Answers; got != want {
				t.Errorf("%s: %+v, want %+v", query, got, want)
			}
		}
	})
}

// The pages show refusals, and which proxy Caddy should trust.
func TestStatusShowsRefusals(t *testing.T) {
	site := strings.Replace(defended("unconditional 4h"), "defend {", "status /feed/status\n\t\tdefend {", 1)
	stage.Run(t, site, stage.Feed(stage.Sample), func(s *stage.Stage) {
		for i := range 6 {
			for range 3 {
				visitor{from: "203.0.113.80", header: []string{"User-Agent", "Rude/1.0"}}.ask(s, "GET", "X-Forwarded-For", fmt.Sprint("198.51.100.", i))
			}
		}
		for target, want := range map[string]string{
			"":         "trusted_proxies static 203.0.113.80",
			" json":    `"untrusted_proxies": [`,
			"/readers": "6 requests were refused.", "/readers json": `"refused": 6`,
		} {
			path, json := strings.CutSuffix(target, " json")
			r := stage.Request("GET", blog+"/feed/status"+path)
			if json {
				r.Header.Set("Accept", "application/json")
			}
			r.RemoteAddr = stage.Home + ":1234"
			stage.WantBody(t, target, s.Send(r), 200, want)
		}
	})
}
