// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"net/http"
	neturl "net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// Whatever becomes of the origin, readers keep the last good version. And while
// nothing is stored, they see what the origin says.
func TestShieldOutage(t *testing.T) {
	hang := func(w http.ResponseWriter, r *http.Request) error {
		<-r.Context().Done()
		return r.Context().Err()
	}
	deaf := func(w http.ResponseWriter, r *http.Request) error { // does not notice that nobody waits
		time.Sleep(10 * time.Minute)
		return plain(200, "late")(w, r)
	}
	inTheMiddle := func(end func() error) answer {
		return func(w http.ResponseWriter, r *http.Request) error {
			w.Header().Set("Content-Type", "application/rss+xml")
			_, _ = w.Write([]byte(feedNamed("new")[:90]))
			_ = http.NewResponseController(w).Flush()
			return end()
		}
	}
	for name, outage := range map[string]answer{
		"500":                      plain(500, "sorry"),
		"500 no-store":             plain(500, "sorry", "Cache-Control", "no-cache, must-revalidate, max-age=0, no-store, private"),
		"404":                      plain(404, "no such page"),
		"404 of WordPress":         plain(404, "no such page", "Cache-Control", "no-cache, must-revalidate, max-age=0, no-store, private"),
		"410":                      plain(410, "gone"),
		"403":                      plain(403, "forbidden"),
		"401":                      plain(401, "who are you?", "WWW-Authenticate", "Basic"),
		"429":                      plain(429, "slow down"),
		"429 with a time":          plain(429, "slow down", "Retry-After", "60"),
		"503":                      plain(503, "later", "Retry-After", "60"),
		"HTML error page":          plain(200, "<!DOCTYPE html><p>Error establishing a database connection", "Content-Type", "text/html"),
		"HTML without a doctype":   plain(200, "<br /><b>Fatal error</b>: Allowed memory size exhausted", "Content-Type", "text/html"),
		"error in front of a feed": plain(200, "<br />\n<b>Warning</b>: foo in bar.php\n"+feedNamed("new"), "Content-Type", "text/html"),
		"empty":                    plain(200, ""),
		"no content":               plain(204, ""),
		"partial":                  plain(206, feedNamed("new"), "Content-Range", "bytes 0-10/100"),
		"no feed":                  plain(200, `{"a": 1}`, "Content-Type", "application/json"),
		"shorter than it says":     plain(200, feedNamed("new"), "Content-Length", "100000"),
		"broken coding":            plain(200, "\x1f\x8b\x08\x00\x00\x00\x00\x00", "Content-Encoding", "gzip"),
		"unknown coding":           plain(200, feedNamed("new"), "Content-Encoding", "rot13"),
		"hangs":                    hang,
		"deaf":                     deaf,
		"hangs in the body":        inTheMiddle(func() error { time.Sleep(time.Hour); return nil }),
		"aborts in the body":       inTheMiddle(func() error { panic(http.ErrAbortHandler) }),
		"panics in the body":       inTheMiddle(func() error { panic("oh") }),
		"fails in the body":        inTheMiddle(func() error { return errors.New("oh") }),
		"cut in the body":          inTheMiddle(func() error { return nil }),
		"panics":                   func(http.ResponseWriter, *http.Request) error { panic("oh") },
		"error":                    func(http.ResponseWriter, *http.Request) error { return errors.New("oh") },
		"Caddy's 502": func(http.ResponseWriter, *http.Request) error {
			return caddyhttp.Error(502, errors.New("no upstreams available"))
		},
		"Caddy's 404": func(http.ResponseWriter, *http.Request) error { return caddyhttp.Error(404, errors.New("no file")) },
	} {
		t.Run(name, func(t *testing.T) {
			onStage(t, shieldedSite(blog, ""), feed(feedNamed("good")), func(s *stage) {
				first := s.get(blog + "/feed")
				wantBody(t, "at first", first, 200, "good")
				s.now(outage)
				for end := time.Now().Add(3 * time.Hour); time.Now().Before(end); time.Sleep(3 * time.Minute) {
					w := s.get(blog + "/feed")
					wantBody(t, "during the outage", w, 200, "good")
					if w.Header().Get("Etag") != first.Header().Get("Etag") {
						t.Fatal("the ETag has changed")
					}
				}
				// Back-off is capped at ten minutes, but for what the origin asks for itself.
				if polls := len(s.calls()); polls < 12 || polls > 36 {
					t.Errorf("%d polls in three hours of failures", polls)
				}
				s.now(feed(feedNamed("better")))
				time.Sleep(11 * time.Minute) // a poll of the outage may still hang
				for range 4 {
					s.get(blog + "/feed")
					time.Sleep(11 * time.Minute)
				}
				wantBody(t, "afterwards", s.get(blog+"/feed"), 200, "better")
			})
		})
	}
}

