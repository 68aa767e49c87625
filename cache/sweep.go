// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"time"

	"github.com/feedpollard/pollard/policy"
)

const (
	sweepEvery = time.Hour
	// forgetUnread is how long a feed without a version is remembered after the
	// last reader asked for it, beyond the time of its next poll.
	forgetUnread = time.Hour
	// forgetGone is the same for one whose origin has said gone: while it is
	// remembered, no reader causes another poll.
	forgetGone = 7 * 24 * time.Hour
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
		var unwanted []*Feed
		now := c.now()
		c.feeds.Range(func(_, v any) bool {
			if f := v.(*Feed); f.unwanted(now) {
				unwanted = append(unwanted, f)
			}
			return true
		})
		for len(unwanted) > 0 && ctx.Err() == nil {
			n := min(len(unwanted), sweepBatch)
			if _, err := c.forget(ctx, unwanted[:n], func(f *Feed) bool { return f.unwanted(now) }); err != nil {
				c.log().Error("unwanted feeds could not be forgotten", errField(err))
				break
			}
			unwanted = unwanted[n:]
		}
	}
}

// unwanted reports whether a feed may be forgotten. Never before its next poll:
// its record is what keeps a newcomer of the same URL from polling too early.
func (f *Feed) unwanted(now time.Time) bool {
	s := f.state.Load()
	if f.pinned() || !s.due(now) && !s.never() {
		return false
	}
	idle := now.Sub(time.Unix(f.asked.Load(), 0))
	switch {
	case s.Version == 0 && s.memo.Last.Failure == policy.FailureGone && f.cache.unread.Load() < maxUnread/2:
		return idle > forgetGone
	case s.Version == 0:
		return idle > forgetUnread
	case f.shielded():
		return idle > forgetShielded
	}
	return idle > forgetIdle*f.cache.settings.Load().IdleAfter
}

// forget removes feeds from the store and then from the table, except for those
// that are being polled, and those that are not unwanted after all when polls
// cannot come between any more; it tells how many there were. Configured feeds stay in the table, as ones that
// have never been polled.
func (c *Cache) forget(ctx context.Context, feeds []*Feed, unwanted func(*Feed) bool) (int, error) {
	var ids []ID
	var occupied []*Feed
	for _, f := range feeds {
		own, _ := f.occupy()
		if own == nil {
			continue
		}
		defer f.land(own)
		if unwanted(f) {
			ids, occupied = append(ids, f.id), append(occupied, f)
		}
	}
	if len(ids) == 0 {
		return 0, nil
	}
	if err := c.store.Forget(ctx, ids); err != nil {
		return 0, err
	}
	for _, f := range occupied {
		c.memory.drop(f.key)
		c.finals.release(f, f.state.Load())
		if f.pinned() {
			f.publish(&state{memo: memo{Asked: c.now()}}, nil)
			continue
		}
		// Handles of it that are still about find the one that comes after it. The
		// order matters: what is marked does not get back on the agenda.
		f.forgotten.Store(true)
		c.feeds.CompareAndDelete(f.url, f)
		c.agenda.remove(f)
		f.discounted()
	}
	return len(ids), nil
}
