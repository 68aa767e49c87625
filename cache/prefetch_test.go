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
	"github.com/feedpollard/pollard/policy"
)

func TestPrefetchPollsConfiguredFeedsUntilTheyAreIdle(t *testing.T) {
	slow(t)
	synctest.Test(t, func(t *testing.T) {
		g := newGateway(t, func(policy.Ask) policy.Answer { return ok(rss(2, ""), "ETag", `"v"`, "Cache-Control", "max-age=86400") })
		g.settings.Prefetch = true
		g.settings.IdleAfter = 3 * 24 * time.Hour
		g.settings.Feeds = []string{feedURL}
		g.open()
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

// The store learns that a feed that it knows has been configured, and that one is configured no more, on all nodes:
// one that does not have it in its configuration does not change that.
func TestConfiguredInBothDirections(t *testing.T) {
	slow(t)
	for _, prefetch := range []bool{false, true} {
		bubble(t, fmt.Sprint("prefetch ", prefetch), func(t *testing.T) {
			g := newGateway(t, func(policy.Ask) policy.Answer { return ok(rss(3, "")) })
			g.settings.Prefetch = prefetch
			g.by = store.Any
			g.open()
			other := node(t, g.store.Store, g.origin, g.settings)
			defer other.Cache.Close()
			record := func() store.Record {
				return must(g.store.Lookup(t.Context(), []store.ID{store.IDOf(feedURL)}))[0]
			}
			live := func(days int) {
				for range 24 * days {
					time.Sleep(time.Hour)
					g.get(feedURL)
					other.get(feedURL)
				}
			}
			wantBody(t, g.get(feedURL), 200, "Entry")
			g.settings.Feeds = []string{feedURL}
			g.Apply(g.settings)
			time.Sleep(time.Second)
			if !record().Configured {
				t.Error("the store does not know at once that the feed is configured")
			}
			for range 4 {
				live(3)
				if r := record(); !r.Configured || r.Owner != store.Operator {
					t.Errorf("the configured feed counts for %x", r.Owner)
				}
			}
			if ids, err := g.store.Sweep(t.Context(), store.SweepQuery{Disk: 1}); err != nil || len(ids) > 0 {
				t.Errorf("the version of a configured feed gave way: %v", err)
			}
			g.settings.Feeds = nil
			g.Apply(g.settings)
			live(3)
			if r := record(); r.Configured || r.Owner != store.Any {
				t.Errorf("the feed that was taken out counts for %x", r.Owner)
			}
		})
	}
}

// A reload with the same feeds writes nothing, however many these are.
func TestReloadWritesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGateway(t, func(policy.Ask) policy.Answer { return ok(rss(2, "")) })
		for i := range 300 {
			g.settings.Feeds = append(g.settings.Feeds, fmt.Sprintf("https://host%d.test/feed", i))
		}
		g.open()
		time.Sleep(time.Second)
		var writes atomic.Int64
		g.store.hook(func(_ context.Context, call string) error {
			if call == "Restore" || call == "Claim" || call == "Touch" || call == "Commit" {
				writes.Add(1)
			}
			return nil
		}, nil)
		g.Apply(g.settings)
		time.Sleep(time.Second)
		if n := writes.Load(); n != 0 || !g.knows("https://host299.test/feed") {
			t.Errorf("%d writes", n)
		}
		g.settings.Feeds = append(g.settings.Feeds, feedURL)
		g.Apply(g.settings)
		time.Sleep(time.Second)
		if n := writes.Load(); n != 1 || !g.knows(feedURL) {
			t.Errorf("%d writes for one feed more", n)
		}
	})
}

// Centuries, by which an operator means never, are longer than a duration can hold in threes.
func TestWithoutPrefetchNothingIsPolled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGateway(t, func(policy.Ask) policy.Answer { return ok(rss(2, "")) })
		g.settings.Feeds, g.settings.IdleAfter = []string{"https://pinned.test/"}, math.MaxUint64/3+1 // 195 years
		g.open()
		g.get(feedURL)
		time.Sleep(7 * 24 * time.Hour)
		if n := g.origin.polls(); n != 1 || !g.knows(feedURL) {
			t.Errorf("%d polls with one reader", n)
		}
	})
}

