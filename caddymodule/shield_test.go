// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

const blog = "http://blog.test"

// One poll per interval, whoever asks, and nothing of whoever asks in it.
func TestShieldAsksOnce(t *testing.T) {
	slow := func(w http.ResponseWriter, r *http.Request) error {
		time.Sleep(time.Second)
		return feed(feedNamed("first"), "ETag", `"v1"`, "Last-Modified", "Sat, 01 Jan 2000 00:00:00 GMT")(w, r)
	}
	onStage(t, shieldedSite(blog, "/feed/* {\n\t\tjitter 0\n\t}"), slow, func(s *stage) {
		const secret = "a-readers-own"
		var crowd sync.WaitGroup
		for i := range 100 {
			crowd.Go(func() {
				r := request("GET", blog+"/feed/?a=1", "Cookie", secret, "Referer", "https://"+secret+"/", "User-Agent", secret,
					"Accept-Language", secret, "X-Forwarded-For", secret, "Forwarded", secret, "Range", "bytes=0-1", "X-Token", secret,
					"If-None-Match", `"`+secret+`"`, "From", secret, "Cache-Control", "no-cache", "Pragma", "no-cache")
				ctx, leave := context.WithCancel(r.Context())
				defer leave()
				if i%2 == 0 {
					time.AfterFunc(500*time.Millisecond, leave)
				}
				w := s.send(r.WithContext(ctx))
				if i%2 == 1 {
					wantBody(t, "one of a hundred", w, 200, "first")
				}
			})
		}
		crowd.Wait()
		poll := s.expect(1, "a hundred readers")[0]
		header := fmt.Sprint(poll.Header)
		if strings.Contains(header, secret) || poll.Header["Range"] != nil || poll.Header["X-Forwarded-For"] != nil {
			t.Errorf("a poll has something of a reader: %s", header)
		}
		if poll.RemoteAddr != nobody || poll.Host != "blog.test" || poll.Method != "GET" {
			t.Errorf("a poll came from %s to %s with %s", poll.RemoteAddr, poll.Host, poll.Method)
		}
		if client := clientOf(poll.Request); client.String() != "0.0.0.0" {
			t.Errorf("the client of a poll is %s", client)
		}
		if got := poll.URL.String() + " " + poll.RequestURI; got != "/feed/?a=1 /feed/?a=1" {
			t.Errorf("the poll was for %s", got)
		}
		if agent := poll.UserAgent(); !strings.HasPrefix(agent, "Pollard") || !strings.Contains(agent, "https://example.com/about") {
			t.Errorf("the User-Agent of a poll is %q", agent)
		}

		w := s.get(blog + "/feed/?a=1")
		wantBody(t, "a hit", w, 200, "first")
		for name, want := range map[string]string{
			"Cache-Control": "max-age=60", "Vary": "Accept-Encoding", "Content-Type": "application/rss+xml", "Content-Security-Policy": "",
			"Last-Modified": "Sat, 01 Jan 2000 00:00:00 GMT",
		} {
			if got := w.Header().Get(name); got != want {
				t.Errorf("%s: %q, want %q", name, got, want)
			}
		}
		tag := w.Header().Get("Etag")
		for _, condition := range [][2]string{{"If-None-Match", tag}, {"If-None-Match", `"v1"`}, {"If-Modified-Since", "Sat, 01 Jan 2000 00:00:00 GMT"}} {
			if w := s.get(blog+"/feed/?a=1", condition[0], condition[1]); w.Code != 304 {
				t.Errorf("%s: %s got %d", condition[0], condition[1], w.Code)
			}
		}
		if w := s.send(request("HEAD", blog+"/feed/?a=1")); w.Code != 200 || w.Body.Len() > 0 || w.Header().Get("Content-Length") == "" {
			t.Errorf("HEAD: %d, %d bytes", w.Code, w.Body.Len())
		}
		s.expect(0, "within the interval")

		time.Sleep(time.Minute)
		wantBody(t, "after the interval", s.get(blog+"/feed/?a=1"), 200, "first")
		again := s.expect(1, "after the interval")[0]
		if again.Header.Get("If-None-Match") != `"v1"` || again.Header.Get("If-Modified-Since") == "" {
			t.Errorf("the second poll was not conditional: %v", again.Header)
		}
		time.Sleep(24 * time.Hour)
		s.expect(0, "nobody asks, so nobody polls")
	})
}

