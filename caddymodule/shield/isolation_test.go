// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package shield

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/feedpollard/pollard/caddymodule/internal/stage"
	"github.com/feedpollard/pollard/caddymodule/poller"
)

// speaker is an origin whose feeds say what the configuration has it say, and may be
// kept.
func speaker(w http.ResponseWriter, r *http.Request) error {
	return stage.Feed(stage.FeedNamed("I say "+stage.Said(r)+"."), "Cache-Control", "max-age=600")(w, r)
}

// from is a request from an address.
func from(address, target string, header ...string) *http.Request {
	r := stage.Request("GET", target, header...)
	r.RemoteAddr = address + ":1234"
	return r
}

// Two shields of one URL have an entry each.
func TestShieldsOfOneURL(t *testing.T) {
	site := blog + " {\nbind void/site\n@internal remote_ip 192.168.0.0/16\nhandle @internal {\n" + shieldOf("internal", "name internal") + "}\nhandle {\n" + shieldOf("public") + "}\n}\n"
	stage.Run(t, site, speaker, func(s *stage.Stage) {
		for range 2 {
			stage.WantBody(t, "inside", s.Send(from(stage.Home, blog+"/feed")), 200, "I say internal.")
			stage.WantBody(t, "outside", s.Get(blog+"/feed"), 200, "I say public.")
		}
		s.Expect(2, "two origins")
	})
}

// An edit elsewhere in the configuration changes nothing about whose feed is whose.
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

// The admin API forgets what shields store of a URL, and nothing that was not named.
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

// A site for any host shares nothing: whatever a request says its host is would be
// what others get. A foreign port in Host is nobody's.
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

// Sites on two ports of one host are two, whatever port a request says.
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

// Values of readers' fields are neither in keys nor shown, and who has what looks
// like a credential is answered alone.
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

// slowly answers with eight pieces, one each second.
func slowly(kind, piece string) stage.Answer {
	return func(w http.ResponseWriter, _ *http.Request) error {
		if kind != "" {
			w.Header().Set("Content-Type", kind)
		}
		for i := range 8 {
			if _, err := fmt.Fprintf(w, piece, i); err != nil {
				return err
			}
			_ = http.NewResponseController(w).Flush()
			time.Sleep(time.Second)
		}
		return nil
	}
}

// firstByte notes when the first byte of a body came.
type firstByte struct {
	*httptest.ResponseRecorder
	began time.Time
	seen  bool
	after time.Duration
}

func (f *firstByte) Write(p []byte) (int, error) {
	if !f.seen {
		f.seen, f.after = true, time.Since(f.began)
	}
	return f.ResponseRecorder.Write(p)
}

// The site is asked once for what is no feed, also the first time, and its reader
// gets the first byte when it is there.
func TestNoFeedIsAskedForOnce(t *testing.T) {
	for name, answer := range map[string]stage.Answer{
		"JSON stream": slowly("application/json", "{\"i\":%d}\n"),
		"NDJSON":      slowly("application/x-ndjson", "{\"i\":%d}\n"),
		"text":        slowly("text/plain", "line %d\n"),
		"HTML":        slowly("text/html", "<!DOCTYPE html><p>%d"),
		"bytes":       slowly("application/octet-stream", "\x00\x01%d"),
		"no type":     slowly("", "line %d\n"),
		"events":      slowly("text/event-stream", "data: %d\n\n"),
		"image":       slowly("image/png", "\x89PNG%d"),
	} {
		t.Run(name, func(t *testing.T) {
			stage.Run(t, stage.ShieldedSite(blog, ""), answer, func(s *stage.Stage) {
				for i := range 3 {
					first := &firstByte{ResponseRecorder: httptest.NewRecorder(), began: time.Now()}
					s.SendTo(first, stage.Request("GET", fmt.Sprintf("%s/page?%d", blog, i)))
					if first.after != 0 {
						t.Errorf("the first byte came after %v", first.after)
					}
					if took := time.Since(first.began); took != 8*time.Second {
						t.Errorf("it took %v", took)
					}
					s.Expect(1, "a page")
				}
			})
		})
	}
}

// What looks like a feed from outside and is none costs its first reader a second at
// most.
func TestPatienceWithWhatMayBeNoFeed(t *testing.T) {
	page := func(w http.ResponseWriter, r *http.Request) error {
		time.Sleep(4 * time.Second)
		return stage.Plain(200, "<!DOCTYPE html>", "Content-Type", "text/html")(w, r)
	}
	stage.Run(t, stage.ShieldedSite(blog, ""), page, func(s *stage.Stage) {
		for _, wait := range []time.Duration{patience, 0} {
			began := time.Now()
			stage.WantBody(t, "a page", s.Get(blog+"/search?q=feed"), 200, "<!DOCTYPE html>")
			if took := time.Since(began); took != wait+4*time.Second {
				t.Errorf("it took %v", took)
			}
			time.Sleep(time.Minute)
		}
		s.Expect(3, "two readers and a probe")
	})
}

