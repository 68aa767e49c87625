// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package shield

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/feedpollard/pollard/caddymodule/internal/stage"
)

// sendPing sends a publish ping and returns its status.
func sendPing(s *stage.Stage, form string, header ...string) int {
	r := stage.Request("POST", blog+"/feed/ping", append([]string{"Content-Type", "application/x-www-form-urlencoded"}, header...)...)
	r.Body, r.ContentLength = io.NopCloser(strings.NewReader(form)), int64(len(form))
	return s.Send(r).Code
}

// pinged is a shield with pings, whose feeds change after an hour at the earliest.
func pinged(lines string) string {
	return stage.ShieldedSite(blog, "/feed/* {\njitter 0\nping /feed/ping\nmin_interval 2m\ndefault_interval 1h\n"+lines+"\n}")
}

const aboutFeed = "hub.mode=publish&hub.url=http%3A%2F%2Fblog.test%2Ffeed%2F"

// After a publish ping the feed is polled, as soon as min_interval has passed since the last poll.
func TestPing(t *testing.T) {
	stage.Run(t, pinged("query keep page"), stage.Feed(stage.FeedNamed("first")), func(s *stage.Stage) {
		targets := []string{"/feed/", "/feed/?page=2", "/feed/other/"}
		reads := func(title string, polls int) {
			t.Helper()
			for _, target := range targets {
				stage.WantBody(t, target, s.Get(blog+target), 200, title)
			}
			s.Expect(polls, title)
		}
		reads("first", 3)
		time.Sleep(10 * time.Minute)
		s.Now(stage.Feed(stage.FeedNamed("second")))
		reads("first", 0)
		// As the WebSub plugin of WordPress sends it, with feeds that no reader has asked for.
		form := "hub.mode=publish&hub.url=https%3A%2F%2Fblog.test%2Ffeed%2F&hub.url=https%3A%2F%2Fblog.test%2Ffeed%2Fother%2F&hub.url=https%3A%2F%2Fblog.test%2Ffeed%2Fatom%2F&hub.url=https%3A%2F%2Fother.test%2Ffeed%2F"
		if code := sendPing(s, form, "User-Agent", "WordPress/6.8; https://blog.test; PubSubHubbub/WebSub"); code != 204 {
			t.Errorf("a ping got %d", code)
		}
		synctest.Wait()
		s.Expect(3, "pings alone")
		reads("second", 0)
		// A ping soon after a poll counts when min_interval has passed, once.
		s.Now(stage.Feed(stage.FeedNamed("third")))
		time.Sleep(30 * time.Second)
		for range 1000 {
			if code := sendPing(s, "hub.mode=publish&hub.topic=http%3A%2F%2Fblog.test%2Ffeed%2F"); code != 204 {
				t.Fatalf("a ping got %d", code)
			}
		}
		reads("second", 0)
		time.Sleep(91 * time.Second)
		synctest.Wait()
		targets = targets[:2]
		reads("third", 2)
		time.Sleep(30 * time.Minute)
		reads("third", 0)
		// So does one while a poll is under way, which may bring the old feed.
		slow := func(w http.ResponseWriter, r *http.Request) error {
			time.Sleep(10 * time.Second)
			return stage.Feed(stage.FeedNamed("third"))(w, r)
		}
		time.Sleep(time.Hour)
		s.Now(slow)
		go s.Get(blog + "/feed/")
		time.Sleep(5 * time.Second)
		sendPing(s, aboutFeed)
		s.Now(stage.Feed(stage.FeedNamed("fourth")))
		time.Sleep(3 * time.Minute)
		stage.WantBody(t, "after the poll", s.Get(blog+"/feed/"), 200, "fourth")
	})
}

// A ping names a feed in any spelling of its path: WordPress escapes in lower case, and many readers in upper case.
func TestPingSpelling(t *testing.T) {
	stage.Run(t, pinged(""), stage.Feed(stage.FeedNamed("first")), func(s *stage.Stage) {
		targets := []string{"/feed/%e8%aa%9e/", "/feed/%E8%AA%9E/", "/feed/100%25/"}
		for _, name := range []string{"%25e8%25aa%259e", "%25E8%25AA%259E", "%E8%AA%9E"} {
			for _, target := range targets {
				s.Get(blog + target)
			}
			time.Sleep(10 * time.Minute)
			s.Now(stage.Feed(stage.FeedNamed(name)))
			if code := sendPing(s, "hub.mode=publish&hub.url=http%3A%2F%2Fblog.test%2Ffeed%2F"+name+"%2F"); code != 204 {
				t.Errorf("%s: a ping got %d", name, code)
			}
			for _, target := range targets[:2] {
				stage.WantBody(t, name+": "+target, s.Get(blog+target), 200, name)
			}
			time.Sleep(10 * time.Minute)
		}
	})
}

