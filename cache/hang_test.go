// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/feedpollard/pollard/cache"
	"github.com/feedpollard/pollard/cache/feedstate"
	"github.com/feedpollard/pollard/cache/store/sqlite"
	"github.com/feedpollard/pollard/policy"
)

// hang has the disk of the store hang for a time: changes are decided on when they are asked for, and
// answered when they are durable. No context ends that.
func (s *hooked) hang(d time.Duration) {
	until := time.Now().Add(d)
	s.hook(func(ctx context.Context, call string) error {
		if wait := time.Until(until); wait > 0 && (call == "Touch" || call == "Totals") { // which can be given up
			select {
			case <-time.After(wait):
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return nil
	}, func(call string, _ any) error {
		if call == "Claim" || call == "Commit" {
			time.Sleep(time.Until(until))
		}
		return nil
	})
}

// However long a disk hangs, readers are served from memory, no poll is sent that may
// have been granted again meanwhile, and the number of goroutines that wait is bounded. The
// operator sees it.
func TestDiskThatHangs(t *testing.T) {
	for outage, prefetch := range map[time.Duration]bool{2 * time.Minute: true, 3 * time.Hour: false} {
		if testing.Short() && !prefetch {
			continue
		}
		bubble(t, fmt.Sprintf("%v, prefetch %v", outage, prefetch), func(t *testing.T) {
			const feeds, floor = 60, 10 * time.Minute
			g := newGateway(t, func(policy.Ask) policy.Answer { return ok(rss(2, ""), "ETag", `"v"`, "Cache-Control", "max-age=600") })
			g.often(floor)
			g.settings.Prefetch = prefetch
			g.open()
			url := func(i int) string { return fmt.Sprintf("https://host%d.test/feed", i) }
			round := func() {
				for i := range feeds {
					began := time.Now()
					if w := g.get(url(i)); w.Code != http.StatusOK {
						t.Fatalf("got %d %s", w.Code, w.Body)
					}
					if waited := time.Since(began); waited > 3*time.Second {
						t.Errorf("a reader waited %v", waited)
					}
				}
			}
			round()
			time.Sleep(floor - time.Minute)
			before, routines := g.origin.polls(), runtime.NumGoroutine()
			g.store.hang(outage)
			began := time.Now()
			if w := g.get("https://new.test/feed"); w.Code != http.StatusServiceUnavailable {
				t.Errorf("a new feed: %d %s", w.Code, w.Body)
			}
			for time.Since(began) < outage-outage/10 {
				round()
				time.Sleep(outage / 15)
			}
			if n := g.origin.polls() - before; n != 0 {
				t.Errorf("%d polls were sent while the disk hung", n)
			}
			if n := runtime.NumGoroutine() - routines; n > 200 {
				t.Errorf("%d goroutines more wait for the disk", n)
			}
			if s := g.Summary(t.Context()); outage > floor && !strings.Contains(s.Outage, "not answered") {
				t.Errorf("the summary says %q of the outage", s.Outage)
			}
			for range 10 {
				time.Sleep(3 * time.Minute)
				round()
			}
			last := make(map[string]time.Time)
			times, asks := g.origin.times(), g.origin.asks
			for i, at := range times {
				if before, ok := last[asks[i].URL.String()]; ok && at.Sub(before) < floor {
					t.Fatalf("%s was polled twice within %v, %v after the disk began to hang", asks[i].URL, at.Sub(before), at.Sub(began))
				}
				last[asks[i].URL.String()] = at
			}
			if len(times)-before < 2*feeds {
				t.Errorf("%d polls in the half hour after the disk was back", len(times)-before)
			}

			g.store.hang(time.Hour)
			round() // with polls that are due
			began = time.Now()
			if err := g.Cache.Close(); err != nil {
				t.Error(err)
			}
			if took := time.Since(began); took > 10*time.Second {
				t.Errorf("the cache took %v to close", took)
			}
			time.Sleep(2 * time.Hour)
			if err := g.store.Close(); err != nil {
				t.Error(err)
			}
			g.Cache = nil // it is closed
		})
	}
}

// A claim that is answered late, as the machine was suspended meanwhile or the database
// was out of reach, may have lapsed, and another node may have polled.
func TestClaimThatIsAnsweredLateIsNotUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(epoch))
		rules := policy.DefaultRules()
		rules.MinInterval, rules.Jitter = time.Minute, 0
		for _, prefetch := range []bool{false, true} {
			origin := &script{answer: func(policy.Ask) policy.Answer { return ok(rss(2, ""), "ETag", `"v"`, "Cache-Control", "max-age=60") }}
			settings := cache.Settings{Rules: func(feedstate.Key) policy.Rules { return rules }, Feeds: []string{feedURL}, Prefetch: prefetch}
			shared := sqlite.NewMemory(nil)
			late := &hooked{Store: shared}
			a := node(t, late, origin, settings)
			a.get(feedURL)
			settings.Prefetch = false
			b := node(t, shared, origin, settings)
			b.get(feedURL)
			time.Sleep(59 * time.Second)
			late.hang(7*time.Minute + time.Second)
			for range 100 {
				time.Sleep(6 * time.Second)
				if !prefetch {
					a.get(feedURL)
				}
				b.get(feedURL)
			}
			times := origin.times()
			for i := 1; i < len(times); i++ {
				if gap := times[i].Sub(times[i-1]); gap < time.Minute {
					t.Errorf("prefetch %v: two polls within %v", prefetch, gap)
				}
			}
			if len(times) < 4 {
				t.Errorf("prefetch %v: %d polls in ten minutes", prefetch, len(times))
			}
			if err := errors.Join(a.Cache.Close(), b.Cache.Close(), shared.Close()); err != nil {
				t.Error(err)
			}
		}
	})
}
