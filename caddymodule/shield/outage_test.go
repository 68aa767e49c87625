// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package shield

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	neturl "net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/feedpollard/pollard/caddymodule/internal/stage"
	"github.com/feedpollard/pollard/internal/origintest"
)

// Whatever the origin does, readers get the last good version. While there is none, they get the
// origin's responses.
func TestShieldOutage(t *testing.T) {
	hang := func(w http.ResponseWriter, r *http.Request) error {
		<-r.Context().Done()
		return r.Context().Err()
	}
	deaf := func(w http.ResponseWriter, r *http.Request) error { // ignores its context
		time.Sleep(10 * time.Minute)
		return stage.Plain(200, "late")(w, r)
	}
	inTheMiddle := func(end func() error) stage.Answer {
		return func(w http.ResponseWriter, r *http.Request) error {
			w.Header().Set("Content-Type", "application/rss+xml")
			_, _ = w.Write([]byte(stage.FeedNamed("new")[:90]))
			_ = http.NewResponseController(w).Flush()
			return end()
		}
	}
	for name, outage := range map[string]stage.Answer{
		"500":                    stage.Plain(500, "sorry"),
		"500 no-store":           stage.Plain(500, "sorry", "Cache-Control", "no-cache, must-revalidate, max-age=0, no-store, private"),
		"404":                    stage.Plain(404, "no such page"),
		"404 of WordPress":       stage.Plain(404, "no such page", "Cache-Control", "no-cache, must-revalidate, max-age=0, no-store, private"),
		"403":                    stage.Plain(403, "forbidden"),
		"429":                    stage.Plain(429, "slow down"),
		"429 with a time":        stage.Plain(429, "slow down", "Retry-After", "60"),
		"503":                    stage.Plain(503, "later", "Retry-After", "60"),
		"HTML error page":        stage.Plain(200, "<!DOCTYPE html><p>Error establishing a database connection", "Content-Type", "text/html"),
		"HTML without a doctype": stage.Plain(200, "<br /><b>Fatal error</b>: Allowed memory size exhausted", "Content-Type", "text/html"),
		"empty":                  stage.Plain(200, ""),
		"no content":             stage.Plain(204, ""),
		"partial":                stage.Plain(206, stage.FeedNamed("new"), "Content-Range", "bytes 0-10/100"),
		"no feed":                stage.Plain(200, `{"a": 1}`, "Content-Type", "application/json"),
		"shorter than it says":   stage.Plain(200, stage.FeedNamed("new")[:120], "Content-Length", "100000"),
		"broken coding":          stage.Plain(200, "\x1f\x8b\x08\x00\x00\x00\x00\x00", "Content-Encoding", "gzip"),
		"unknown coding":         stage.Plain(200, "\x00\x01\xff\xfe", "Content-Encoding", "rot13"),
		"hangs":                  hang,
		"deaf":                   deaf,
		"hangs in the body":      inTheMiddle(func() error { time.Sleep(time.Hour); return nil }),
		"aborts in the body":     inTheMiddle(func() error { panic(http.ErrAbortHandler) }),
		"panics in the body":     inTheMiddle(func() error { panic("oh") }),
		"fails in the body":      inTheMiddle(func() error { return errors.New("oh") }),
		"cut in the body":        inTheMiddle(func() error { return nil }),
		"panics":                 func(http.ResponseWriter, *http.Request) error { panic("oh") },
		"error":                  func(http.ResponseWriter, *http.Request) error { return errors.New("oh") },
		"Caddy's 502": func(http.ResponseWriter, *http.Request) error {
			return caddyhttp.Error(502, errors.New("no upstreams available"))
		},
		"Caddy's 404": func(http.ResponseWriter, *http.Request) error { return caddyhttp.Error(404, errors.New("no file")) },
	} {
		t.Run(name, func(t *testing.T) {
			stage.Run(t, stage.ShieldedSite(blog, ""), stage.Feed(stage.FeedNamed("good")), func(s *stage.Stage) {
				first := s.Get(blog + "/feed")
				stage.WantBody(t, "at first", first, 200, "good")
				s.Now(outage)
				for end := time.Now().Add(3 * time.Hour); time.Now().Before(end); time.Sleep(3 * time.Minute) {
					began := time.Now()
					w := s.Get(blog + "/feed")
					stage.WantBody(t, "during the outage", w, 200, "good")
					if took := time.Since(began); took > 3*time.Second {
						t.Errorf("a reader waited for %v", took)
					}
					if w.Header().Get("Etag") != first.Header().Get("Etag") {
						t.Fatal("the ETag has changed")
					}
				}
				// The backoff is capped at ten minutes, unless the origin asks for more.
				if polls := len(s.Calls()); polls < 12 || polls > 36 {
					t.Errorf("%d polls in three hours of failures", polls)
				}
				s.Now(stage.Feed(stage.FeedNamed("better")))
				time.Sleep(11 * time.Minute) // a poll of the outage may still hang
				for range 4 {
					s.Get(blog + "/feed")
					time.Sleep(11 * time.Minute)
				}
				stage.WantBody(t, "afterwards", s.Get(blog+"/feed"), 200, "better")
			})
		})
	}
}