// The reader who causes a poll leaves; the poll goes on.
func TestShieldPollOutlivesItsReader(t *testing.T) {
	slow := func(w http.ResponseWriter, r *http.Request) error {
		select {
		case <-time.After(10 * time.Second):
		case <-r.Context().Done():
			return r.Context().Err()
		}
		return feed(feedNamed("late"))(w, r)
	}
	onStage(t, shieldedSite(blog, ""), slow, func(s *stage) {
		r := request("GET", blog+"/feed")
		ctx, leave := context.WithTimeout(r.Context(), time.Second)
		defer leave()
		s.send(r.WithContext(ctx))
		time.Sleep(20 * time.Second)
		wantBody(t, "the next reader", s.get(blog+"/feed"), 200, "late")
		s.expect(1, "two readers, of whom one left")
	})
}

// A name that nobody has configured reaches neither the key nor the origin.
func TestShieldPoisonedHost(t *testing.T) {
	poisons := []struct {
		name, target string
		header       []string
	}{
		{"Host", "/feed", []string{"Host", "evil.test"}},
		{"Host with a port", "/feed", []string{"Host", "evil.test:81"}},
		{"absolute form", "http://evil.test/feed", nil},
		{"X-Forwarded-Host", "/feed", []string{"X-Forwarded-Host", "evil.test", "X-Forwarded-Proto", "https", "X-Forwarded-Port", "81", "Forwarded", "host=evil.test"}},
		{"X-Original-URL", "/feed", []string{"X-Original-URL", "/evil", "X-Rewrite-URL", "/evil", "X-Http-Method-Override", "POST"}},
	}
	for _, site := range []struct {
		name, address, shield string
		good                  string // as readers write it
		sees                  string // the Host of polls
		named                 bool   // Caddy lets only requests for that name get here
	}{
		{"host in the address", "http://blog.test", "", "blog.test", "blog.test", true},
		{"upper case and port", "http://blog.test", "", "BLOG.test:80", "blog.test", true},
		{"wildcard", "http://*.blog.test", "", "a.blog.test", "a.blog.test", true},
		{"no host", ":80", "", "blog.test", "192.0.2.10", false},
		{"a host line", ":80", "{\n\thost Blog.test\n}", "blog.test", "blog.test", false},
		{"a foreign port", "http://blog.test", "", "blog.test:9999", "blog.test", true},
	} {
		t.Run(site.name, func(t *testing.T) {
			onStage(t, shieldedSite(site.address, site.shield), feed(feedNamed("good")), func(s *stage) {
				wantBody(t, "a good reader", s.get("/feed", "Host", site.good), 200, "good")
				if poll := s.expect(1, "a good reader")[0]; poll.Host != site.sees {
					t.Errorf("the poll was for %q, want %q", poll.Host, site.sees)
				}
				s.now(feed(feedNamed("poisoned")))
				for _, p := range poisons {
					header := p.header
					if p.name[0] == 'X' {
						header = append([]string{"Host", site.good}, header...)
					}
					r := request("GET", p.target, header...)
					if p.name == "absolute form" {
						r.URL.Scheme, r.URL.Host, r.RequestURI = "http", "evil.test", p.target
					}
					w := s.send(r)
					for _, c := range s.calls() {
						if strings.Contains(fmt.Sprint(c.Host, c.URL, c.RequestURI, c.Header), "evil") {
							t.Errorf("%s: it reached the origin: %s %s %v", p.name, c.Host, c.RequestURI, c.Header)
						}
					}
					if !site.named && !strings.Contains(w.Body.String(), "good") {
						t.Errorf("%s: %d %q, want the feed", p.name, w.Code, w.Body)
					}
				}
				wantBody(t, "a good reader afterwards", s.get("/feed", "Host", site.good), 200, "good")
				_, c := running()
				for _, key := range c.Keys("") {
					if strings.Contains(key, "evil") {
						t.Errorf("there is a feed %s", key)
					}
				}
			})
		})
	}
}

