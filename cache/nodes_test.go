// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/feedpollard/pollard/cache"
	"github.com/feedpollard/pollard/cache/volatile"
	"github.com/feedpollard/pollard/policy"
)

// late delays what a store answers.
type late struct {
	cache.Store
	claim, lookup time.Duration
}

func (s *late) Claim(ctx context.Context, claims []cache.Claim) ([]cache.Lease, error) {
	leases, err := s.Store.Claim(ctx, claims)
	time.Sleep(s.claim)
	return leases, err
}

func (s *late) Lookup(ctx context.Context, ids []cache.ID) ([]cache.Record, error) {
	records, err := s.Store.Lookup(ctx, ids)
	time.Sleep(s.lookup)
	return records, err
}

// node is one of several gateways on a store.
func node(t *testing.T, store cache.Store, origin cache.Origin, settings cache.Settings) *gateway {
	t.Helper()
	c, err := cache.New(cache.Options{Store: store, Origin: origin, Memory: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	c.Apply(settings)
	return &gateway{t: t, Cache: c}
}

// Whatever a node is doing while another one commits a version, it serves that one
// shortly after.
func TestVersionOfAnotherNodeIsNotMissed(t *testing.T) {
	for name, store := range map[string]late{
		"while its claim is answered": {claim: 10 * time.Second},
		"while it reads the record":   {lookup: 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				time.Sleep(time.Until(epoch))
				entries := 1
				origin := &script{answer: func(policy.Ask) policy.Answer {
					time.Sleep(time.Second)
					return ok(rss(entries, ""), "Cache-Control", "max-age=86400")
				}}
				shared := volatile.New(nil)
				defer shared.Close()
				store.Store = shared
				slow, quick := node(t, &store, origin, cache.Settings{}), node(t, shared, origin, cache.Settings{})
				defer slow.Cache.Close()
				defer quick.Cache.Close()
				if store.claim > 0 {
					slow.get(feedURL) // it is in memory there
				}
				first := quick.get(feedURL)
				wantBody(t, first, 200, "Entry 1")
				entries = 2
				time.Sleep(27 * time.Hour)
				var both sync.WaitGroup
				both.Go(func() { quick.get(feedURL) })
				time.Sleep(100 * time.Millisecond)
				both.Go(func() { slow.get(feedURL, "If-None-Match", first.Header().Get("Etag")) })
				both.Wait()
				time.Sleep(30 * time.Second)
				wantBody(t, slow.get(feedURL, "If-None-Match", first.Header().Get("Etag")), 200, "Entry 2")
				if n := origin.polls(); n != 2 {
					t.Errorf("%d polls", n)
				}
			})
		})
	}
}

// patient is an origin one slot of which a node gets late.
type patient struct {
	*script
	delay atomic.Int64 // of the next slot, in nanoseconds
	busy  atomic.Bool
}

func (o *patient) Acquire(ctx context.Context, url string, urgent bool) (policy.Slot, error) {
	if delay := o.delay.Swap(0); delay > 0 {
		o.busy.Store(true)
		defer o.busy.Store(false)
		time.Sleep(time.Duration(delay))
	}
	return o.script.Acquire(ctx, url, urgent)
}

func (o *patient) Busy() []string {
	if o.busy.Load() {
		return []string{"origin.test"}
	}
	return nil
}

// A claim that was made by ClaimDue may have lapsed by the time at which the host is
// free, and another node may have polled.
func TestLapsedClaimIsNotUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(epoch))
		origin := &script{answer: func(policy.Ask) policy.Answer { return ok(rss(2, ""), "ETag", `"v"`, "Cache-Control", "max-age=60") }}
		slow := &patient{script: origin}
		rules := policy.DefaultRules()
		rules.MinInterval, rules.Jitter = time.Minute, 0
		settings := cache.Settings{Rules: func(string) policy.Rules { return rules }, Feeds: []string{feedURL}, Prefetch: true}
		store := volatile.New(nil)
		defer store.Close()
		a := node(t, store, slow, settings)
		defer a.Cache.Close()
		time.Sleep(10 * time.Second)
		slow.delay.Store(int64(270 * time.Second)) // longer than a claim of this feed by 50 seconds
		time.Sleep(2 * time.Minute)                // it has claimed the second poll
		settings.Prefetch = false
		b := node(t, store, origin, settings)
		defer b.Cache.Close()
		for range 100 {
			time.Sleep(10 * time.Second)
			b.get(feedURL)
		}
		times := origin.times()
		for i := 1; i < len(times); i++ {
			if gap := times[i].Sub(times[i-1]); gap < time.Minute {
				t.Errorf("two polls within %v", gap)
			}
		}
		if len(times) < 10 { // one a minute after the claim has lapsed
			t.Errorf("%d polls in a quarter of an hour: %v", len(times), times)
		}
	})
}
