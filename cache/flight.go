// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"time"
)

// flight is a poll under way. All who want it wait for the same one. Unlike a
// plain singleflight it knows when it began: a poll that has been slow for some
// seconds keeps no further reader waiting.
type flight struct {
	began time.Time
	done  chan struct{}
}

// board returns the feed's poll under way, or starts one, detached from whoever
// asked for it: it goes on when the reader leaves. It returns nil when no poll
// can be started, as the cache is closing. A poll that is made on behalf of
// others' polls names them in trail.
func (f *Feed) board(force bool, trail ...*Feed) (fl *flight, joined bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.flight != nil {
		return f.flight, true
	}
	fl = &flight{began: f.cache.now(), done: make(chan struct{})}
	if !f.cache.background(func() {
		defer f.land(fl)
		f.poll(f.cache.life, force, trail)
	}) {
		return nil, false
	}
	f.flight = fl
	return fl, false
}

func (f *Feed) land(fl *flight) {
	f.mu.Lock()
	f.flight = nil
	f.site.Store(nil) // a site is shown anew for each poll
	if f.expired.Load() && f.shielded() {
		f.postpone(f.state.Load(), f.cache.now(), hintRefresh) // while it was under way
	}
	f.mu.Unlock()
	close(fl.done)
}

// wait waits for the poll until it is done, for at most d since it began. It
// reports whether the poll is done.
func (fl *flight) wait(ctx context.Context, d time.Duration, now time.Time) bool {
	d -= now.Sub(fl.began)
	if d <= 0 {
		select {
		case <-fl.done:
			return true
		default:
			return false
		}
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-fl.done:
		return true
	case <-t.C:
	case <-ctx.Done():
	}
	return false
}
