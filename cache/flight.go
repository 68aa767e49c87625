// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"runtime/debug"
	"time"

	"go.uber.org/zap"
)

// flight is a poll under way. All who want it wait for the same one. Unlike a
// plain singleflight it knows when it began: a poll that has been slow for some
// seconds keeps no further reader waiting.
//
// It is also the right to change the feed's state: whoever has the flight may
// publish one, and without a flight only the holder of the feed's lock may.
type flight struct {
	began time.Time
	done  chan struct{}
}

// board returns the feed's poll under way, or starts one, detached from whoever
// asked for it: it goes on when the reader leaves. It returns nil when no poll
// can be started, as the cache is closing or the feed has been forgotten. A poll
// that is made on behalf of others' polls names them in trail.
func (f *Feed) board(force bool, trail ...*Feed) (fl *flight, joined bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.flight != nil {
		return f.flight, true
	}
	if f.forgotten.Load() {
		return nil, false
	}
	fl = f.newFlight()
	if !f.cache.background(func() {
		defer f.land(fl)
		defer f.survive()
		f.poll(f.cache.life, force, trail)
	}) {
		return nil, false
	}
	f.flight = fl
	return fl, false
}

// occupy keeps polls of the feed away, for somebody else to change its state, who
// lets the flight that it returns land afterwards. Where a poll is under way it
// returns that one as other; where the feed has been forgotten, neither.
func (f *Feed) occupy() (own, other *flight) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.flight != nil {
		return nil, f.flight
	}
	if f.forgotten.Load() {
		return nil, nil
	}
	f.flight = f.newFlight()
	return f.flight, nil
}

func (f *Feed) newFlight() *flight {
	return &flight{began: f.cache.now(), done: make(chan struct{})}
}

// underWay is the poll under way; nil: there is none.
func (f *Feed) underWay() *flight {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.flight
}

func (f *Feed) land(fl *flight) {
	f.mu.Lock()
	f.flight = nil
	f.site.Store(nil) // a site is shown anew for each poll
	if f.expired.Load() && f.shielded() {
		f.reschedule(f.state.Load(), f.cache.now(), hintRefresh) // while it was under way
	}
	f.mu.Unlock()
	close(fl.done)
}

// survive keeps a document or a site that makes our code panic from taking the
// whole server with it. The poll's reservation stands in the store: the next one
// finds its own token spent, and takes the schedule over from there.
func (f *Feed) survive() {
	if p := recover(); p != nil {
		f.cache.log().Error("poll panicked, its outcome is lost", urlField(f.url), zap.Any("panic", p), zap.ByteString("stack", debug.Stack()))
	}
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