// Before a site that is slow to begin, which is when a shield is needed most, a crowd is
// one request: that of the poll, for as long as it may take. What only may be a feed costs
// one more. If it is none, all ask for themselves in the end.
func TestCrowdBeforeSlowSite(t *testing.T) {
	for _, tt := range []struct {
		name, lines, path string
		slow              time.Duration
		kind              string
		hits              int
		after             time.Duration // the slowest of the crowd
	}{
		{"a feed", "", "/feed", 4 * time.Second, "application/rss+xml", 1, 4 * time.Second},
		{"a feed that is slower than most readers", "", "/feed", 29 * time.Second, "application/rss+xml", 1, 29 * time.Second},
		{"a feed that may take two minutes", "timeout 2m", "/feed", 110 * time.Second, "application/rss+xml", 1, 110 * time.Second},
		{"a feed by an unlikely name", "", "/feed/of/alice", 20 * time.Second, "application/rss+xml", 2, 21 * time.Second},
		{"a feed that takes longer than a poll", "", "/feed", 40 * time.Second, "application/rss+xml", 51, 70 * time.Second},
		{"a page", "", "/feed", 4 * time.Second, "text/html", 51, 8 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			site := func(w http.ResponseWriter, r *http.Request) error {
				time.Sleep(tt.slow)
				body := "<!DOCTYPE html>"
				if tt.kind != "text/html" {
					body = stage.FeedNamed("slow")
				}
				return stage.Plain(200, body, "Content-Type", tt.kind)(w, r)
			}
			stage.Run(t, stage.ShieldedSite(blog, "{\n"+tt.lines+"\n}"), site, func(s *stage.Stage) {
				began := time.Now()
				var crowd sync.WaitGroup
				for range 50 {
					crowd.Go(func() {
						if w := s.Get(blog + tt.path); w.Code != 200 || w.Body.Len() == 0 {
							t.Errorf("%d %s", w.Code, w.Body)
						}
					})
				}
				crowd.Wait()
				if took := time.Since(began); took != tt.after {
					t.Errorf("it took %v, want %v", took, tt.after)
				}
				s.Expect(tt.hits, "a crowd")
			})
		})
	}
}

// A reader that leaves a crowd ends its own wait only.
func TestWhoLeavesACrowd(t *testing.T) {
	slow := func(w http.ResponseWriter, r *http.Request) error {
		time.Sleep(20 * time.Second)
		return stage.Feed(stage.FeedNamed("slow"))(w, r)
	}
	stage.Run(t, stage.ShieldedSite(blog, ""), slow, func(s *stage.Stage) {
		began := time.Now()
		var crowd sync.WaitGroup
		for i := range 50 {
			r := stage.Request("GET", blog+"/feed")
			leaves := i%2 == 0 // the one that caused the poll among them, or not
			if leaves {
				ctx, leave := context.WithTimeout(r.Context(), time.Duration(i+1)*100*time.Millisecond)
				defer leave()
				r = r.WithContext(ctx)
			}
			crowd.Go(func() {
				w := s.Send(r)
				took := time.Since(began)
				if leaves && (w.Body.Len() > 0 || took > 5*time.Second) {
					t.Errorf("who left after %d tenths of a second was let go after %v with %q", i+1, took, w.Body)
				}
				if !leaves && (w.Code != 200 || took != 20*time.Second) {
					t.Errorf("who stayed got %d after %v", w.Code, took)
				}
			})
		}
		crowd.Wait()
		s.Expect(1, "a crowd of which half leave")
	})
}

