// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"time"

	"github.com/feedpollard/pollard/cache/store"
)

// Ping says that a feed has changed: the next request polls it, on all nodes, as soon as MinInterval
// has passed since its last poll. Retry-After, rate limits and back-off stand. It fails with
// [ErrUnknownFeed], or if the store cannot be written.
func (c *Cache) Ping(ctx context.Context, key string) error {
	f, err := c.existing(ctx, key)
	if err != nil {
		return err
	}
	f = f.use()
	if !f.pinged.CompareAndSwap(false, true) {
		f.leave()
		return nil // an earlier one has to wait
	}
	end := func() {
		f.pinged.Store(false)
		f.leave()
	}
	began := c.elapsed()
	wait, err := f.ping(ctx, began)
	if wait <= 0 || err != nil {
		end()
		return err
	}
	if !c.background(func() {
		defer end()
		for wait > 0 && err == nil && sleep(c.open, wait) {
			wait, err = f.ping(c.open, began)
		}
		if err != nil && c.open.Err() == nil {
			c.log().Warn("publish ping is lost, as the store cannot be written", urlField(f.key.text), errField(err))
		}
	}) {
		end()
	}
	return nil
}

// ping makes a feed due because of a ping. If that is too early, it returns how long to wait.
func (f *Feed) ping(ctx context.Context, started time.Duration) (wait time.Duration, err error) {
	c, floor := f.cache, f.rules().MinInterval
	own, _ := f.blockPolls()
	if own == nil {
		return time.Second, nil // the answer may be older than the ping
	}
	defer f.finish(own)
	s, now := f.state.Load(), c.elapsed()
	if s.ended || s.dueAt(now) || s.feed.History.Failures > 0 || s.notBefore > now || s.granted > started {
		return 0, nil
	}
	if wait := floor - (now - s.granted); wait > 0 {
		return wait, nil
	}
	// All nodes see a claim that is returned at once.
	leases, err := c.store.Claim(ctx, []store.Claim{{
		ID: f.id, URL: f.key.text, Hold: s.leaseTime(f.rules()), Floor: max(floor, time.Nanosecond), Configured: f.configured(),
	}})
	if err != nil {
		return 0, err
	}
	lease := &leases[0]
	s = f.adopt(lease.Record)
	if lease.Denied != "" {
		return lease.Wait, nil // another node has polled the feed
	}
	next := *s
	next.deferredUntil, next.due = 0, c.elapsed()
	if err := f.commit(ctx, s, &next, lease, store.Outcome{Returned: true}); err != nil {
		return 0, err
	}
	f.publish(&next)
	return 0, nil
}
