// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"math"
	"time"

	"go.uber.org/zap"

	"github.com/feedpollard/pollard/cache/feedstate"
	"github.com/feedpollard/pollard/cache/store"
)

const (
	// lookEvery is how often the clock is compared with the system's.
	lookEvery = 10 * time.Second
	// storeReadersEvery is how often the store learns which feeds readers have asked for.
	storeReadersEvery = time.Minute
	// sweepEvery is how often feeds without readers are forgotten, and bodies beyond the budget
	// dropped.
	sweepEvery = time.Hour
	// forgetShielded is how long a shielded feed without readers is kept, as its origin is near, and may have any
	// number of URLs: a day, and by what a daily reader may be late.
	forgetShielded = 30 * time.Hour
	// shieldKeys is how many feeds of a shield are kept that no reader asked for again.
	shieldKeys = 1000
	// forgetIdle is how long a feed with a version and without readers is kept, in units of
	// [Settings.IdleAfter].
	forgetIdle = 3
	// forgetUnread is how long a feed without a version and without readers is kept.
	forgetUnread = 3 * 24 * time.Hour
	// trimEvery is how many bytes of bodies are stored, at most, before the store is held to its
	// budget again.
	trimEvery = 64 << 20
)

func (c *Cache) maintain(ctx context.Context) {
	look, readers, sweep := time.NewTicker(lookEvery), time.NewTicker(storeReadersEvery), time.NewTicker(sweepEvery)
	defer look.Stop()
	defer readers.Stop()
	defer sweep.Stop()
	for {
		select {
		case <-look.C:
			c.checkClock()
		case <-c.overBudget:
			c.storeReaders(ctx)
			c.evict()
		case <-c.full:
			if c.recordConfigured(ctx) == nil { // otherwise the store does not know which feeds have to stay
				c.trim(ctx)
			}
		case <-readers.C:
			c.storeReaders(ctx)
			c.evict() // those whose polls were under way when memory was over its budget
			c.memory.share(c.table.size.Load())
		case <-sweep.C:
			c.sweep(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// checkClock notices that the machine was suspended.
func (c *Cache) checkClock() {
	if c.look() {
		c.log().Info("the machine was suspended: time has passed for all feeds")
		c.wake(c.changed)
	}
}

// storeReaders writes to the store which feeds readers have asked for.
func (c *Cache) storeReaders(ctx context.Context) {
	now := c.elapsed()
	asked, seconds := map[store.ID]store.Asked{}, map[*Feed]int64{}
	var known *Feed
	c.table.feeds.Range(func(_, v any) bool {
		f := v.(*Feed)
		if f.state.Load().Recorded {
			known = f
		}
		second, by := f.asked.Load(), f.askedBy()
		memo := f.addHubNews()
		if (second != f.touched.Load() || len(by) > 0 || memo != nil) && f.state.Load().Recorded {
			asked[f.id], seconds[f] = store.Asked{Ago: f.sinceAsked(now), Own: f.own.Load(), By: by, FeedState: memo}, second
		}
		return true
	})
	if len(asked) == 0 && known != nil && c.storeAway.text() != "" {
		// Without readers no claim finds out that the store is back, and while it is away, a load balancer sends none.
		asked[known.id] = store.Asked{Ago: -1}
	}
	if len(asked) == 0 {
		return
	}
	if err := c.store.Touch(ctx, asked); err != nil {
		return // tried again in a minute
	}
	c.storeAnswered() // also if no poll is due
	for f, second := range seconds {
		f.touched.Store(second)
		f.askersStored(asked[f.id].By)
		if asked[f.id].FeedState != nil {
			f.hubStored()
		}
	}
}

// sweep forgets feeds without readers, drops bodies beyond the budget, and finds sites whose pace is too slow.
func (c *Cache) sweep(ctx context.Context) {
	c.storeReaders(ctx) // what was asked for in the last minute stays
	s := c.settings.Load()
	s.recorded.Store(false)
	if c.recordConfigured(ctx) != nil {
		return // the store does not know which feeds have to stay
	}
	ids, err := c.store.Sweep(ctx, store.SweepQuery{
		Idle: forgetIdle * min(s.IdleAfter, math.MaxInt64/forgetIdle), Unread: forgetUnread, Shielded: forgetShielded, ShieldKeys: shieldKeys,
	})
	c.forgotten(ids)
	if err != nil {
		c.log().Error("feeds without readers could not be forgotten", errField(err))
		return
	}
	c.trim(ctx)
	c.lookForSlow(ctx)
}

// grown counts what was stored. A tenth of the budget may come before it is looked at again, also between two sweeps.
func (c *Cache) grown(bytes int64) {
	if c.written.Add(bytes) > min(c.settings.Load().Disk/10, trimEvery) {
		c.wake(c.full)
	}
}

// Crowded reports whether the disk budget has no room for a new feed of strangers, as what is remembered of
// such feeds takes all that they may take.
func (c *Cache) Crowded() bool { return c.crowded.Load() }

// trim drops bodies beyond the budget.
func (c *Cache) trim(ctx context.Context) {
	disk := c.settings.Load().Disk
	c.written.Store(0)
	trimmed, err := c.store.Sweep(ctx, store.SweepQuery{Disk: disk})
	for _, id := range trimmed { // readers who wait for one get it all the same
		if f, ok := c.table.ids.Load(id); ok {
			c.readLater(f.(*Feed))
		}
	}
	if err != nil {
		c.log().Error("feeds beyond the disk budget could not be dropped", errField(err))
	}
	if len(trimmed) > 0 {
		c.log().Info("feeds were forgotten to stay within the disk budget", zap.Int("feeds", len(trimmed)), zap.Int64("disk", disk))
	}
	totals, err := c.store.Totals(ctx)
	if err != nil {
		return
	}
	if totals.Crowded != c.crowded.Swap(totals.Crowded) && totals.Crowded {
		c.log().Warn("what is remembered of feeds of strangers takes its part of the disk, which is used up: they cannot add feeds",
			zap.Int64("disk", disk))
	}
	if over := totals.Operator - disk; over > 0 && !c.over.Swap(true) {
		c.log().Warn("versions of configured feeds take more than the disk budget: they stay, and no others are stored",
			zap.Int64("disk", disk), zap.Int64("over", over))
	} else if over <= 0 {
		c.over.Store(false)
	}
	if totals.Short != c.short.Swap(totals.Short) && totals.Short {
		c.log().Warn("the disk of the store is nearly full: what is stored stays, and new feeds are served from memory alone: make room on it",
			zap.Int64("used", totals.Used))
	}
}

// forgotten drops from memory what has been forgotten by the store.
func (c *Cache) forgotten(ids []store.ID) {
	var keys []string
	for _, id := range ids {
		if f, ok := c.table.ids.Load(id); ok {
			f := f.(*Feed)
			keys = append(keys, f.key.String())
			c.drop(f, false)
			f.publish(feedstate.Unknown())
		}
	}
	if len(keys) > 0 {
		c.settings.Load().Forgotten(keys)
	}
}