// The handler of an answer that is no feed comes to its end where that is near. It is
// told that nobody reads on where it is not.
func TestPageIsNotBrokenOff(t *testing.T) {
	for _, tt := range []struct {
		name, kind string
		status     int
		pieces     int
		pause      time.Duration
		broken     int64
	}{
		{"a page", "text/html", 200, 40, 0, 0},
		{"an image", "image/png", 200, 40, 0, 0},
		{"a large page", "text/html", 200, 4000, 0, 1},
		{"a page that goes on", "text/html", 200, 40, time.Second, 1},
		{"not found", "text/html", 404, 40, 0, 0},
		{"gone", "text/html", 410, 40, 0, 0},
		{"an error", "application/rss+xml", 500, 40, 0, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var broken atomic.Int64
			page := func(w http.ResponseWriter, r *http.Request) error {
				w.Header().Set("Content-Type", tt.kind)
				w.WriteHeader(tt.status)
				for range tt.pieces {
					if _, err := w.Write([]byte("<!DOCTYPE html>" + strings.Repeat(" ", 1000))); err != nil {
						broken.Add(1)
						return err
					}
					time.Sleep(tt.pause)
				}
				return nil
			}
			stage.Run(t, stage.ShieldedSite(blog, ""), page, func(s *stage.Stage) {
				began := time.Now()
				w := s.Get(blog + "/feed")
				if want := tt.pieces * 1015; w.Code != tt.status || w.Body.Len() != want {
					t.Errorf("%d, %d bytes, want %d", w.Code, w.Body.Len(), want)
				}
				if took, most := time.Since(began), time.Duration(tt.pieces)*tt.pause+drainTime; took > most {
					t.Errorf("the reader waited %v, want at most %v", took, most)
				}
				time.Sleep(time.Hour)
				if n := broken.Load(); n != tt.broken {
					t.Errorf("%d answers were broken off, want %d", n, tt.broken)
				}
				s.Expect(2, "a poll and a reader")
			})
		})
	}
}

// A page with a feed in it is a page, to its last byte.
func TestPageWithFeedInIt(t *testing.T) {
	for kind, beginning := range map[string]string{
		"text/html": "<!DOCTYPE html><html><pre>", "image/png": "\x89PNG\r\n\x1a\n", "text/plain": "see:", "": "<html>",
	} {
		whole := beginning + strings.Repeat(" ", 5000) + stage.Sample
		pieces := func(w http.ResponseWriter, _ *http.Request) error {
			if kind != "" {
				w.Header().Set("Content-Type", kind)
			}
			for rest := whole; rest != ""; {
				piece := rest[:min(len(rest), 93)]
				rest = rest[len(piece):]
				if _, err := w.Write([]byte(piece)); err != nil {
					return err
				}
				_ = http.NewResponseController(w).Flush()
			}
			return nil
		}
		stage.Run(t, stage.ShieldedSite(blog, ""), pieces, func(s *stage.Stage) {
			for range 2 {
				if w := s.Get(blog + "/feed"); w.Body.String() != whole {
					t.Errorf("%s: %s, %d of %d bytes", kind, w.Header().Get("Content-Type"), w.Body.Len(), len(whole))
				}
			}
		})
	}
}

// A feed at a URL that does not look like one is found by its first reader's answer.
func TestUnlikelyFeed(t *testing.T) {
	stage.Run(t, stage.ShieldedSite(blog, ""), stage.Feed(stage.FeedNamed("odd")), func(s *stage.Stage) {
		for range 5 {
			stage.WantBody(t, "a reader", s.Get(blog+"/news"), 200, "odd")
		}
		s.Expect(2, "the first reader's own request and a poll")
	})
}

// What the block leaves unanswered goes to what follows the shield, and is not shared.
func TestOriginThatPasses(t *testing.T) {
	root := t.TempDir()
	stage.WriteFile(t, filepath.Join(root, "other.xml"), stage.FeedNamed("what follows"))
	site := blog + " {\nbind void/site\nroot * " + root + "\nfeed_shield {\norigin {\nbackend /feed block\n}\n}\nfile_server\n}\n"
	stage.Run(t, site, speaker, func(s *stage.Stage) {
		for range 3 {
			stage.WantBody(t, "the block", s.Get(blog+"/feed"), 200, "I say block.")
			stage.WantBody(t, "what follows", s.Get(blog+"/other.xml"), 200, "what follows")
		}
		s.Expect(1, "the block")
		synctest.Wait()
		if _, c := poller.Running(); len(c.Keys(context.Background(), poller.ShieldCommon)) > 1 {
			t.Errorf("stored: %q", c.Keys(context.Background(), poller.ShieldCommon))
		}
	})
}

// A reader who leaves is no error of the site.
func TestReaderLeaves(t *testing.T) {
	hang := func(_ http.ResponseWriter, r *http.Request) error {
		<-r.Context().Done()
		return r.Context().Err()
	}
	site := blog + " {\nbind void/site\n" + shieldOf("x") + "handle_errors {\nrespond \"handled {err.status_code}\" 418\n}\n}\n"
	stage.Run(t, site, hang, func(s *stage.Stage) {
		r := stage.Request("GET", blog+"/feed")
		ctx, leave := context.WithTimeout(r.Context(), time.Second/2)
		defer leave()
		if w := s.Send(r.WithContext(ctx)); w.Code != 499 && w.Body.String() != "handled 499" {
			t.Errorf("%d %q", w.Code, w.Body)
		}
	})
}
