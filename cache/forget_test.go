// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/feedpollard/pollard/cache"
	"github.com/feedpollard/pollard/policy"
)

// slow is a store that takes its time to forget.
type slow struct{ cache.Store }

func (s slow) Forget(ctx context.Context, ids []cache.ID) error {
	time.Sleep(time.Second)
	return s.Store.Forget(ctx, ids)
}

// The record that is forgotten must not be that of a poll which began meanwhile:
// the next reader would cause another one.
func TestNoPollComesBetweenForgettingAndItsEnd(t *testing.T) {
	for name, feeds := range map[string][]string{"configured": {feedURL}, "asked for": nil} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, dir string) {
				g := newGateway(t, dir, func(policy.Ask) policy.Answer {
					time.Sleep(5 * time.Second)
					return ok(rss(2, ""), "ETag", `"v"`)
				})
				g.wrap = func(s cache.Store) cache.Store { return slow{s} }
				g.settings.Feeds = feeds
				g.open()
				defer g.close()
				g.get(feedURL)
				time.Sleep(25 * time.Hour)
				var wg sync.WaitGroup
				wg.Go(func() {
					if err := g.Forget(t.Context(), feedURL); err != nil {
						t.Error(err)
					}
				})
				for range 100 {
					time.Sleep(100 * time.Millisecond)
					wg.Go(func() { g.get(feedURL) })
				}
				wg.Wait()
				wantBody(t, g.get(feedURL), 200, "Entry 2")
				if n := g.origin.polls(); n != 2 {
					t.Errorf("%d polls, want one before and one after the feed was forgotten", n)
				}
				if n := g.UnreadDrift(); n != 0 {
					t.Errorf("the count of feeds without a version is %d off", n)
				}
			})
		})
	}
}

// A handler may hold a feed for as long as its configuration lasts.
func TestHandleOfAForgottenFeedLeadsToItsSuccessor(t *testing.T) {
	bubble(t, func(t *testing.T, dir string) {
		entries := 2
		g := newGateway(t, dir, func(policy.Ask) policy.Answer { return ok(rss(entries, ""), "ETag", fmt.Sprintf(`"%d"`, entries)) })
		g.settings.Prefetch = true
		g.open()
		defer g.close()
		g.get(feedURL)
		held, err := g.Feed(feedURL)
		if err != nil {
			t.Fatal(err)
		}
		if err := g.Forget(t.Context(), feedURL); err != nil {
			t.Fatal(err)
		}
		if g.Knows(feedURL) {
			t.Fatal("the feed is still known")
		}
		entries = 3
		for range 48 {
			w := httptest.NewRecorder()
			if _, err := held.Serve(w, httptest.NewRequest(http.MethodGet, "/", nil)); err != nil {
				t.Fatal(err)
			}
			wantBody(t, w, 200, "Entry 3")
			wantBody(t, g.get(feedURL), 200, "Entry 3")
			time.Sleep(time.Hour)
		}
		for i, at := range g.origin.at[2:] {
			if gap := at.Sub(g.origin.at[i+1]); gap < time.Hour {
				t.Errorf("the feed and its successor were polled within %v", gap)
			}
		}
	})
}

func TestOneSweepForgetsAllThatNobodyWants(t *testing.T) {
	bubble(t, func(t *testing.T, dir string) {
		g := newGateway(t, dir, func(policy.Ask) policy.Answer { return failed(404, policy.FailureNotFound) }).open()
		defer g.close()
		for i := range 1200 {
			if _, err := g.Feed(fmt.Sprintf("https://invented%d.test/", i)); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(2*time.Hour + time.Minute)
		if n := len(g.Accounts()); n != 0 {
			t.Errorf("%d of 1200 feeds are left", n)
		}
		if n := g.UnreadDrift(); n != 0 {
			t.Errorf("the count of feeds without a version is %d off", n)
		}
	})
}

func TestConfiguredFeedAlwaysFindsRoom(t *testing.T) {
	bubble(t, func(t *testing.T, dir string) {
		g := newGateway(t, dir, func(policy.Ask) policy.Answer { return ok(rss(2, ""), "ETag", `"v"`) }).open()
		defer g.close()
		full := false
		for i := 0; i <= 10_000; i++ {
			_, err := g.Feed(fmt.Sprintf("https://invented%d.test/", i))
			full = err != nil
		}
		if !full {
			t.Fatal("ten thousand invented feeds were no limit")
		}
		g.settings.Feeds = []string{feedURL}
		g.Apply(g.settings)
		wantBody(t, g.get(feedURL), 200, "Entry 2")
	})
}

// A reader must not bring a feed back to life that its origin has declared gone.
func TestReadersDoNotPollWhatIsGone(t *testing.T) {
	for name, versions := range map[string]int{"never read": 0, "with a version": 1} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, dir string) {
				n := 0
				g := newGateway(t, dir, func(policy.Ask) policy.Answer {
					if n++; n <= versions {
						return ok(rss(2, ""), "ETag", `"v"`)
					}
					return failed(410, policy.FailureGone)
				})
				g.settings.Prefetch = true
				g.open()
				defer func() { g.close() }()
				want := map[int]int{0: 410, 1: 200}[versions]
				g.get(feedURL)
				time.Sleep(25 * time.Hour)
				for range 4 * 120 {
					if w := g.get(feedURL); w.Code != want {
						t.Fatalf("got %d, want %d", w.Code, want)
					}
					time.Sleep(6 * time.Hour)
				}
				g.restart()
				time.Sleep(5 * time.Hour)
				if w := g.get(feedURL); w.Code != want {
					t.Errorf("got %d after the restart, want %d", w.Code, want)
				}
				if got := g.origin.polls(); got != versions+1 {
					t.Errorf("%d polls, want %d: the last brought the 410", got, versions+1)
				}
			})
		})
	}
}