// A poll continues over a reload, and is the one of its interval.
func TestShieldReload(t *testing.T) {
	slow := func(w http.ResponseWriter, r *http.Request) error {
		body := stage.FeedNamed("slow") // which begins at once
		_, _ = io.WriteString(w, body[:100])
		select {
		case <-time.After(10 * time.Second):
			_, err := io.WriteString(w, body[100:])
			return err
		case <-r.Context().Done():
			return r.Context().Err()
		}
	}
	stage.Run(t, stage.ShieldedSite(blog, ""), slow, func(s *stage.Stage) {
		done := make(chan struct{})
		go func() {
			defer close(done)
			stage.WantBody(t, "who asked before the reload", s.Get(blog+"/feed"), 200, "slow")
		}()
		time.Sleep(5 * time.Second)
		s.Load(stage.ShieldedSite(blog, "{\n\t\tmin_interval 2m\n\t\tdefault_interval 2m\n\t}"))
		began := time.Now()
		stage.WantBody(t, "who asked after it", s.Get(blog+"/feed"), 200, "slow")
		if took := time.Since(began); took != 5*time.Second {
			t.Errorf("who asked after the reload waited for %v", took)
		}
		<-done
		s.Expect(1, "a poll over a reload")
		// The decision was made with the rules at the start of the poll. A new min_interval
		// counts at once, other rules count from the next decision on.
		time.Sleep(70 * time.Second)
		s.Get(blog + "/feed")
		s.Expect(0, "below the floor that was raised")
		time.Sleep(50 * time.Second)
		s.Get(blog + "/feed")
		s.Expect(1, "the first poll after the reload")
		time.Sleep(100 * time.Second)
		s.Get(blog + "/feed")
		s.Expect(0, "within the new interval")
		s.Load("http://other.test {\n\tbind void/site\n\tbackend\n}\n")
		s.Load(stage.ShieldedSite(blog, ""))
		stage.WantBody(t, "after two more reloads", s.Get(blog+"/feed"), 200, "slow")
	})
}

// Content codings are decoded, and mislabelled feeds are feeds.
func TestShieldReadsFeeds(t *testing.T) {
	for name, answer := range map[string]stage.Answer{
		"gzip":      stage.Plain(200, origintest.Encode(stage.FeedNamed("hidden"), "gzip"), "Content-Encoding", "gzip", "Content-Type", "application/rss+xml", "ETag", `"a-gzip"`),
		"text/html": stage.Plain(200, stage.FeedNamed("hidden"), "Content-Type", "text/html"),
		"no type":   stage.Plain(200, stage.FeedNamed("hidden")),
		"in pieces": func(w http.ResponseWriter, _ *http.Request) error {
			for _, c := range []byte(stage.FeedNamed("hidden")) {
				_, _ = w.Write([]byte{c})
			}
			return nil
		},
	} {
		stage.Run(t, stage.ShieldedSite(blog, ""), answer, func(s *stage.Stage) {
			stage.WantBody(t, name, s.Get(blog+"/feed"), 200, "hidden")
			s.Expect(1, name)
		})
	}
}

// A refresh by the admin API polls at once, whatever hints, skip windows and interval say, also while
// a poll is in flight.
func TestShieldRefresh(t *testing.T) {
	named := func(title string) string { // bubbles begin on a Saturday
		skip := "<ttl>600</ttl><skipDays><day>Saturday</day></skipDays><link>"
		return strings.Replace(stage.FeedNamed(title), "<link>", skip, 1)
	}
	slow := func(title string) stage.Answer {
		return func(w http.ResponseWriter, r *http.Request) error {
			time.Sleep(time.Second / 2)
			return stage.Feed(named(title))(w, r)
		}
	}
	stage.Run(t, stage.ShieldedSite(blog, "{\ndefault_interval 10m\n}"), slow("first"), func(s *stage.Stage) {
		refresh := func(url string) int {
			code, _ := stage.Call(t, "POST", "/pollard/refresh?url="+neturl.QueryEscape(url))
			return code
		}
		reads := func(want string, polls int) {
			t.Helper()
			stage.WantBody(t, "a reader", s.Get(blog+"/feed?a=b"), 200, want+"<")
			s.Expect(polls, want)
		}
		reads("first", 1)
		time.Sleep(time.Minute)
		s.Now(slow("second"))
		reads("first", 0)
		for _, url := range []string{"http://blog.test/feed?a=b", "https://blog.test/feed?a=b", "HTTP://BLOG.test:80/feed?a=b#x"} {
			if code := refresh(url); code != 200 {
				t.Errorf("refresh of %s: %d", url, code)
			}
		}
		s.Expect(3, "three times")
		reads("second", 0)
		// While a poll is in flight, which gets the old feed.
		refresh("http://blog.test/feed?a=b")
		s.Now(slow("third"))
		go s.Get(blog + "/feed?a=b")
		time.Sleep(250 * time.Millisecond)
		s.Now(slow("fourth"))
		refresh("http://blog.test/feed?a=b")
		time.Sleep(time.Minute)
		synctest.Wait()
		s.Calls()
		reads("fourth", 0)
	})
}

// A program that writes a warning in front of its feed, or a script behind it, still has a feed. Readers of
// the shield get it as readers of the site would.
func TestWarningAroundFeed(t *testing.T) {
	for _, around := range []string{"<br />\n<b>Warning</b>: foo in bar.php\n%s", "Notice: foo\n%s", "<script>foo</script>\n%s", "%s<script>foo</script>", "%s\nWarning: foo"} {
		stage.Run(t, stage.ShieldedSite(blog, ""), stage.Feed(stage.FeedNamed("good")), func(s *stage.Stage) {
			s.Get(blog + "/feed")
			body := fmt.Sprintf(around, stage.FeedNamed("new"))
			s.Now(stage.Plain(200, body, "Content-Type", "text/html"))
			time.Sleep(2 * time.Minute)
			if got := s.Get(blog + "/feed"); got.Code != 200 || got.Body.String() != body {
				t.Errorf("%q: %d %q", around, got.Code, got.Body)
			}
			time.Sleep(30 * time.Second)
			s.Get(blog + "/feed")
			s.Expect(2, around)
		})
	}
}
