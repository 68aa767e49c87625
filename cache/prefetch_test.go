// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"context"
	"fmt"
	"math"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/feedpollard/pollard/cache"
	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/cache/store/sqlite"
	"github.com/feedpollard/pollard/policy"
)

func TestPrefetchPollsConfiguredFeedsUntilTheyAreIdle(t *testing.T) {
	bubble(t, func(t *testing.T, dir string) {
		g := newGateway(t, dir, func(policy.Ask) policy.Answer { return ok(rss(2, ""), "ETag", `"v"`, "Cache-Control", "max-age=86400") })
		g.settings.Prefetch = true
		g.settings.IdleAfter = 3 * 24 * time.Hour
		g.settings.Feeds = []string{feedURL}
		g.open()
		defer g.close()
		time.Sleep(2*24*time.Hour + time.Hour)
		if n := g.origin.polls(); n < 2 || n > 3 {
			t.Fatalf("%d polls in two days of daily polling without a reader", n)
		}
		time.Sleep(5 * 24 * time.Hour)
		asleep := g.origin.polls()
		if asleep > 4 {
			t.Errorf("%d polls: prefetching does not sleep", asleep)
		}
		g.get(feedURL)
		synctest.Wait()
		if n := g.origin.polls(); n != asleep+1 {
			t.Errorf("%d polls after a reader came back, want %d", n, asleep+1)
		}
		time.Sleep(2 * 24 * time.Hour)
		if n := g.origin.polls(); n < asleep+2 {
			t.Errorf("%d polls: prefetching has not woken up", n)
		}
	})
}

// Centuries, by which an operator means never, are longer than a duration can hold in threes.
func TestWithoutPrefetchNothingIsPolled(t *testing.T) {
	bubble(t, func(t *testing.T, dir string) {
		g := newGateway(t, dir, func(policy.Ask) policy.Answer { return ok(rss(2, "")) })
		g.settings.Feeds, g.settings.IdleAfter = []string{"https://pinned.test/"}, math.MaxUint64/3+1 // 195 years
		g.open()
		defer g.close()
		g.get(feedURL)
		time.Sleep(7 * 24 * time.Hour)
		if n := g.origin.polls(); n != 1 || !g.knows(feedURL) {
			t.Errorf("%d polls with one reader", n)
		}
	})
}

func TestManyDueFeedsAreSpread(t *testing.T) {
	bubble(t, func(t *testing.T, dir string) {
		g := newGateway(t, dir, func(policy.Ask) policy.Answer { return ok(rss(2, "")) })
		g.settings.Prefetch = true
		for i := range 1000 {
			g.settings.Feeds = append(g.settings.Feeds, fmt.Sprintf("https://host%d.test/feed", i))
		}
		g.open()
		defer g.close()
		time.Sleep(time.Minute)
		if n := g.origin.polls(); n > 500 || n < 400 {
			t.Errorf("%d polls in the first minute, want at most eight a second", n)
		}
		time.Sleep(2 * time.Minute)
		if n := g.origin.polls(); n != 1000 {
			t.Errorf("%d polls after three minutes, want all 1000", n)
		}
	})
}

// closing is a store that has granted due polls when the cache closes.
type closing struct {
	store.Store
	close func()
}

func (s closing) ClaimDue(ctx context.Context, q store.DueQuery) ([]store.Lease, time.Duration, error) {
	leases, wait, err := s.Store.ClaimDue(ctx, q)
	if len(leases) > 0 {
		go s.close()
		time.Sleep(time.Millisecond)
	}
	return leases, wait, err
}

// The time that is shown is that of the next poll: neither a lease that is not used nor the last
// moment of a pause of the host puts it off.
func TestTimeThatIsShown(t *testing.T) {
	bubble(t, func(t *testing.T, dir string) {
		g := newGateway(t, dir, func(policy.Ask) policy.Answer { return ok(rss(2, "")) })
		g.settings.Prefetch, g.settings.Feeds = true, []string{feedURL}
		g.wrap = func(s store.Store) store.Store { return closing{s, func() { _ = g.Cache.Close() }} }
		g.open()
		time.Sleep(500 * time.Millisecond)
		if r := must(g.store.Records(t.Context(), store.ID{}, 1)); len(r) != 1 || r[0].In > 0 || g.origin.polls() > 0 {
			t.Errorf("%d polls, %+v, want the feed still due", g.origin.polls(), r)
		}
		g.wrap, g.settings.Prefetch = nil, false
		g.open()
		defer g.close()
		g.pause(time.Hour)
		time.Sleep(time.Hour - 300*time.Millisecond)
		if f := must(g.Status(t.Context(), feedURL)); time.Until(f.NextPoll) != 300*time.Millisecond {
			t.Errorf("the next poll is shown in %v, want 300ms", time.Until(f.NextPoll))
		}
	})
}