// What is not for everybody goes through as if there were no shield, and costs the
// site nothing but the probe of an interval.
func TestShieldStandsAside(t *testing.T) {
	for _, tt := range []struct {
		name    string
		request *http.Request
		answer  answer
		probes  int // besides the request itself
	}{
		{"POST", request("POST", blog+"/feed"), plain(201, "made"), 0},
		{"OPTIONS", request("OPTIONS", blog+"/feed"), plain(204, ""), 0},
		{"PROPFIND", request("PROPFIND", blog+"/feed"), plain(207, "many"), 0},
		{"Authorization", request("GET", blog+"/feed", "Authorization", "Basic eA=="), feed(feedNamed("mine")), 0},
		{"upgrade", request("GET", blog+"/feed", "Connection", "Upgrade", "Upgrade", "websocket"), plain(400, "no"), 0},
		{"private", request("GET", blog+"/feed"), feed(feedNamed("mine"), "Cache-Control", "private, max-age=60"), 1},
		{"private for a field", request("GET", blog+"/feed"), feed(feedNamed("mine"), "Cache-Control", `private="X-Me"`), 1},
		{"no-store", request("GET", blog+"/feed"), feed(feedNamed("mine"), "Cache-Control", "no-store"), 1},
		{"Vary: *", request("GET", blog+"/feed"), feed(feedNamed("mine"), "Vary", "Accept-Encoding, *"), 1},
		{"cookie that matters", request("GET", blog+"/feed", "Cookie", "a=b"), feed(feedNamed("mine"), "Vary", "Cookie"), 1},
		{"redirect", request("GET", blog+"/feed"), plain(302, "", "Location", "/elsewhere"), 1},
		{"permanent redirect", request("GET", blog+"/feed"), plain(301, "moved", "Location", "https://example.com/feed"), 1},
		{"page", request("GET", blog+"/feed"), plain(200, "<!doctype html><title>Hello</title>", "Content-Type", "text/html"), 1},
		{"image", request("GET", blog+"/feed"), plain(200, "\x89PNG\r\n\x1a\n", "Content-Type", "image/png"), 1},
		{"not found", request("GET", blog+"/feed"), plain(404, "no such page", "X-Why", "gone fishing", "Cache-Control", "no-store"), 1},
		{"gone", request("GET", blog+"/feed"), plain(410, "gone"), 1},
		{"error", request("GET", blog+"/feed"), plain(500, "sorry"), 1},
		{"two cookies set", request("GET", blog+"/feed"), plain(200, "hello", "Set-Cookie", "a=1", "Set-Cookie", "b=2"), 1},
		{"empty", request("GET", blog+"/feed"), plain(200, ""), 1},
		{"condition", request("GET", blog+"/feed", "If-None-Match", `"x"`), plain(404, "no"), 1},
		{"HEAD of a page", request("HEAD", blog+"/feed"), plain(200, "", "Content-Type", "text/html"), 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			onStage(t, shieldedSite(blog, "")+shieldedSite("http://bare.test", "/never"), tt.answer, func(s *stage) {
				bare := tt.request.Clone(tt.request.Context())
				bare.Host = "bare.test"
				want := s.send(bare)
				asked := s.expect(1, "without a shield")[0]
				for i := range 3 {
					got := s.send(tt.request.Clone(tt.request.Context()))
					if got.Code != want.Code || got.Body.String() != want.Body.String() || fmt.Sprint(got.Header()) != fmt.Sprint(want.Header()) {
						t.Errorf("with the shield\n%d %v %q\nwithout\n%d %v %q", got.Code, got.Header(), got.Body, want.Code, want.Header(), want.Body)
					}
					synctest.Wait()
					calls := s.calls()
					if i > 0 {
						tt.probes = 0
					}
					if len(calls) != 1+tt.probes {
						t.Fatalf("request %d: the origin had %d requests, want %d", i, len(calls), 1+tt.probes)
					}
					own := calls[len(calls)-1]
					own.Host = asked.Host
					if fmt.Sprint(own.Method, own.URL, own.Header, own.RemoteAddr, own.Host) != fmt.Sprint(asked.Method, asked.URL, asked.Header, asked.RemoteAddr, asked.Host) {
						t.Errorf("the origin saw\n%v %v\nwithout the shield\n%v %v", own.Method, own.Header, asked.Method, asked.Header)
					}
				}
				// The plain feed of a site that varies on cookies is for all who have none.
				if _, c := running(); c.Totals().Memory > 0 && tt.name != "cookie that matters" {
					t.Error("something was stored")
				}
			})
		})
	}
}

