// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"time"
)

const (
	sweepEvery = time.Hour
	// forgetUnread is how long a feed without a version is remembered after the
	// last reader asked for it, beyond the time of its next poll.
	forgetUnread = time.Hour
	// forgetIdle is the same for a feed with a version, in units of the time after
	// which prefetching sleeps.
	forgetIdle = 3
	// forgetShielded is the same for a shielded feed: its site is near, and whoever
	// asks for it with ever new queries must not fill the store.
	forgetShielded = 24 * time.Hour
	// sweepBatch is how many feeds one transaction forgets.
	sweepBatch = 500
)

// sweep forgets feeds that nobody wants any more, so that neither the table nor
// the store grows without bound.
func (c *Cache) sweep(ctx context.Context) {
	for {
		c.pauseFor(ctx, sweepEvery)
		if ctx.Err() != nil {
			return
		}
		now := c.now()
		var unwanted []*Feed
		c.feeds.Range(func(_, v any) bool {
			if f := v.(*Feed); f.unwanted(now) {
				unwanted = append(unwanted, f)
			}
			return len(unwanted) < sweepBatch
		})
		if err := c.forget(ctx, unwanted); err != nil {
			c.log().Error("unwanted feeds could not be forgotten", errField(err))
		}
	}
}

// unwanted reports whether a feed may be forgotten. Never before its next poll:
// its record is what keeps a newcomer of the same URL from polling too early.
func (f *Feed) unwanted(now time.Time) bool {
	s := f.state.Load()
	if f.pinned.Load() || !s.due(now) && s.Next.Year() < 9999 {
		return false
	}
	idle := now.Sub(time.Unix(f.asked.Load(), 0))
	if s.Version == 0 {
		return idle > forgetUnread
	}
	if f.shielded() {
		return idle > forgetShielded
	}
	return idle > forgetIdle*f.cache.settings.Load().IdleAfter
}

// forget removes feeds from the table and then from the store.
func (c *Cache) forget(ctx context.Context, feeds []*Feed) error {
	var ids []ID
	for _, f := range feeds {
		f.mu.Lock()
		busy := f.flight != nil
		if !busy {
			c.feeds.CompareAndDelete(f.url, f)
		}
		f.mu.Unlock()
		if busy {
			continue
		}
		c.agenda.remove(f)
		f.discounted()
		ids = append(ids, f.id)
	}
	if len(ids) == 0 {
		return nil
	}
	return c.store.Forget(ctx, ids)
}
