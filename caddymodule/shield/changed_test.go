// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package shield

import (
	"strings"
	"testing"
	"time"

	"github.com/feedpollard/pollard/caddymodule/internal/stage"
)

// A changed origin block is another key: its feeds start without a version, and until a poll is good the site itself
// answers.
func TestChangedBlock(t *testing.T) {
	t.Setenv("POLLARD_TEST_PASSWORD", "old")
	site := func(block string) string {
		return blog + " {\nbind void/site\nfeed_shield {\norigin {\n" + block + "\n}\njitter 0\n}\n}\n"
	}
	const (
		first  = "backend {env.POLLARD_TEST_PASSWORD}"
		second = "header X-Edited yes\nbackend {env.POLLARD_TEST_PASSWORD}"
		third  = "header X-Edited twice\nbackend {env.POLLARD_TEST_PASSWORD}"
	)
	old := stage.Feed(stage.FeedNamed("old"), "ETag", `"1"`, "Last-Modified", "Sat, 01 Jan 2000 00:00:00 GMT")
	fresh := stage.Feed(stage.FeedNamed("new"), "ETag", `"1"`)
	down := stage.Plain(502, "down")
	edit := func(s *stage.Stage) { s.Load(site(second)) }
	restart := func(s *stage.Stage) {
		s.Stop()
		s.Load(site(second))
	}
	rotate := func(s *stage.Stage) {
		t.Setenv("POLLARD_TEST_PASSWORD", "other")
		s.Load(site(first))
	}
	twice := func(s *stage.Stage) {
		s.Load(site(second))
		s.Load(site(third))
	}
	for _, tt := range []struct {
		name   string
		before stage.Answer // after the first good one; nil: none
		change func(*stage.Stage)
		after  stage.Answer
		polls  int // by the first request after it
		status int
		part   string
		cache  string       // part of Cache-Status; empty: the site itself answers
		then   stage.Answer // five minutes later; nil: none
		want   int
		later  string
	}{
		{"up", nil, edit, fresh, 1, 200, "new", "fwd=miss; fwd-status=200; stored; ttl", down, 200, "new"},
		{"up, after a restart", nil, restart, fresh, 1, 200, "new", "fwd=miss; fwd-status=200; stored; ttl", nil, 0, ""},
		{"another password", nil, rotate, fresh, 1, 200, "new", "fwd=miss; fwd-status=200; stored; ttl", nil, 0, ""},
		{"down", nil, edit, down, 2, 502, "down", "", fresh, 200, "new"},
		{"down, after a restart", nil, restart, down, 2, 502, "down", "", down, 502, "down"},
		{"down, another password", nil, rotate, down, 2, 502, "down", "", fresh, 200, "new"},
		{"down, two edits", nil, twice, down, 2, 502, "down", "", stage.Plain(404, "no such feed"), 404, "no such feed"},
		{"busy", nil, edit, stage.Plain(429, "busy", "Retry-After", "60"), 2, 429, "busy", "", fresh, 200, "new"},
		{"gone", nil, edit, stage.Plain(404, "no such feed"), 2, 404, "no such feed", "", down, 502, "down"},
		{"moved", nil, edit, stage.Plain(302, "elsewhere", "Location", "/x"), 2, 302, "elsewhere", "", down, 502, "down"},
		{"a page now", nil, edit, stage.Plain(200, "<!doctype html>page", "Content-Type", "text/html"), 2, 200, "page", "", down, 502, "down"},
		{"paused", stage.Plain(503, "later", "Retry-After", "120"), edit, fresh, 1, 200, "new", "fwd=miss; fwd-status=200; stored; ttl", fresh, 200, "new"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv("POLLARD_TEST_PASSWORD", "old")
			stage.Run(t, site(first), old, func(s *stage.Stage) {
				s.Get(blog + "/feed")
				time.Sleep(2 * time.Minute)
				if tt.before != nil {
					s.Now(tt.before)
					s.Get(blog + "/feed")
				}
				s.Calls()
				tt.change(s)
				s.Now(tt.after)
				w := s.Get(blog + "/feed")
				stage.WantBody(t, "at first", w, tt.status, tt.part)
				if got := w.Header().Get("Cache-Status"); !strings.Contains(got, tt.cache) || tt.cache == "" && got != "" {
					t.Errorf("Cache-Status %q, want %s", got, tt.cache)
				}
				for _, call := range s.Expect(tt.polls, "at first") {
					if call.Header["If-None-Match"] != nil || call.Header["If-Modified-Since"] != nil {
						t.Errorf("validators of the block before were sent: %v", call.Header)
					}
				}
				if tt.then != nil {
					time.Sleep(11 * time.Minute)
					s.Now(tt.then)
					stage.WantBody(t, "later", s.Get(blog+"/feed"), tt.want, tt.later)
				}
			})
		})
	}
}
