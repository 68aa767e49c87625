// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/hex"
	"errors"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/feedpollard/pollard/cache"
	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/internal/origintest"
	"github.com/feedpollard/pollard/policy"
)

// faithful is an origin with two entries that knows its own ETag.
func faithful(ask policy.Ask) policy.Answer {
	if ask.Validators.ETag == `"v"` {
		return unchanged()
	}
	return ok(rss(2, ""), "ETag", `"v"`)
}

// packed is a text in gzip.
func packed(text string) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	w.Write([]byte(text))
	w.Close()
	return b.Bytes()
}

func TestBodyThatCannotBeRestoredIsFetchedAgain(t *testing.T) {
	for name, damage := range map[string]func(*store.Body){
		"another coding": func(b *store.Body) { b.Coding = "identity" },
		"no gzip":        func(b *store.Body) { b.Data = []byte("words") },
		"gzip cut off":   func(b *store.Body) { b.Data = b.Data[:len(b.Data)-9] },
		"another size":   func(b *store.Body) { b.Data = packed("another document") },
	} {
		bubble(t, name, func(t *testing.T) {
			g := newGateway(t, faithful).open()
			g.get(feedURL)
			g.restart() // nothing is in memory
			g.store.damage(nil, func(b *store.Body) error { damage(b); return nil })
			w := g.get(feedURL)
			if w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), "fetches it again") {
				t.Errorf("got %d: %s", w.Code, w.Body)
			}
			g.store.damage(nil, nil) // what is written from now on is whole
			time.Sleep(25 * time.Hour)
			wantBody(t, g.get(feedURL), 200, "Entry 2")
			if n := g.origin.polls(); n != 2 || !g.origin.last().Validators.Empty() {
				t.Errorf("poll %d carried %+v", n, g.origin.last().Validators)
			}
		})
	}
}

// Readers hear at once that a feed is lost whose file was set aside, and get it when min_interval has passed.
func TestReadersAfterALoss(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		g := newGateway(t, faithful)
		g.dir = t.TempDir()
		g.open()
		g.get(feedURL)
		g.close()
		if err := os.WriteFile(filepath.Join(g.dir, "feeds.sqlite"), bytes.Repeat([]byte("garbage"), 1000), 0o600); err != nil {
			t.Fatal(err)
		}
		g.open()
		began := time.Now()
		if w := g.get(feedURL); w.Code != http.StatusServiceUnavailable || time.Since(began) > 0 {
			t.Errorf("%d after %v", w.Code, time.Since(began))
		}
		time.Sleep(time.Hour + 10*time.Minute)
		wantBody(t, g.get(feedURL), 200, "Entry 2")
		if n := g.origin.polls(); n != 2 {
			t.Errorf("%d polls", n)
		}
	})
}

// Readers do not wait a week for the lost version of a show that is complete.
func TestLostVersionOfACompleteShow(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		g := newGateway(t, func(policy.Ask) policy.Answer {
			return ok(origintest.Document{Entries: 2, Extra: "<itunes:complete>yes</itunes:complete>"}.String(), "ETag", `"v"`)
		}).open()
		g.get(feedURL)
		g.restart() // nothing is in memory
		g.store.damage(nil, func(b *store.Body) error { b.Data = nil; return nil })
		if w := g.get(feedURL); w.Code != http.StatusServiceUnavailable {
			t.Errorf("got %d", w.Code)
		}
		g.store.damage(nil, nil)
		time.Sleep(time.Hour)
		wantBody(t, g.get(feedURL), 200, "Entry 2")
	})
}

// A store that is out of order says nothing about the version that it has.
func TestBodyThatCannotBeReadForAWhileIsNotLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGateway(t, faithful).open()
		g.get(feedURL)
		g.restart()
		g.store.refuse(errors.New("input/output error"), "Body")
		err := g.serve(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil), 0, feedURL)
		if u, ok := err.(*cache.Unavailable); !ok || u.Status != 503 || u.RetryAfter > 10*time.Minute {
			t.Errorf("got %+v", err)
		}
		g.store.refuse(nil)
		wantBody(t, g.get(feedURL), 200, "Entry 2")
		if n := g.origin.polls(); n != 1 {
			t.Errorf("%d polls", n)
		}
	})
}

