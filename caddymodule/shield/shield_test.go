// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package shield

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/feedpollard/pollard/caddymodule/door"
	"github.com/feedpollard/pollard/caddymodule/internal/stage"
	"github.com/feedpollard/pollard/caddymodule/poller"
	"github.com/feedpollard/pollard/internal/status"
)

const blog = "http://blog.test"

// modtime is when what backends serve was written.
var modtime = time.Date(1999, 12, 31, 0, 0, 0, 0, time.UTC)

// There is one poll per interval, however many readers request the feed, and nothing of a reader is in it.
func TestShieldAsksOnce(t *testing.T) {
	slow := func(w http.ResponseWriter, r *http.Request) error {
		time.Sleep(time.Second / 2)
		return stage.Feed(stage.FeedNamed("first"), "ETag", `"v1"`, "Last-Modified", "Sat, 01 Jan 2000 00:00:00 GMT")(w, r)
	}
	stage.Run(t, stage.ShieldedSite(blog, "/feed/* {\n\t\tjitter 0\n\t}"), slow, func(s *stage.Stage) {
		const secret = "a-readers-own"
		var crowd sync.WaitGroup
		for i := range 100 {
			crowd.Go(func() {
				r := stage.Request("GET", blog+"/feed/?a=1", "Cookie", secret, "Referer", "https://"+secret+"/", "User-Agent", secret,
					"Accept-Language", secret, "X-Forwarded-For", secret, "Forwarded", secret, "X-Token", secret,
					"If-None-Match", `"`+secret+`"`, "From", secret, "Cache-Control", "no-cache", "Pragma", "no-cache")
				ctx, leave := context.WithCancel(r.Context())
				defer leave()
				if i%2 == 0 {
					time.AfterFunc(300*time.Millisecond, leave)
				}
				w := s.Send(r.WithContext(ctx))
				if i%2 == 1 {
					stage.WantBody(t, "one of a hundred", w, 200, "first")
				}
			})
		}
		crowd.Wait()
		poll := s.Expect(1, "a hundred readers")[0]
		header := fmt.Sprint(poll.Header)
		if strings.Contains(header, secret) || poll.Header["Range"] != nil || poll.Header["X-Forwarded-For"] != nil {
			t.Errorf("a poll has something of a reader: %s", header)
		}
		if poll.RemoteAddr != pollAddress || poll.Host != "blog.test" || poll.Method != "GET" {
			t.Errorf("a poll came from %s to %s with %s", poll.RemoteAddr, poll.Host, poll.Method)
		}
		if client := door.Read(poll.Request).Client; client.String() != "0.0.0.0" {
			t.Errorf("the client of a poll is %s", client)
		}
		if got := poll.URL.String() + " " + poll.RequestURI; got != "/feed/?a=1 /feed/?a=1" {
			t.Errorf("the poll was for %s", got)
		}
		if agent := poll.UserAgent(); !strings.HasPrefix(agent, "Pollard") || !strings.Contains(agent, "https://example.com/about") {
			t.Errorf("the User-Agent of a poll is %q", agent)
		}

		w := s.Get(blog + "/feed/?a=1")
		stage.WantBody(t, "a hit", w, 200, "first")
		for name, want := range map[string]string{
			"Cache-Control": "max-age=60" + stage.MayServeStale, "Vary": "Accept-Encoding", "Content-Type": "application/rss+xml", "Content-Security-Policy": "",
			"Last-Modified": "Sat, 01 Jan 2000 00:00:01 GMT",
		} {
			if got := w.Header().Get(name); got != want {
				t.Errorf("%s: %q, want %q", name, got, want)
			}
		}
		if w := s.Get(blog+"/feed/?a=1", "If-None-Match", `"v1"`); w.Code != 200 {
			t.Errorf("the origin's own ETag got %d", w.Code)
		}
		s.Expect(0, "within the interval")

		time.Sleep(time.Minute)
		stage.WantBody(t, "after the interval", s.Get(blog+"/feed/?a=1"), 200, "first")
		again := s.Expect(1, "after the interval")[0]
		if again.Header.Get("If-None-Match") != `"v1"` || again.Header.Get("If-Modified-Since") == "" {
			t.Errorf("the second poll was not conditional: %v", again.Header)
		}
		time.Sleep(24 * time.Hour)
		s.Expect(0, "no readers, no polls")
	})
}

