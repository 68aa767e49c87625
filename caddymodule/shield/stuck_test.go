// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package shield

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/feedpollard/pollard/caddymodule/internal/stage"
	"github.com/feedpollard/pollard/internal/origintest"
)

// WordPress's ETag is of the newest change among public posts. If a post is taken down, the ETag stays,
// and so do 304s. A publish ping, a refresh, or an hour of 304s makes the next poll unconditional.
func TestPostTakenDown(t *testing.T) {
	wordPress := func(title string) stage.Answer {
		return func(w http.ResponseWriter, r *http.Request) error {
			return stage.Feed(stage.FeedNamed(title), "ETag", `"newest"`)(w, r)
		}
	}
	failing := stage.Plain(500, "sorry")
	const every = "/feed/* {\njitter 0\nping /feed/ping\nstatus /feed/status\n}"
	for _, tt := range []struct {
		name string
		tell func(s *stage.Stage) int
		want int
		wait time.Duration // until readers get it
	}{
		{"a ping", func(s *stage.Stage) int { return sendPing(s, aboutFeed) }, 204, 0},
		{"a ping for the home page", func(s *stage.Stage) int {
			return sendPing(s, "hub.mode=publish&hub.url=https%3A%2F%2Fblog.test%2F")
		}, 204, 0},
		{"a ping soon after a poll", func(s *stage.Stage) int {
			s.Get(blog + "/feed/")
			return sendPing(s, aboutFeed)
		}, 204, 61 * time.Second},
		{"a ping while the site fails", func(s *stage.Stage) int {
			s.Now(failing)
			s.Get(blog + "/feed/")
			defer s.Now(wordPress("taken down"))
			time.Sleep(90 * time.Second)
			return sendPing(s, aboutFeed)
		}, 204, 10 * time.Minute},
		{"the admin API", func(s *stage.Stage) int {
			status, _ := stage.Call(s.T, "POST", "/pollard/refresh?url="+blog+"/feed/")
			return status
		}, 200, 0},
		{"the button", func(s *stage.Stage) int {
			return press(s).Code
		}, 303, 0},
		{"nothing", func(*stage.Stage) int { return 0 }, 0, 61 * time.Minute},
	} {
		t.Run(tt.name, func(t *testing.T) {
			stage.Run(t, stage.ShieldedSite(blog, every), wordPress("public"), func(s *stage.Stage) {
				s.Get(blog + "/feed/")
				time.Sleep(2 * time.Minute)
				s.Now(wordPress("taken down"))
				stage.WantBody(t, "a 304", s.Get(blog+"/feed/"), 200, "public")
				time.Sleep(2 * time.Minute)
				if got := tt.tell(s); got != tt.want {
					t.Errorf("%s: %d, want %d", tt.name, got, tt.want)
				}
				for end := time.Now().Add(tt.wait); time.Now().Before(end); time.Sleep(time.Minute) {
					if tt.want == 0 {
						s.Get(blog + "/feed/") // polls go on
					}
				}
				stage.WantBody(t, tt.name, s.Get(blog+"/feed/"), 200, "taken down")
			})
		})
	}
}

// press presses the button of the feed's page.
func press(s *stage.Stage) *httptest.ResponseRecorder {
	form := "url=" + blog + "/feed/"
	r := stage.Request("POST", blog+"/feed/status/refresh", "Content-Type", "application/x-www-form-urlencoded")
	r.RemoteAddr, r.Body, r.ContentLength = stage.Home+":1234", io.NopCloser(strings.NewReader(form)), int64(len(form))
	return s.Send(r)
}

// The button of the status page polls no feed before min_interval has passed.
func TestButtonWaits(t *testing.T) {
	stage.Run(t, stage.ShieldedSite(blog, "/feed/* {\nstatus /feed/status\n}"), stage.Feed(stage.Sample), func(s *stage.Stage) {
		s.Get(blog + "/feed/")
		s.Calls()
		for range 3 {
			press(s)
		}
		s.Expect(0, "within min_interval")
		time.Sleep(time.Minute + time.Second)
		press(s)
		press(s)
		s.Expect(1, "after it")
	})
}

// The only post is withdrawn. After a publish ping, the next answer is the empty feed.
func TestOnlyPostIsWithdrawn(t *testing.T) {
	stage.Run(t, stage.ShieldedSite(blog, "/feed/* {\njitter 0\nping /feed/ping\n}"), stage.Feed(origintest.Feed(1, ""), "ETag", `"1"`), func(s *stage.Stage) {
		s.Get(blog + "/feed/")
		time.Sleep(2 * time.Minute)
		stage.WantBody(t, "before", s.Get(blog+"/feed/"), 200, "Entry 1")
		s.Now(stage.Feed(origintest.Feed(0, ""), "ETag", `"2"`))
		time.Sleep(2 * time.Minute)
		if code := sendPing(s, aboutFeed); code != 204 {
			t.Fatalf("a ping got %d", code)
		}
		if got := s.Get(blog + "/feed/"); got.Code != 200 || got.Body.String() != origintest.Feed(0, "") {
			t.Errorf("after the ping: %d %q", got.Code, got.Body)
		}
	})
}