// A reader may be so slow that two versions are committed while it reads the one
// between them. The newest is not dropped because of that.
func TestSlowReadDropsNoVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		entries := 1
		g := newGateway(t, func(policy.Ask) policy.Answer { return ok(rss(entries, ""), "Cache-Control", "max-age=3600") })
		g.budget = 500 // in which nothing stays
		g.open()
		poll := func() {
			time.Sleep(2 * time.Hour)
			entries++
			if _, err := g.Refresh(t.Context(), feedURL); err != nil {
				t.Error(err)
			}
		}
		g.get(feedURL)
		reads := 0
		g.store.damage(nil, func(b *store.Body) (err error) {
			if reads++; reads == 1 {
				poll()
				*b, err = store.ReadBody(t.Context(), g.store.Store, store.IDOf(feedURL))
				poll()
			}
			return err
		})
		wantBody(t, g.get(feedURL), 200, "Entry 3")
		wantBody(t, g.get(feedURL), 200, "Entry 3")
		if n := g.origin.polls(); n != 3 {
			t.Errorf("%d polls", n)
		}
	})
}

// Whatever panics in a poll, an answer or what it is not to blame for: the process goes
// on, readers have what they had, and no other poll is made before its time.
func TestPanicInAPollCostsThePollOnly(t *testing.T) {
	for name, breakDown := range map[string]func(g *gateway){
		"by the answer": func(g *gateway) {
			g.origin.answers(func(policy.Ask) policy.Answer { panic("a document that was not expected") })
		},
		"by the store": func(g *gateway) {
			g.store.hook(func(_ context.Context, call string) error {
				if call == "Commit" {
					g.store.hook(nil, nil)
					panic("an outcome that was not expected")
				}
				return nil
			}, nil)
		},
	} {
		bubble(t, name, func(t *testing.T) {
			g := newGateway(t, faithful).open()
			g.get(feedURL)
			time.Sleep(25 * time.Hour)
			breakDown(g)
			for range 30 {
				wantBody(t, g.get(feedURL), 200, "Entry 2")
				time.Sleep(time.Minute)
			}
			if n := g.origin.polls(); n != 2 {
				t.Errorf("%d polls, want none again within the hour", n)
			}
			g.origin.answers(faithful)
			time.Sleep(25 * time.Hour)
			g.get(feedURL)
			if account, err := g.Status(t.Context(), feedURL); err != nil || account.State != "fresh" || g.origin.polls() != 3 {
				t.Errorf("%s, %v, %d polls", account.State, err, g.origin.polls())
			}
		})
	}
}

// The pause that a lost outcome asked for is kept as long as the process remembers it.
func TestPauseOfAnOutcomeThatCannotBeCommitted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGateway(t, faithful).open()
		g.get(feedURL)
		time.Sleep(2 * time.Hour)
		g.origin.answers(func(policy.Ask) policy.Answer {
			a := failed(429, policy.FailureRateLimited)
			a.Header = http.Header{"Retry-After": {"36000"}}
			return a
		})
		g.store.refuse(errors.New("no space left on device"), "Commit")
		g.get(feedURL)
		g.store.refuse(nil)
		asked := time.Now()
		for time.Since(asked) < 9*time.Hour+30*time.Minute {
			wantBody(t, g.get(feedURL), 200, "Entry 2")
			time.Sleep(30 * time.Minute)
		}
		if n := g.origin.polls(); n != 2 {
			t.Errorf("%d polls, want none before Retry-After has passed", n)
		}
		time.Sleep(time.Hour)
		g.get(feedURL)
		if n := g.origin.polls(); n != 3 {
			t.Errorf("%d polls after it", n)
		}
	})
}

