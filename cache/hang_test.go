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
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/feedpollard/pollard/cache"
	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/cache/store/sqlite"
	"github.com/feedpollard/pollard/policy"
)

// hanging is a store on a disk that hangs until some moment: changes are decided on when
// they are asked for, and answered when they are durable. No context ends that.
type hanging struct {
	store.Store
	until atomic.Int64 // in nanoseconds since 1970
}

func (s *hanging) hang(d time.Duration) { s.until.Store(time.Now().Add(d).UnixNano()) }

func (s *hanging) sync() { time.Sleep(time.Until(time.Unix(0, s.until.Load()))) }

func (s *hanging) Claim(ctx context.Context, claims []store.Claim) ([]store.Lease, error) {
	leases, err := s.Store.Claim(ctx, claims)
	s.sync()
	return leases, err
}

func (s *hanging) ClaimDue(ctx context.Context, q store.DueQuery) ([]store.Lease, time.Duration, error) {
	leases, wait, err := s.Store.ClaimDue(ctx, q)
	s.sync()
	return leases, wait, err
}

func (s *hanging) Commit(ctx context.Context, o store.Outcome) error {
	err := s.Store.Commit(ctx, o)
	s.sync()
	return err
}

// queue waits for the disk as sync does, but can be given up.
func (s *hanging) queue(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Until(time.Unix(0, s.until.Load())))
	defer cancel()
	<-ctx.Done()
	if time.Now().UnixNano() < s.until.Load() {
		return ctx.Err()
	}
	return nil
}

func (s *hanging) Touch(ctx context.Context, asked map[store.ID]store.Asked) error {
	if err := s.queue(ctx); err != nil {
		return err
	}
	return s.Store.Touch(ctx, asked)
}

func (s *hanging) Totals(ctx context.Context) (store.Totals, error) {
	if err := s.queue(ctx); err != nil {
		return store.Totals{}, err
	}
	return s.Store.Totals(ctx)
}

// However long a disk hangs, readers are served from memory, no poll is sent that may
// have been granted again meanwhile, and the number of goroutines that wait is bounded. The
// operator sees it.
func TestDiskThatHangs(t *testing.T) {
	for outage, prefetch := range map[time.Duration]bool{2 * time.Minute: true, 3 * time.Hour: false} {
		t.Run(fmt.Sprintf("%v, prefetch %v", outage, prefetch), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const feeds, floor = 60, 10 * time.Minute
				g := newGateway(t, "", func(policy.Ask) policy.Answer { return ok(rss(2, ""), "ETag", `"v"`, "Cache-Control", "max-age=600") })
				rules := policy.DefaultRules()
				rules.MinInterval, rules.Jitter = floor, 0
				g.settings.Rules = func(cache.Key) policy.Rules { return rules }
				g.settings.Prefetch = prefetch
				var db *hanging
				g.wrap = func(s store.Store) store.Store { db = &hanging{Store: s}; return db }
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
				db.hang(outage)
				began := time.Now()
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

				db.hang(time.Hour)
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
			})
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
			settings := cache.Settings{Rules: func(cache.Key) policy.Rules { return rules }, Feeds: []string{feedURL}, Prefetch: prefetch}
			shared := sqlite.NewMemory(nil)
			late := &hanging{Store: shared}
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