func TestManyDueFeedsAreSpread(t *testing.T) {
	slow(t)
	synctest.Test(t, func(t *testing.T) {
		g := newGateway(t, func(policy.Ask) policy.Answer { return ok(rss(2, "")) })
		g.settings.Prefetch = true
		for i := range 1000 {
			g.settings.Feeds = append(g.settings.Feeds, fmt.Sprintf("https://host%d.test/feed", i))
		}
		g.open()
		time.Sleep(time.Minute)
		if n := g.origin.polls(); n > 1000 || n < 900 {
			t.Errorf("%d polls in the first minute, want at most sixteen a second", n)
		}
		time.Sleep(time.Minute)
		if n := g.origin.polls(); n != 1000 {
			t.Errorf("%d polls after two minutes, want all 1000", n)
		}
	})
}

// Feeds of one domain are asked one after the other, and all of them come.
func TestManyFeedsOfADomainAreSpread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGateway(t, func(policy.Ask) policy.Answer { return ok(rss(2, "")) })
		g.origin.spacing, g.settings.Prefetch = 2*time.Second, true
		for i := range 300 {
			g.settings.Feeds = append(g.settings.Feeds, fmt.Sprintf("https://host%d.example.com/feed", i))
		}
		g.open()
		time.Sleep(11 * time.Minute)
		at := g.origin.times()
		if len(at) != 300 {
			t.Errorf("%d polls after eleven minutes, want all 300", len(at))
		}
		for i := 1; i < len(at); i++ {
			if gap := at[i].Sub(at[i-1]); gap < g.origin.spacing-time.Millisecond {
				t.Errorf("a poll %v after the one before", gap)
			}
		}
	})
}

// The time that is shown is that of the next poll: neither a lease that is not used nor the last
// moment of a pause of the host puts it off.
func TestTimeThatIsShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGateway(t, func(policy.Ask) policy.Answer { return ok(rss(2, "")) })
		g.settings.Prefetch, g.settings.Feeds = true, []string{feedURL}
		g.store.hook(nil, func(call string, result any) error {
			if leases, ok := result.(*[]store.Lease); ok && len(*leases) > 0 {
				go g.Cache.Close()
				time.Sleep(time.Millisecond)
			}
			return nil
		})
		g.open()
		time.Sleep(500 * time.Millisecond)
		if r := must(g.store.Records(t.Context(), store.ID{}, 1, false)); len(r) != 1 || r[0].In > 0 || g.origin.polls() > 0 {
			t.Errorf("%d polls, %+v, want the feed still due", g.origin.polls(), r)
		}
		g.store.hook(nil, nil)
		g.settings.Prefetch = false
		g.open()
		g.pause(time.Hour)
		time.Sleep(time.Hour - 300*time.Millisecond)
		if f := must(g.Status(t.Context(), feedURL)); time.Until(f.NextPoll) != 300*time.Millisecond {
			t.Errorf("the next poll is shown in %v, want 300ms", time.Until(f.NextPoll))
		}
	})
}

func TestUnwantedFeedsAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGateway(t, func(ask policy.Ask) policy.Answer {
			if ask.URL.String() == feedURL {
				return ok(rss(2, ""))
			}
			return failed(404, policy.FailureNotFound)
		})
		g.settings.IdleAfter = 48 * time.Hour
		g.settings.Feeds = []string{"https://pinned.test/"}
		g.open()
		for i := range 100 {
			g.get(fmt.Sprintf("https://invented%d.test/", i))
		}
		g.get(feedURL)
		g.get("https://pinned.test/")
		time.Sleep(80 * time.Hour)
		if got := g.accounts(); len(got) != 2 {
			t.Errorf("%d feeds are known, want the good one and the pinned one", len(got))
		}
		if err := g.store.Forget(t.Context(), store.IDOf("https://pinned.test/")); err != nil { // as another node does
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
	synctest.Test(t, func(t *testing.T) {
		g := newGateway(t, func(policy.Ask) policy.Answer {
			return ok(rss(2, ""), "ETag", `"v"`, "Cache-Control", "max-age=3")
		})
		g.often(3 * time.Second)
		g.settings.Prefetch, g.settings.Feeds = true, []string{feedURL}
		g.open()
		time.Sleep(time.Minute)
		if n := g.origin.polls(); n < 15 || n > 21 {
			t.Errorf("%d polls within a minute, want about one every 3 s", n)
		}
	})
}

