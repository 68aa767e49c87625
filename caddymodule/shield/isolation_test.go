// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package shield

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/feedpollard/pollard/caddymodule/internal/stage"
)

// speaker is an origin with feeds that contain the argument of the backend directive, and that may be
// stored.
func speaker(w http.ResponseWriter, r *http.Request) error {
	return stage.Feed(stage.FeedNamed("I say "+stage.Text(r)+"."), "Cache-Control", "max-age=600")(w, r)
}

// from returns a request from an address.
func from(address, target string, header ...string) *http.Request {
	r := stage.Request("GET", target, header...)
	r.RemoteAddr = address + ":1234"
	return r
}

// Feeds belong to an origin block. A change elsewhere keeps them, also over a restart. A changed
// block begins with nothing, and its validators are not the ones of the block before.
func TestShieldsAreKnownByTheirBlocks(t *testing.T) {
	t.Setenv("POLLARD_TEST_BACKEND", "one")
	speaks := func(w http.ResponseWriter, r *http.Request) error {
		if r.Header.Get("If-None-Match") != "" {
			return stage.Plain(304, "")(w, r) // to every client
		}
		return stage.Feed(stage.FeedNamed("I say "+stage.Text(r)+"."), "Cache-Control", "max-age=600", "ETag", `"1"`)(w, r)
	}
	inner := "@internal remote_ip 192.168.0.0/16\nhandle @internal {\n" + shieldOf("internal") + "}\n"
	site := func(routes, says string, lines ...string) string {
		return blog + " {\nbind void/site\n" + routes + "handle {\n" + shieldOf(says, lines...) + "}\n}\n"
	}
	stage.Run(t, site(inner, "public"), speaks, func(s *stage.Stage) {
		stage.WantBody(t, "inside", s.Send(from(stage.Home, blog+"/feed")), 200, "I say internal.")
		stage.WantBody(t, "outside", s.Get(blog+"/feed"), 200, "I say public.")
		s.Expect(2, "two blocks")
		for name, sites := range map[string]string{
			"without the first block": site("", "public"),
			"a site in front":         "http://first.test {\nbind void/site\n" + shieldOf("first") + "}\n" + site(inner, "public"),
			"another matcher":         strings.Replace(site("", "public"), "feed_shield", "feed_shield /feed*", 1),
			"other lines":             site("", "public", "query ignore", "status /feed/status"),
		} {
			s.Load(sites)
			stage.WantBody(t, name, s.Get(blog+"/feed"), 200, "I say public.")
		}
		s.Expect(0, "changes elsewhere")
		restart := func(sites string) {
			time.Sleep(20 * time.Minute)
			s.Stop()
			s.Load(sites)
		}
		for i, change := range []struct{ name, sites, want string }{
			{"another argument", site("", "other"), "I say other."},
			{"what is ignored", site("", "other", "vary ignore Accept"), "I say other."},
			{"the environment", site("", "{env.POLLARD_TEST_BACKEND}"), "I say one."},
			{"a placeholder", site("", "{time.now.unix_ms}"), "I say "},
		} {
			restart(change.sites)
			stage.WantBody(t, change.name, s.Get(blog+"/feed"), 200, change.want)
			if poll := s.Expect(1, change.name)[0]; poll.Header["If-None-Match"] != nil {
				t.Errorf("%s: validators of another block were sent", change.name)
			}
			if i == 2 {
				t.Setenv("POLLARD_TEST_BACKEND", "two")
				restart(change.sites)
				stage.WantBody(t, "another environment", s.Get(blog+"/feed"), 200, "I say two.")
				s.Expect(1, "another environment")
				continue
			}
			s.Stop()
			s.Load(change.sites)
			s.Get(blog + "/feed")
			s.Expect(0, change.name+", started again")
		}
	})
}

// Where two shields with one block both match, there is one poll, and the stricter of their rules. What a handle
// takes, the next one does not match.
func TestShieldsOfOneBlock(t *testing.T) {
	sites := blog + " {\nbind void/site\nhandle /a/* {\n" + shieldOf("x", "min_interval 1m", "jitter 0") + "}\nhandle {\n" + shieldOf("x", "min_interval 5m", "jitter 0") +
		strings.Replace(shieldOf("x", "min_interval 3m", "max_interval 48h", "jitter 0"), "feed_shield", "feed_shield /b/*", 1) + "}\n}\n"
	stage.Run(t, sites, stage.Feed(stage.Sample), func(s *stage.Stage) {
		for path, age := range map[string]string{"/a/feed": "60", "/feed": "300", "/b/feed": "300"} {
			if w := s.Get(blog + path); w.Header().Get("Cache-Control") != "max-age="+age+stage.MayServeStale {
				t.Errorf("%s: %v", path, w.Header())
			}
		}
		s.Expect(3, "three feeds")
	})
}

// The admin API forgets the feeds of a URL in shields, and no others.
func TestForgetShieldedFeed(t *testing.T) {
	sites := blog + " {\nbind void/site\n" + shieldOf("a") + "}\nhttp://other.test {\nbind void/site\n" + shieldOf("b") + "}\n"
	answer := stage.Feed(stage.Sample, "Cache-Control", "max-age=600", "ETag", `"1"`)
	stage.Run(t, sites, answer, func(s *stage.Stage) {
		fill := func() {
			s.Get(blog + "/feed.xml")
			s.Get("http://other.test/feed.xml")
		}
		fill()
		s.Calls()
		if _, text := stage.Call(t, "GET", "/pollard/feeds?url="+blog+"/feed.xml"); strings.Contains(text, "shield:") {
			t.Errorf("the key is shown: %s", text)
		}
		for _, tt := range []struct {
			method, target string
			status, polls  int
		}{
			{"DELETE", "/pollard/feeds?url=https://no.such.host/feed.xml", 404, 0},
			{"POST", "/pollard/refresh?url=https://no.such.host/feed.xml", 404, 0},
			{"POST", "/pollard/refresh?url=https://blog.test/feed.xml", 202, 0}, // it was polled a moment ago,
			{"DELETE", "/pollard/feeds?url=" + blog + "/feed.xml", 204, 1},
			// Its last poll still counts, so requests for what was forgotten go to the origin.
			{"DELETE", "/pollard/feeds?url=http://other.test/feed.xml", 204, 2},
		} {
			if status, text := stage.Call(t, tt.method, tt.target); status != tt.status {
				t.Errorf("%s %s: %d %s, want %d", tt.method, tt.target, status, text, tt.status)
			}
			fill()
			s.Expect(tt.polls, tt.target)
		}
	})
}