// A hanging backend costs a reader who could have the last version some seconds.
func TestShieldHangingBackend(t *testing.T) {
	hang := func(_ http.ResponseWriter, r *http.Request) error {
		<-r.Context().Done()
		return r.Context().Err()
	}
	onStage(t, shieldedSite(blog, ""), feed(feedNamed("good")), func(s *stage) {
		s.get(blog + "/feed")
		s.now(hang)
		time.Sleep(2 * time.Minute)
		began := time.Now()
		wantBody(t, "during the outage", s.get(blog+"/feed"), 200, "good")
		if took := time.Since(began); took > 3*time.Second {
			t.Errorf("a reader waited for %v", took)
		}
	})
}

// Nothing stays behind of polls that are broken off: goroutines that were left would
// fail the bubble.
func TestShieldStopsInTheMiddle(t *testing.T) {
	endless := func(w http.ResponseWriter, r *http.Request) error {
		for {
			if _, err := fmt.Fprint(w, strings.Repeat(" ", 1000)); err != nil {
				return err
			}
			time.Sleep(time.Second)
		}
	}
	onStage(t, shieldedSite(blog, ""), endless, func(s *stage) {
		r := request("GET", blog+"/feed")
		ctx, leave := context.WithTimeout(r.Context(), time.Second)
		defer leave()
		s.send(r.WithContext(ctx))
	})
}

// A reload in the middle of a poll: the poll comes to its end, and it was the one of
// the interval.
func TestShieldReload(t *testing.T) {
	slow := func(w http.ResponseWriter, r *http.Request) error {
		select {
		case <-time.After(10 * time.Second):
			return feed(feedNamed("slow"))(w, r)
		case <-r.Context().Done():
			return r.Context().Err()
		}
	}
	onStage(t, shieldedSite(blog, ""), slow, func(s *stage) {
		done := make(chan struct{})
		go func() {
			defer close(done)
			wantBody(t, "who asked before the reload", s.get(blog+"/feed"), 200, "slow")
		}()
		time.Sleep(5 * time.Second)
		s.load(shieldedSite(blog, "{\n\t\tmin_interval 2m\n\t\tdefault_interval 2m\n\t}"))
		began := time.Now()
		wantBody(t, "who asked after it", s.get(blog+"/feed"), 200, "slow")
		if took := time.Since(began); took != 5*time.Second {
			t.Errorf("who asked after the reload waited for %v", took)
		}
		<-done
		s.expect(1, "a poll over a reload")
		// The decision was made under the rules that the poll began with; the next one is
		// made under those that are in force.
		time.Sleep(70 * time.Second)
		s.get(blog + "/feed")
		s.expect(1, "the first poll after the reload")
		time.Sleep(100 * time.Second)
		s.get(blog + "/feed")
		s.expect(0, "within the new interval")
		s.load("http://other.test {\n\tbind void/site\n\tbackend\n}\n")
		s.load(shieldedSite(blog, ""))
		wantBody(t, "after two more reloads", s.get(blog+"/feed"), 200, "slow")
	})
}

