// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package shield

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"

	"github.com/feedpollard/pollard/caddymodule/internal/stage"
	"github.com/feedpollard/pollard/caddymodule/poller"
)

// speaker is an origin with feeds that contain the argument of the backend directive, and that may be
// stored.
func speaker(w http.ResponseWriter, r *http.Request) error {
	return stage.Feed(stage.FeedNamed("I say "+stage.Said(r)+"."), "Cache-Control", "max-age=600")(w, r)
}

// from returns a request from an address.
func from(address, target string, header ...string) *http.Request {
	r := stage.Request("GET", target, header...)
	r.RemoteAddr = address + ":1234"
	return r
}

// A change elsewhere in the configuration does not change which shield a feed belongs to.
func TestShieldsAreKnownByName(t *testing.T) {
	inner := "@internal remote_ip 192.168.0.0/16\nhandle @internal {\n" + shieldOf("internal", "name internal") + "}\n"
	site := func(routes string) string {
		return blog + " {\nbind void/site\n" + routes + "handle {\n" + shieldOf("public") + "}\n}\n"
	}
	stage.Run(t, site(inner), speaker, func(s *stage.Stage) {
		stage.WantBody(t, "inside", s.Send(from(stage.Home, blog+"/feed")), 200, "I say internal.")
		stage.WantBody(t, "outside", s.Get(blog+"/feed"), 200, "I say public.")
		s.Load(site(""))
		stage.WantBody(t, "with the first block removed", s.Get(blog+"/feed"), 200, "I say public.")
		s.Load("http://first.test {\nbind void/site\n" + shieldOf("first") + "}\n" + site(inner))
		stage.WantBody(t, "with a site in front", s.Get(blog+"/feed"), 200, "I say public.")
		stage.WantBody(t, "inside", s.Send(from(stage.Home, blog+"/feed")), 200, "I say internal.")
	})
}

// The admin API forgets the feeds of a URL in shields, and no others.
func TestForgetShieldedFeed(t *testing.T) {
	sites := blog + " {\nbind void/site\n" + shieldOf("a") + "}\nhttp://other.test {\nbind void/site\n" + shieldOf("b") + "}\n"
	stage.Run(t, sites, speaker, func(s *stage.Stage) {
		fill := func() {
			s.Get(blog + "/feed.xml")
			s.Get("http://other.test/feed.xml")
		}
		fill()
		s.Calls()
		for _, tt := range []struct {
			method, target string
			status, polls  int
		}{
			{"DELETE", "/pollard/feeds?url=https://no.such.host/feed.xml", 404, 0},
			{"POST", "/pollard/refresh?url=https://no.such.host/feed.xml", 404, 0},
			{"POST", "/pollard/refresh?url=https://blog.test/feed.xml", 429, 0}, // it was polled a moment ago,
			{"DELETE", "/pollard/feeds?url=" + blog + "/feed.xml", 204, 1},
			{"DELETE", "/pollard/feeds?url=http://other.test/feed.xml", 204, 1},
		} {
			if status, text := stage.Call(t, tt.method, tt.target); status != tt.status {
				t.Errorf("%s %s: %d %s, want %d", tt.method, tt.target, status, text, tt.status)
			}
			fill()
			s.Expect(tt.polls, tt.target)
		}
	})
}

// A site for any host shares nothing: the Host of a request would decide what others get. A port in
// Host that the site does not have is ignored.
func TestShieldAndHost(t *testing.T) {
	site := func(address string) string {
		return address + " {\nbind void/site\n" + shieldOf("{hostport}") + "}\n"
	}
	stage.Run(t, site(":80"), speaker, func(s *stage.Stage) {
		stage.WantBody(t, "evil", s.Get("/feed", "Host", "evil.test"), 200, "I say evil.test.")
		stage.WantBody(t, "good", s.Get("/feed", "Host", "good.test"), 200, "I say good.test.")
		stage.WantBody(t, "good", s.Get("/feed", "Host", "good.test"), 200, "I say good.test.")
		s.Expect(3, "three readers")
		s.Load(site(blog))
		s.Get("/feed", "Host", "blog.test:666")
		stage.WantBody(t, "after a foreign port", s.Get("/feed", "Host", "blog.test"), 200, "I say blog.test.")
		s.Expect(1, "two readers")
	})
}

// Sites on two ports of one host are two sites, whatever port a request names.
func TestShieldsOnTwoPorts(t *testing.T) {
	site := func(port, says string) string {
		return blog + ":" + port + " {\nbind void/site\n" + shieldOf(says) + "}\n"
	}
	stage.Run(t, site("8080", "public")+site("8084", "internal"), speaker, func(s *stage.Stage) {
		app, err := caddy.ActiveContext().App("http")
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			for i, says := range []string{"public", "internal"} {
				w := httptest.NewRecorder()
				stage.Server(app, i).ServeHTTP(w, stage.Request("GET", "/feed", "Host", "blog.test"))
				stage.WantBody(t, says, w, 200, "I say "+says+".")
			}
		}
	})
}

// Values of readers' fields are in no key and on no page. A request with a field that may be a
// credential passes through.
func TestVariantsHideValues(t *testing.T) {
	const value = "s3cret-of-alice-0001"
	stage.Run(t, stage.ShieldedSite(blog, ""), echo("X-Plan, X-Api-Key"), func(s *stage.Stage) {
		s.Get(blog+"/feed", "X-Plan", value)
		s.Get(blog+"/feed", "X-Plan", value)
		s.Expect(2, "the plain feed and a variant")
		_, c := poller.Running()
		for _, key := range c.Keys(context.Background(), "") {
			if strings.Contains(key, value) {
				t.Errorf("there is a key %q", key)
			}
		}
		if _, text := stage.Call(t, "GET", "/pollard/feeds"); strings.Contains(text, value) {
			t.Errorf("the admin API tells it: %s", text)
		}
		for range 2 {
			stage.WantBody(t, "a credential", s.Get(blog+"/feed", "X-Api-Key", value), 200, value)
		}
		s.Expect(2, "two requests with a credential")
	})
}
