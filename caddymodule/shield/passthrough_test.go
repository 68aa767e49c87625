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
	"time"

	"github.com/feedpollard/pollard/caddymodule/internal/stage"
)

// slowly responds in eight parts, one per second.
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

// firstByte records when the first byte of a body came.
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

// The site gets one request for a response that is not a feed, also the first time, and the reader
// gets the first byte without delay.
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
					stage.Serve(t, 0, first, stage.Request("GET", fmt.Sprintf("%s/page?%d", blog, i)))
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

// In front of a slow site, many readers cause one request: the poll. If the response is not a feed, each
// reader's request passes through in the end.
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
		{"a feed below a likely name", "", "/feed/of/alice", 20 * time.Second, "application/rss+xml", 1, 20 * time.Second},
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

// A handler whose response is not a feed may finish it if that takes little. Otherwise its writes
// fail.
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

// If a URL does not look like a feed, the first response shows that it is one.
func TestUnlikelyFeed(t *testing.T) {
	stage.Run(t, stage.ShieldedSite(blog, ""), stage.Feed(stage.FeedNamed("odd")), func(s *stage.Stage) {
		for range 5 {
			stage.WantBody(t, "a reader", s.Get(blog+"/news"), 200, "odd")
		}
		s.Expect(2, "the first reader's own request and a poll")
	})
}

// Requests that the block does not answer go to the handlers after the shield, and are not shared.
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
	})
}

// A reader that leaves is not an error of the site.
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