// A version that had to give way is served from memory until the next planned poll, which no
// reader hastens. That poll is unconditional: a 304 would confirm bytes that are gone.
func TestVersionGivesWay(t *testing.T) {
	random := make([]byte, 20_000) // so that its body takes pages of its own
	rand.NewChaCha8([32]byte{}).Read(random)
	noise := hex.EncodeToString(random)
	synctest.Test(t, func(t *testing.T) {
		g := newGateway(t, func(ask policy.Ask) policy.Answer {
			if !ask.Validators.Empty() {
				return unchanged()
			}
			return ok(rss(2, noise), "ETag", `"v"`, "Cache-Control", "max-age=80000")
		}).open()
		g.by = store.OwnerOf(store.KindNamed, "a")
		g.get(feedURL)
		time.Sleep(2 * time.Minute) // the store learns who asked
		used := must(g.store.Totals(t.Context())).Used
		if ids, err := g.store.Sweep(t.Context(), store.SweepQuery{Disk: used - 1}); err != nil || len(ids) != 1 {
			t.Fatalf("trimmed %d feeds, %v", len(ids), err)
		}
		for range 2 {
			g.restart()
			if w := g.get(feedURL); w.Code != http.StatusServiceUnavailable {
				t.Errorf("got %d before the planned poll", w.Code)
			}
			time.Sleep(2 * time.Hour)
		}
		time.Sleep(20 * time.Hour)
		wantBody(t, g.get(feedURL), 200, "Entry 2")
		if n := g.origin.polls(); n != 2 {
			t.Errorf("%d polls, want 2", n)
		}
	})
}

// However large what an origin sends beside the document, a record stays small, and the feed
// is served.
func TestRecordsAreBounded(t *testing.T) {
	slow(t)
	const long = 300 << 10
	hubs := strings.Repeat(`<atom:link xmlns:atom="http://www.w3.org/2005/Atom" rel="hub" href="https://hub.test/"/>`, 20_000)
	for name, answer := range map[string]policy.Answer{
		"an ETag":        ok(rss(2, ""), "ETag", `"`+strings.Repeat("\xe9", long)+`"`),
		"a date":         ok(rss(2, ""), "Last-Modified", strings.Repeat("x", long)),
		"a content type": ok(rss(2, ""), "Content-Type", "application/rss+xml; x="+strings.Repeat("x", long)),
		"a freshness":    ok(rss(2, ""), "Cache-Control", strings.Repeat("max-age=x, ", long/10)),
		"many hubs":      ok(strings.Replace(rss(2, ""), "<item>", hubs+"<item>", 1)),
		"a title":        ok(strings.Replace(rss(2, ""), "Test", strings.Repeat("Test ", long), 1)),
	} {
		synctest.Test(t, func(t *testing.T) {
			g := newGateway(t, func(policy.Ask) policy.Answer { return answer }).open()
			wantBody(t, g.get(feedURL), 200, "Entry 2")
			records, err := g.store.Records(t.Context(), store.ID{}, 1, false)
			if err != nil || len(records) != 1 {
				t.Fatalf("%d records, %v", len(records), err)
			}
			if r := records[0]; r.Version == 0 || len(r.FeedState)+len(r.PollState) > 128<<10 {
				t.Errorf("%s: version %d, %d bytes of memo and %d of facts", name, r.Version, len(r.FeedState), len(r.PollState))
			}
			time.Sleep(25 * time.Hour)
			answer = policy.Answer{Status: 502, Failure: policy.FailureStatus, Err: errors.New("it said:\r\n" + strings.Repeat("x", long) + "\xff")}
			g.get(feedURL)
			if e := must(g.Status(t.Context(), feedURL)).LastError; e == "" || len(e) > 500 || strings.ContainsAny(e, "\r\n") {
				t.Errorf("an error of %d bytes: %.100q", len(e), e)
			}
		})
	}
}