// Requests and responses that cannot be shared pass through unchanged. They cost the site one poll per
// interval at most.
func TestShieldStandsAside(t *testing.T) {
	tests := []struct {
		name    string
		request *http.Request
		answer  stage.Answer
		probes  int // besides the request itself
	}{
		{"POST", stage.Request("POST", blog+"/feed"), stage.Plain(201, "made"), 0},
		{"OPTIONS", stage.Request("OPTIONS", blog+"/feed"), stage.Plain(204, ""), 0},
		{"PROPFIND", stage.Request("PROPFIND", blog+"/feed"), stage.Plain(207, "many"), 0},
		{"Authorization", stage.Request("GET", blog+"/feed", "Authorization", "Basic eA=="), stage.Feed(stage.FeedNamed("mine")), 0},
		{"upgrade", stage.Request("GET", blog+"/feed", "Connection", "Upgrade", "Upgrade", "websocket"), stage.Plain(400, "no"), 1},
		{"private", stage.Request("GET", blog+"/feed"), stage.Feed(stage.FeedNamed("mine"), "Cache-Control", "private, max-age=60"), 1},
		{"private for a field", stage.Request("GET", blog+"/feed"), stage.Feed(stage.FeedNamed("mine"), "Cache-Control", `private="X-Me"`), 1},
		{"no-store", stage.Request("GET", blog+"/feed"), stage.Feed(stage.FeedNamed("mine"), "Cache-Control", "no-store"), 1},
		{"Vary: *", stage.Request("GET", blog+"/feed"), stage.Feed(stage.FeedNamed("mine"), "Vary", "Accept-Encoding, *"), 1},
		{"cookie that matters", stage.Request("GET", blog+"/feed", "Cookie", "a=b"), stage.Feed(stage.FeedNamed("mine"), "Vary", "Cookie"), 1},
		{"redirect", stage.Request("GET", blog+"/feed"), stage.Plain(302, "", "Location", "/elsewhere"), 1},
		{"permanent redirect", stage.Request("GET", blog+"/feed"), stage.Plain(301, "moved", "Location", "https://example.com/feed"), 1},
		{"page", stage.Request("GET", blog+"/feed"), stage.Plain(200, "<!doctype html><title>Hello</title>", "Content-Type", "text/html"), 1},
		{"page with a feed in it", stage.Request("GET", blog+"/feed"), stage.Plain(200, "<!doctype html><pre>"+strings.Repeat(" ", 5000)+stage.Sample, "Content-Type", "text/html"), 1},
		{"image", stage.Request("GET", blog+"/feed"), stage.Plain(200, "\x89PNG\r\n\x1a\n", "Content-Type", "image/png"), 1},
		{"not found", stage.Request("GET", blog+"/feed"), stage.Plain(404, "no such page", "X-Why", "gone fishing", "Cache-Control", "no-store"), 1},
		{"gone", stage.Request("GET", blog+"/feed"), stage.Plain(410, "gone"), 1},
		{"error", stage.Request("GET", blog+"/feed"), stage.Plain(500, "sorry"), 1},
		{"two cookies set", stage.Request("GET", blog+"/feed"), stage.Plain(200, "hello", "Set-Cookie", "a=1", "Set-Cookie", "b=2"), 1},
		{"empty", stage.Request("GET", blog+"/feed"), stage.Plain(200, ""), 1},
		{"condition", stage.Request("GET", blog+"/feed", "If-None-Match", `"x"`), stage.Plain(404, "no"), 1},
		{"HEAD of a page", stage.Request("HEAD", blog+"/feed"), stage.Plain(200, "", "Content-Type", "text/html"), 1},
	}
	var of, last int // the running test, and the last one
	answer := func(w http.ResponseWriter, r *http.Request) error { return tests[of].answer(w, r) }
	stage.Run(t, ":80 {\nbind void/site\n"+shieldOf("", "vary ignore Accept")+"}\nhttp://bare.test {\nbind void/site\nbackend\n}\n", answer, func(s *stage.Stage) {
		for of = range tests {
			tt := tests[of]
			send := func(host string) *httptest.ResponseRecorder {
				r := tt.request.Clone(tt.request.Context())
				r.Host = host
				return s.Send(r)
			}
			want := send("bare.test")
			asked := s.Expect(1, "without a shield")[0]
			for i := range 3 {
				got := send(fmt.Sprintf("blog%d.test", of))
				if got.Code != want.Code || got.Body.String() != want.Body.String() || fmt.Sprint(got.Header()) != fmt.Sprint(want.Header()) {
					t.Errorf("%s: with the shield\n%d %v %q\nwithout\n%d %v %q", tt.name, got.Code, got.Header(), got.Body, want.Code, want.Header(), want.Body)
				}
				synctest.Wait()
				calls := s.Calls()
				if i > 0 {
					tt.probes = 0
				}
				if len(calls) != 1+tt.probes {
					t.Fatalf("%s: request %d: the origin had %d requests, want %d", tt.name, i, len(calls), 1+tt.probes)
				}
				own := calls[len(calls)-1]
				if mark := own.Header["Cdn-Loop"]; len(mark) != 1 {
					t.Errorf("%s: the origin saw CDN-Loop %q", tt.name, mark)
				}
				own.Header.Del("Cdn-Loop") // all else is as it came
				if fmt.Sprint(own.Method, own.URL, own.Header, own.RemoteAddr) != fmt.Sprint(asked.Method, asked.URL, asked.Header, asked.RemoteAddr) || own.Host != fmt.Sprintf("blog%d.test", of) {
					t.Errorf("%s: the origin saw\n%v %v\nwithout the shield\n%v %v", tt.name, own.Method, own.Header, asked.Method, asked.Header)
				}
			}
			// With Vary: Cookie, the response to a poll is for all readers without cookies.
			_, c := poller.Running()
			stored := 0
			for state, n := range c.Summary(context.Background()).Feeds {
				if state != status.StateUnread && state != status.StateFailing {
					stored += int(n)
				}
			}
			if (stored > last) != (tt.name == "cookie that matters") {
				t.Errorf("%s: %d feeds are stored, and %d before", tt.name, stored, last)
			}
			last = stored
		}
	})
}