// A ping does not shorten what the origin has asked for, nor back-off. After a restart it finds its feeds.
func TestPingWaitsForTheOrigin(t *testing.T) {
	sites := pinged("")
	for name, answer := range map[string]stage.Answer{
		"Retry-After": stage.Plain(503, "later", "Retry-After", "3000"),
		"back-off":    stage.Plain(500, "sorry"),
	} {
		stage.Run(t, sites, stage.Feed(stage.FeedNamed("first")), func(s *stage.Stage) {
			s.Get(blog + "/feed/")
			time.Sleep(61 * time.Minute)
			s.Now(answer)
			stage.WantBody(t, name, s.Get(blog+"/feed/"), 200, "first")
			s.Expect(2, name)
			time.Sleep(3 * time.Minute)
			if code := sendPing(s, aboutFeed); code != 204 {
				t.Errorf("%s: a ping got %d", name, code)
			}
			s.Get(blog + "/feed/")
			s.Expect(0, name)
			s.Now(stage.Feed(stage.FeedNamed("second")))
			time.Sleep(time.Hour)
			stage.WantBody(t, name, s.Get(blog+"/feed/"), 200, "second")
			s.Calls()
			time.Sleep(10 * time.Minute)
			s.Stop()
			s.Load(sites)
			s.Now(stage.Feed(stage.FeedNamed("third")))
			if code := sendPing(s, aboutFeed); code != 204 {
				t.Errorf("a ping after a restart got %d", code)
			}
			synctest.Wait()
			stage.WantBody(t, "after a restart", s.Get(blog+"/feed/"), 200, "third")
		})
	}
}

// Other requests than publish pings are refused, and cost the origin nothing.
func TestPingRefused(t *testing.T) {
	stage.Run(t, pinged(""), stage.Feed(stage.Sample), func(s *stage.Stage) {
		s.Get(blog + "/feed/")
		time.Sleep(10 * time.Minute)
		s.Calls()
		for _, tt := range []struct {
			form   string
			header []string
			status int
		}{
			{aboutFeed, []string{"Origin", "https://evil.test"}, 403},
			{`{"hub.mode": "publish"}`, []string{"Content-Type", "application/json"}, 415},
			{"hub.url=http%3A%2F%2Fblog.test%2Ffeed%2F", nil, 400},
			{"hub.mode=publish", nil, 400},
			{"hub.mode=publish&hub.url=%zz", nil, 400},
			{"hub.mode=listen&hub.url=x", nil, 400},
			{"hub.mode=subscribe&hub.callback=https%3A%2F%2Freader.test%2F&hub.topic=http%3A%2F%2Fblog.test%2Ffeed%2F", nil, 501},
			{"hub.mode=publish&hub.url=http%3A%2F%2Fblog.test%2Fother%2F&hub.url=nonsense", nil, 404},
			{"hub.mode=publish&hub.url=http%3A%2F%2Fother.test%2Ffeed%2F", nil, 404},
			{"hub.mode=publish" + strings.Repeat("&hub.url=x", 1000), nil, 413},
			{"hub.mode=publish&hub.url=" + strings.Repeat("x", 1<<20), nil, 413},
		} {
			if code := sendPing(s, tt.form, tt.header...); code != tt.status {
				t.Errorf("%.80s %v got %d, want %d", tt.form, tt.header, code, tt.status)
			}
			s.Get(blog + "/feed/")
			s.Expect(0, fmt.Sprintf("%.80s", tt.form))
		}
		if w := s.Get(blog + "/feed/ping?hub.mode=publish"); w.Code != 405 || w.Header().Get("Allow") != "POST" {
			t.Errorf("GET: %d %v", w.Code, w.Header())
		}
		s.Load(stage.ShieldedSite(blog, ""))
		if code := sendPing(s, aboutFeed); code == 204 {
			t.Error("a ping without the line was taken")
		}
	})
}