// A stream that is no feed reaches its reader while it is written, also the first
// time: nobody waits for the end of it.
func TestShieldLetsStreamsFlow(t *testing.T) {
	for kind, beginning := range map[string]string{"text/event-stream": "data: 1\n\n", "text/html": "<!DOCTYPE html><p>"} {
		t.Run(kind, func(t *testing.T) {
			stream := func(w http.ResponseWriter, r *http.Request) error {
				w.Header().Set("Content-Type", kind)
				for range 60 {
					if _, err := w.Write([]byte(beginning)); err != nil {
						return err
					}
					_ = http.NewResponseController(w).Flush()
					select {
					case <-time.After(time.Minute):
					case <-r.Context().Done():
						return r.Context().Err()
					}
				}
				return nil
			}
			onStage(t, shieldedSite(blog, ""), stream, func(s *stage) {
				for range 2 {
					r := request("GET", blog+"/feed")
					ctx, leave := context.WithTimeout(r.Context(), 90*time.Second)
					began := time.Now()
					w := s.send(r.WithContext(ctx))
					leave()
					if got := w.Body.String(); got != beginning+beginning || time.Since(began) != 90*time.Second {
						t.Errorf("after %v the reader has %q", time.Since(began), got)
					}
				}
			})
		})
	}
}

// What was everybody's and is not any more is not served any more, not even after a
// restart; and served again when it is.
func TestShieldWithdraws(t *testing.T) {
	for name, withdrawn := range map[string]answer{
		"private":  feed(feedNamed("secret"), "Cache-Control", "private"),
		"no-store": feed(feedNamed("secret"), "Cache-Control", "no-store"),
		"Vary: *":  feed(feedNamed("secret"), "Vary", "*"),
		"304":      plain(304, "", "Cache-Control", "private"),
		"redirect": plain(302, "secret", "Location", "/login"),
	} {
		t.Run(name, func(t *testing.T) {
			sites := shieldedSite(blog, "")
			onStage(t, sites, feed(feedNamed("public"), "ETag", `"1"`), func(s *stage) {
				wantBody(t, "at first", s.get(blog+"/feed"), 200, "public")
				time.Sleep(2 * time.Minute)
				s.now(withdrawn)
				public := func(when string) {
					t.Helper()
					if w := s.get(blog + "/feed"); strings.Contains(w.Body.String(), "public") {
						t.Errorf("%s: %d %s", when, w.Code, w.Body)
					}
					synctest.Wait()
				}
				public("withdrawn")
				public("withdrawn, the second reader")
				time.Sleep(50 * time.Minute) // soon enough not to be forgotten
				s.now(plain(500, "sorry"))
				public("an error later")
				s.stop()
				s.load(sites)
				public("after a restart")
				time.Sleep(50 * time.Minute) // soon enough not to be forgotten
				s.now(feed(feedNamed("public"), "ETag", `"1"`))
				s.get(blog + "/feed") // shows the way for the poll
				synctest.Wait()
				s.calls()
				wantBody(t, "published again", s.get(blog+"/feed"), 200, "public")
				s.expect(0, "published again")
			})
		})
	}
}

// What an origin says besides its feed reaches readers, also where the feed stays
// as it is; and with it, what it tells readers apart by.
func TestShieldFollowsHeaders(t *testing.T) {
	onStage(t, shieldedSite(blog, "{\n\t\tjitter 0\n\t}"), feed(sample, "X-Mood", "good", "X-Old", "1", "ETag", `"1"`, "Set-Cookie", "session=reader"), func(s *stage) {
		w := s.get(blog + "/feed")
		if w.Header().Get("X-Mood") != "good" || w.Header().Get("Set-Cookie") != "" {
			t.Errorf("at first: %v", w.Header())
		}
		time.Sleep(time.Minute)
		s.now(plain(304, "", "X-Mood", "better"))
		if h := s.get(blog + "/feed").Header(); h.Get("X-Mood") != "better" || h.Get("X-Old") != "1" {
			t.Errorf("after a 304: %v", h)
		}
		time.Sleep(time.Minute)
		s.now(feed(sample, "X-Mood", "best", "Vary", "Cookie", "ETag", `"2"`))
		if h := s.get(blog + "/feed").Header(); h.Get("X-Mood") != "best" || h.Get("X-Old") != "" || h.Get("Vary") != "Accept-Encoding, cookie" {
			t.Errorf("after a 200 with the same feed: %v", h)
		}
		s.calls()
		s.get(blog+"/feed", "Cookie", "a=b")
		if own := s.expect(1, "a reader with a cookie")[0]; own.Header.Get("Cookie") != "a=b" {
			t.Error("a reader with a cookie was not passed through")
		}
	})
}