// A feed that may not be shared any more is not served any more, also after a restart. It is served again when
// it may be shared again.
func TestShieldWithdraws(t *testing.T) {
	for name, withdrawn := range map[string]stage.Answer{
		"private":  stage.Feed(stage.FeedNamed("secret"), "Cache-Control", "private"),
		"no-store": stage.Feed(stage.FeedNamed("secret"), "Cache-Control", "no-store"),
		"Vary: *":  stage.Feed(stage.FeedNamed("secret"), "Vary", "*"),
		"304":      stage.Plain(304, "", "Cache-Control", "private"),
		"redirect": stage.Plain(302, "secret", "Location", "/login"),
		"401":      stage.Plain(401, "who are you?", "WWW-Authenticate", "Basic"),
		"410":      stage.Plain(410, "gone"),
	} {
		t.Run(name, func(t *testing.T) {
			sites := stage.ShieldedSite(blog, "")
			stage.Run(t, sites, stage.Feed(stage.FeedNamed("public"), "ETag", `"1"`), func(s *stage.Stage) {
				stage.WantBody(t, "at first", s.Get(blog+"/feed"), 200, "public")
				time.Sleep(2 * time.Minute)
				s.Now(withdrawn)
				public := func(when string) {
					t.Helper()
					if w := s.Get(blog + "/feed"); strings.Contains(w.Body.String(), "public") {
						t.Errorf("%s: %d %s", when, w.Code, w.Body)
					}
					synctest.Wait()
				}
				public("withdrawn")
				public("withdrawn, the second reader")
				time.Sleep(50 * time.Minute) // soon enough not to be forgotten
				s.Now(stage.Plain(500, "sorry"))
				public("an error later")
				s.Stop()
				s.Load(sites)
				public("after a restart")
				time.Sleep(50 * time.Minute) // soon enough not to be forgotten
				s.Now(stage.Feed(stage.FeedNamed("public"), "ETag", `"1"`))
				s.Get(blog + "/feed") // shows the way for the poll
				synctest.Wait()
				s.Calls()
				stage.WantBody(t, "published again", s.Get(blog+"/feed"), 200, "public")
				s.Expect(0, "published again")
			})
		})
	}
}

// Header fields of the origin reach readers, also those of a 304. So does a change of Vary.
func TestShieldFollowsHeaders(t *testing.T) {
	stage.Run(t, stage.ShieldedSite(blog, "{\n\t\tjitter 0\n\t}"), stage.Feed(stage.Sample, "X-Mood", "good", "X-Old", "1", "ETag", `"1"`, "Set-Cookie", "session=reader"), func(s *stage.Stage) {
		w := s.Get(blog + "/feed")
		if w.Header().Get("X-Mood") != "good" || w.Header().Get("Set-Cookie") != "" {
			t.Errorf("at first: %v", w.Header())
		}
		time.Sleep(time.Minute)
		s.Now(stage.Plain(304, "", "X-Mood", "better"))
		if h := s.Get(blog + "/feed").Header(); h.Get("X-Mood") != "better" || h.Get("X-Old") != "1" {
			t.Errorf("after a 304: %v", h)
		}
		time.Sleep(time.Minute)
		s.Now(stage.Feed(stage.Sample, "X-Mood", "best", "Vary", "Cookie", "ETag", `"2"`))
		if h := s.Get(blog + "/feed").Header(); h.Get("X-Mood") != "best" || h.Get("X-Old") != "" || h.Get("Vary") != "Accept-Encoding, cookie" {
			t.Errorf("after a 200 with the same feed: %v", h)
		}
		s.Calls()
		s.Get(blog+"/feed", "Cookie", "a=b")
		if own := s.Expect(1, "a reader with a cookie")[0]; own.Header.Get("Cookie") != "a=b" {
			t.Error("a reader with a cookie was not passed through")
		}
	})
}

// Feeds of a shield are polled in the background with prefetch.
func TestShieldPrefetches(t *testing.T) {
	stage.RunWith(t, "", "prefetch", stage.ShieldedSite(blog, ""), stage.Feed(stage.Sample), func(s *stage.Stage) {
		s.Get(blog + "/feed")
		s.Expect(1, "a reader")
		time.Sleep(10*time.Minute + time.Second)
		if polls := len(s.Calls()); polls < 8 || polls > 10 {
			t.Errorf("%d polls in ten minutes", polls)
		}
		s.Get(blog + "/feed")
		s.Expect(0, "a reader of what is fresh")
	})
}