// A poll that ends while prefetch reads what is due is not overlooked: the reading has not seen when the feed is due next.
func TestPollThatEndsDuringTheReadingOfWhatIsDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var slow atomic.Bool
		g := newGateway(t, func(policy.Ask) policy.Answer {
			if slow.Load() {
				time.Sleep(time.Second)
			}
			return ok(rss(2, ""), "ETag", `"v"`, "Cache-Control", "max-age=3")
		})
		g.often(3 * time.Second)
		g.settings.Prefetch, g.settings.Feeds = true, []string{feedURL}
		g.open()
		time.Sleep(11 * time.Second)
		last := g.origin.polls()
		slow.Store(true)
		g.store.delay(time.Second, "Due") // from the next poll on, what is due is read twice: what is poked, and after a second the rest
		time.Sleep(1500 * time.Millisecond)
		g.get(feedURL) // the poll of a reader is under way then, and ends before the reading does
		if n := g.origin.polls(); n != last+1 {
			t.Fatalf("%d polls, want one more than %d", n, last)
		}
		time.Sleep(3 * time.Second)
		slow.Store(false)
		g.store.hook(nil, nil)
		time.Sleep(30 * time.Second)
		if n := g.origin.polls() - last; n < 9 {
			t.Errorf("%d polls within half a minute, want about one every 3 s", n)
		}
	})
}

// A clock that was years ahead for a moment does not keep feeds for years.
func TestLastReaderIsNotInTheFuture(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var skew atomic.Int64
		skew.Store(int64(10 * 365 * 24 * time.Hour))
		g := newGateway(t, func(policy.Ask) policy.Answer { return ok(rss(2, ""), "ETag", `"v"`) })
		g.now = func() time.Time { return time.Now().Add(time.Duration(skew.Load())) }
		g.open().get(feedURL)
		skew.Store(0)
		g.get(feedURL)
		if account, err := g.Status(t.Context(), feedURL); err != nil || account.LastAsked.After(time.Now()) {
			t.Errorf("asked for at %v, %v", account.LastAsked, err)
		}
	})
}

// A shield that is taken out of the configuration and put back is polled for its next reader, or soon. So it is if a
// min_interval was longer for a while.
func TestWhatSettingsPutOff(t *testing.T) {
	const key = "shield/feed.xml"
	for name, c := range map[string]struct {
		prefetch bool
		longest  time.Duration // before it is polled again
		change   func(g *gateway)
	}{
		"a shield, prefetched": {true, 3 * time.Minute, func(g *gateway) { g.settings.Site = nil }},
		"a shield":             {false, time.Second, func(g *gateway) { g.settings.Site = nil }},
		"min_interval":         {false, time.Second, func(g *gateway) { g.often(240 * time.Hour) }},
	} {
		bubble(t, name, func(t *testing.T) {
			entries := 1
			g := newGateway(t, func(policy.Ask) policy.Answer { return ok(rss(entries, ""), "Cache-Control", "max-age=60") })
			g.often(time.Minute)
			g.settings.Prefetch = c.prefetch
			g.settings.Site = func(string) cache.Origin { return g.origin }
			g.open()
			g.get(key)
			entries = 2
			before := g.settings
			c.change(g)
			g.Apply(g.settings)
			time.Sleep(2 * time.Minute)
			g.get(key)
			if time.Sleep(time.Second); g.origin.polls() != 1 {
				t.Fatalf("%d polls", g.origin.polls())
			}
			g.Apply(before)
			time.Sleep(c.longest)
			wantBody(t, g.get(key), 200, "Entry 2")
		})
	}
}
