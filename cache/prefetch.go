// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/feedpollard/pollard/cache/feedstate"
	"github.com/feedpollard/pollard/cache/queue"
	"github.com/feedpollard/pollard/cache/store"
)

const (
	// dueEvery is how often the store is asked from the start what is due: another node may have changed it, or
	// have stopped.
	dueEvery = 10 * time.Minute
	// dueAgain is the least time between two such times.
	dueAgain = 5 * time.Second
	// dueAtOnce is how many feeds that are due are read at once.
	dueAtOnce = 2000
)

// prefetch reads from the store which feeds are due, so that they have their turn without readers: all of them if
// the operator wants that, and those that are poked.
func (c *Cache) prefetch(ctx context.Context) {
	d := dueFeeds{begun: -dueEvery}
	for ctx.Err() == nil {
		began := c.elapsed()
		c.looks.Store(math.MaxInt64) // a commit that is not read now has it read again
		unrecorded := c.recordConfigured(ctx)
		wait, err := c.readDue(ctx, &d)
		if unrecorded != nil {
			wait = min(wait, storeRetry)
		}
		if err != nil && ctx.Err() == nil {
			c.logUnreadable("feeds that are due cannot be read", "", err)
			wait = storeRetry
		}
		wait = min(wait, dueEvery)
		c.looks.Store(int64(c.elapsed() + wait))
		c.waitForChange(ctx, wait)
		sleep(ctx, began+leastDue-c.elapsed())
	}
}

// leastDue is the least time between two readings of what is due.
const leastDue = 50 * time.Millisecond

// dueFeeds is how far the feeds that are due were read.
type dueFeeds struct {
	from  store.Cursor
	begun time.Duration // when they were read from the start
}

// readDue puts feeds into the queue that have become due. It returns when the next one is.
func (c *Cache) readDue(ctx context.Context, d *dueFeeds) (wait time.Duration, err error) {
	wait, err = c.readPoked(ctx)
	s, now := c.settings.Load(), c.elapsed()
	if err != nil || !s.Prefetch {
		return wait, err
	}
	again := now-d.begun >= dueEvery
	if since := now - d.begun; !again && c.again.Load() {
		if again = since >= dueAgain; !again {
			wait = min(wait, dueAgain-since)
		}
	}
	if again {
		c.again.Store(false)
		d.from, d.begun = store.Cursor{}, now
	}
	for {
		due, err := c.store.Due(ctx, store.DueQuery{From: d.from, Limit: dueAtOnce, Idle: s.IdleAfter})
		if err != nil {
			d.begun = now - dueEvery // from the start again
			return 0, err
		}
		feeds, now := make([]queue.Feed, len(due.Feeds)), c.elapsed()
		for i, f := range due.Feeds {
			feeds[i] = queue.Feed{ID: queue.ID(f.ID), Site: f.Site, Owner: queue.Owner(f.Owner), New: f.New, Due: now - f.For}
		}
		c.schedule.addDue(again, feeds)
		c.wake(c.schedule.more)
		if d.from, again = due.To, false; due.Wait > 0 || len(due.Feeds) == 0 {
			return min(wait, due.Wait), nil
		}
	}
}

// readPoked has feeds polled that are poked.
func (c *Cache) readPoked(ctx context.Context) (wait time.Duration, err error) {
	due, err := c.store.Due(ctx, store.DueQuery{Poked: true, Limit: dueAtOnce})
	if err != nil || len(due.Feeds) == 0 {
		return due.Wait, err
	}
	wait = min(pokedAgain, due.Wait)
	ids := make([]store.ID, len(due.Feeds))
	for i, f := range due.Feeds {
		ids[i] = f.ID
	}
	records, err := c.store.Lookup(ctx, ids)
	for i := range records {
		f, err := c.Feed(ctx, records[i].URL)
		if err == nil && !f.state.Load().Poked {
			err = f.reload(ctx)
		}
		if err == nil {
			f.PollIfDue()
		}
	}
	return wait, err
}

// pokedAgain is when feeds that are poked and due are looked at again: they may not be polled yet for another reason.
const pokedAgain = 10 * time.Second

// recordConfigured records in the store which feeds are configured or listed: it makes records of those that have none
// yet, so that they are due. Only what differs is written. A second call waits for the end of the first.
func (c *Cache) recordConfigured(ctx context.Context) error {
	if err := c.recording.Acquire(ctx, 1); err != nil {
		return err
	}
	defer c.recording.Release(1)
	s := c.settings.Load()
	defer s.tried()
	if s.recorded.Swap(true) { // first, so that a feed that is forgotten meanwhile is noticed
		return nil
	}
	listed := s.Listed()
	all := make(map[string]bool, len(listed))
	for _, key := range listed {
		all[key] = true
	}
	s.listed.Store(&all)
	for keys := range slices.Chunk(append(slices.Sorted(maps.Keys(all)), s.Feeds...), recordsAtOnce) {
		missing, err := c.unrecorded(ctx, s, keys)
		if err == nil && len(missing) > 0 {
			err = c.store.Restore(ctx, missing)
		}
		if err != nil {
			s.recorded.Store(false)
			return err
		}
	}
	c.again.Store(true) // those that the store knew may be due for long
	c.wake(c.changed)
	return nil
}

// unrecorded returns records of those of some configured feeds that the store has not as such, or not for long.
func (c *Cache) unrecorded(ctx context.Context, s *Settings, keys []string) (missing []store.Saved, err error) {
	ids := make([]store.ID, len(keys))
	for i, key := range keys {
		ids[i] = store.IDOf(key)
	}
	records, err := c.store.Lookup(ctx, ids)
	if err != nil {
		return nil, err
	}
	recorded := make(map[store.ID]bool, len(records))
	for i := range records {
		recorded[records[i].ID] = records[i].Configured && !records[i].Renew
	}
	for i, key := range keys {
		if recorded[ids[i]] || feedstate.Shielded(key) {
			continue
		}
		k := feedstate.ParseKey(key)
		missing = append(missing, store.Saved{New: true, Hold: (&feedstate.State{}).LeaseTime(s.Rules(k)), Record: store.Record{
			ID: ids[i], URL: key, Polled: -1, First: -1, // as though asked for now: idle_after counts from here
			State: store.StateCold, Configured: true, Site: c.origin.Host(k.URL()).Site,
		}})
	}
	return missing, nil
}

// listTimeout is how long a list waits for the record of configured feeds: a store may hang.
const listTimeout = time.Second

// awaitConfigured waits until recordConfigured was tried once with the settings: a list has the feeds of a
// configuration as soon as that is in force.
func (c *Cache) awaitConfigured(ctx context.Context) {
	await(ctx, c.settings.Load().listable, listTimeout)
}

// waitForChange waits until something has changed, but not for longer than d.
func (c *Cache) waitForChange(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-c.changed:
	case <-ctx.Done():
	}
}