// Codings of the origin are undone, and feeds in disguise are feeds.
func TestShieldReadsFeeds(t *testing.T) {
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	_, _ = z.Write([]byte(feedNamed("hidden")))
	_ = z.Close()
	for name, tt := range map[string]struct {
		answer answer
		kind   string
	}{
		"gzip":             {plain(200, zipped.String(), "Content-Encoding", "gzip", "Content-Type", "application/rss+xml", "ETag", `"a-gzip"`), "application/rss+xml"},
		"text/html":        {plain(200, feedNamed("hidden"), "Content-Type", "text/html; charset=utf-8"), "application/rss+xml; charset=utf-8"},
		"no type":          {plain(200, feedNamed("hidden")), "application/rss+xml"},
		"bytes":            {plain(200, feedNamed("hidden"), "Content-Type", "application/octet-stream"), "application/rss+xml"},
		"a comment before": {plain(200, "<!-- hello -->\n"+strings.TrimPrefix(feedNamed("hidden"), `<?xml version="1.0"?>`), "Content-Type", "text/xml"), "text/xml"},
		"in pieces": {func(w http.ResponseWriter, _ *http.Request) error {
			for _, c := range []byte(feedNamed("hidden")) {
				_, _ = w.Write([]byte{c})
			}
			return nil
		}, "application/rss+xml"},
	} {
		t.Run(name, func(t *testing.T) {
			onStage(t, shieldedSite(blog, ""), tt.answer, func(s *stage) {
				w := s.get(blog + "/feed")
				wantBody(t, "the feed", w, 200, "hidden")
				if got := w.Header().Get("Content-Type"); got != tt.kind {
					t.Errorf("its type is %q, want %q", got, tt.kind)
				}
				s.expect(1, "the feed")
			})
		})
	}
}

// What a publish hook asks for happens with the next request: whatever the hints,
// the skip windows and the interval say, and also while a poll is under way.
func TestShieldRefresh(t *testing.T) {
	named := func(title string) string { // bubbles begin on a Saturday
		skip := "<ttl>600</ttl><skipDays><day>Saturday</day></skipDays><link>"
		return strings.Replace(feedNamed(title), "<link>", skip, 1)
	}
	varying := func(title string) answer {
		return func(w http.ResponseWriter, r *http.Request) error {
			time.Sleep(time.Second)
			return feed(named(title+r.Header.Get("Accept-Language")), "Vary", "Accept-Language")(w, r)
		}
	}
	onStage(t, shieldedSite(blog, ""), varying("first"), func(s *stage) {
		refresh := func(url string) int {
			code, _ := call(t, "POST", "/pollard/refresh?url="+neturl.QueryEscape(url))
			return code
		}
		both := func(want string, polls int) {
			t.Helper()
			wantBody(t, "the plain feed", s.get(blog+"/feed?a=b"), 200, want+"<")
			wantBody(t, "a variant", s.get(blog+"/feed?a=b", "Accept-Language", "de"), 200, want+"de<")
			s.expect(polls, want)
		}
		both("first", 2)
		time.Sleep(time.Minute)
		s.now(varying("second"))
		both("first", 0)
		for _, url := range []string{"http://blog.test/feed?a=b", "https://blog.test/feed?a=b", "HTTP://BLOG.test:80/feed?a=b#x"} {
			if code := refresh(url); code != 200 {
				t.Errorf("refresh of %s: %d", url, code)
			}
		}
		both("second", 2)
		both("second", 0)
		if code := refresh("http://blog.test/other"); code != 404 {
			t.Errorf("refresh of what nobody knows: %d", code)
		}
		// While a poll is under way, which sees the old feed.
		refresh("http://blog.test/feed?a=b")
		s.now(varying("third"))
		go s.get(blog + "/feed?a=b")
		time.Sleep(500 * time.Millisecond)
		s.now(varying("fourth"))
		refresh("http://blog.test/feed?a=b")
		time.Sleep(time.Minute)
		synctest.Wait()
		s.calls()
		both("fourth", 2)

		// The other verbs of the admin API know the feed by its URL as well.
		for _, method := range []string{"GET", "DELETE"} {
			if code, text := call(t, method, "/pollard/feeds?url="+neturl.QueryEscape("https://blog.test/feed?a=b")); code >= 300 {
				t.Errorf("%s: %d %s", method, code, text)
			}
		}
		both("fourth", 2)
	})
}
