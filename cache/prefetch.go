// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"time"
)

const (
	// prefetchGap is the least time between the starts of two prefetching polls,
	// whatever their hosts: a thousand feeds that are due after a restart are
	// spread over two minutes, and no resolver or uplink sees a burst.
	prefetchGap = 125 * time.Millisecond
	// prefetchers is how many of them may be under way at once.
	prefetchers = 32
	// drowse is how often the agenda is looked at when nothing is on it.
	drowse = time.Hour
)

// prefetch polls due feeds in the background, where that is switched on, until
// the cache is closed.
func (c *Cache) prefetch(ctx context.Context) {
	slots := make(chan struct{}, prefetchers)
	for ctx.Err() == nil {
		if !c.settings.Load().Prefetch {
			c.agenda.wait(ctx, drowse)
			continue
		}
		f, at, some := c.agenda.take(c.now())
		switch {
		case !some:
			c.agenda.wait(ctx, drowse)
			continue
		case f == nil:
			c.agenda.wait(ctx, at.Sub(c.now()))
			continue
		case f.idle(c.now()):
			continue // it goes back on the agenda when somebody asks for it
		}
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			return
		}
		fl, _ := f.board(false)
		if fl == nil { // it has been forgotten, or the cache is closing
			<-slots
			continue
		}
		c.background(func() {
			<-fl.done
			<-slots
		})
		c.pauseFor(ctx, prefetchGap)
	}
}

// idle reports whether nobody has asked for the feed for so long that it is not
// prefetched any more. For one that has never had a version a day is enough, unless
// it is configured: its URL may be no more than a mistake.
func (f *Feed) idle(now time.Time) bool {
	after := f.cache.settings.Load().IdleAfter
	if f.state.Load().Version == 0 && !f.pinned() {
		after = min(after, 24*time.Hour)
	}
	return now.Unix()-f.asked.Load() > int64(after/time.Second)
}

func (c *Cache) pauseFor(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
