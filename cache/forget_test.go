// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"sync"
	"testing"
	"time"

	"github.com/feedpollard/pollard/policy"
)

// The record that is forgotten must not be that of a poll which began meanwhile:
// the next reader would cause another one.
func TestNoPollComesBetweenForgettingAndItsEnd(t *testing.T) {
	for name, feeds := range map[string][]string{"configured": {feedURL}, "asked for": nil} {
		bubble(t, name, func(t *testing.T) {
			g := newGateway(t, func(policy.Ask) policy.Answer {
				time.Sleep(5 * time.Second)
				return ok(rss(2, ""), "ETag", `"v"`)
			})
			g.store.delay(time.Second, "Forget")
			g.settings.Feeds = feeds
			g.open()
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
		})
	}
}

// A reader must not bring a feed back to life that its origin has declared gone.
func TestReadersDoNotPollWhatIsGone(t *testing.T) {
	for name, versions := range map[string]int{"never read": 0, "with a version": 1} {
		bubble(t, name, func(t *testing.T) {
			n := 0
			g := newGateway(t, func(policy.Ask) policy.Answer {
				if n++; n <= versions {
					return ok(rss(2, ""), "ETag", `"v"`)
				}
				return failed(410, policy.FailureGone)
			})
			g.settings.Prefetch, g.settings.IdleAfter = true, 24*time.Hour
			g.open()
			want := map[int]int{0: 410, 1: 200}[versions]
			g.get(feedURL)
			time.Sleep(25 * time.Hour)
			for range 4 * 4 { // days, beyond all that is forgotten without readers
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
	}
}