func TestUnwantedFeedsAreForgotten(t *testing.T) {
	bubble(t, func(t *testing.T, dir string) {
		g := newGateway(t, dir, func(ask policy.Ask) policy.Answer {
			if ask.URL.String() == feedURL {
				return ok(rss(2, ""))
			}
			return failed(404, policy.FailureNotFound)
		})
		g.settings.IdleAfter = 24 * time.Hour
		g.settings.Feeds = []string{"https://pinned.test/"}
		g.open()
		defer func() { g.close() }()
		for i := range 100 {
			g.get(fmt.Sprintf("https://invented%d.test/", i))
		}
		g.get(feedURL)
		g.get("https://pinned.test/")
		time.Sleep(36 * time.Hour)
		if got := g.accounts(); len(got) != 2 {
			t.Errorf("%d feeds are known, want the good one and the pinned one", len(got))
		}
		if err := g.store.Forget(t.Context(), cache.IDOf("https://pinned.test/")); err != nil { // as another node does
			t.Fatal(err)
		}
		time.Sleep(11 * time.Minute)
		if !g.knows("https://pinned.test/") {
			t.Error("the pinned feed stays forgotten")
		}
		time.Sleep(5 * 24 * time.Hour)
		g.restart()
		if got := g.accounts(); len(got) != 1 {
			t.Errorf("%d feeds are known, want the pinned one", len(got))
		}
	})
}

// A feed that is polled every few seconds does not wait for the next look at what is due.
func TestPrefetchOfShortIntervals(t *testing.T) {
	bubble(t, func(t *testing.T, dir string) {
		g := newGateway(t, dir, func(policy.Ask) policy.Answer {
			return ok(rss(2, ""), "ETag", `"v"`, "Cache-Control", "max-age=3")
		})
		rules := g.settings.Rules(cache.ParseKey(feedURL))
		rules.MinInterval, rules.Jitter = 3*time.Second, 0
		g.settings.Rules = func(cache.Key) policy.Rules { return rules }
		g.settings.Prefetch, g.settings.Feeds = true, []string{feedURL}
		g.open()
		defer g.close()
		time.Sleep(time.Minute)
		if n := g.origin.polls(); n < 15 || n > 20 {
			t.Errorf("%d polls within a minute, want about one every 3 s", n)
		}
	})
}

// The URL of a feed that has never answered may be no more than a mistake.
func TestPrefetchGivesUpFeedsWithoutReaders(t *testing.T) {
	bubble(t, func(t *testing.T, dir string) {
		const configured = "https://pinned.test/"
		g := newGateway(t, dir, func(policy.Ask) policy.Answer { return failed(404, policy.FailureNotFound) })
		g.settings.Prefetch = true
		g.settings.Feeds = []string{configured}
		g.open()
		defer g.close()
		time.Sleep(17 * time.Minute) // so that polls do not fall together with sweeps
		g.get(feedURL)
		time.Sleep(8 * 24 * time.Hour)
		polls := map[string]int{}
		g.origin.mu.Lock()
		for _, ask := range g.origin.asks {
			polls[ask.URL.String()]++
		}
		g.origin.mu.Unlock()
		if polls[feedURL] > 6 {
			t.Errorf("%d polls of what was asked for once", polls[feedURL])
		}
		if polls[configured] < 8 {
			t.Errorf("%d polls of a configured feed that will come", polls[configured])
		}
		if g.knows(feedURL) || !g.knows(configured) {
			t.Errorf("what was asked for once is known: %v, the configured feed: %v", g.knows(feedURL), g.knows(configured))
		}
	})
}

// A clock that was years ahead for a moment does not keep feeds for years.
func TestLastReaderIsNotInTheFuture(t *testing.T) {
	bubble(t, func(t *testing.T, dir string) {
		var skew atomic.Int64
		skew.Store(int64(10 * 365 * 24 * time.Hour))
		g := newGateway(t, dir, func(policy.Ask) policy.Answer { return ok(rss(2, ""), "ETag", `"v"`) })
		store := g.reopenAt(func() time.Time { return time.Now().Add(time.Duration(skew.Load())) })
		g.get(feedURL)
		skew.Store(0)
		g.get(feedURL)
		if account, err := g.Status(t.Context(), feedURL); err != nil || account.LastAsked.After(time.Now()) {
			t.Errorf("asked for at %v, %v", account.LastAsked, err)
		}
		g.closeWith(store)
	})
}

// A machine that wakes up finds feeds due by the store's clock before the engine has
// looked at its own: they are polled, and not put off once more.
func TestFeedsAreDueWhenTheMachineWakesUp(t *testing.T) {
	for awake := range 4 {
		bubble(t, func(t *testing.T, dir string) {
			g := newGateway(t, dir, func(policy.Ask) policy.Answer { return ok(rss(2, ""), "ETag", `"v"`, "Cache-Control", "max-age=36000") })
			g.settings.Prefetch, g.settings.Feeds = true, []string{feedURL}
			var slept atomic.Int64
			asleep := func() time.Duration { return time.Duration(slept.Load()) }
			store := sqlite.NewMemory(func() time.Time { return time.Now().Add(asleep()) })
			var err error
			if g.Cache, err = cache.New(cache.Options{Store: store, Origin: g.origin, Memory: 1 << 20, Suspended: asleep}); err != nil {
				t.Fatal(err)
			}
			g.Apply(g.settings)
			defer g.closeWith(store)
			time.Sleep(time.Hour + 4*time.Duration(awake)*time.Second)
			slept.Add(int64(12 * time.Hour))
			g.Apply(g.settings) // the prefetching looks at once
			time.Sleep(5 * time.Minute)
			if n := g.origin.polls(); n != 2 {
				t.Errorf("%d polls five minutes after the machine has slept over the second one", n)
			}
		})
	}
}
