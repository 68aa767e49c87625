// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/semaphore"
	"golang.org/x/sync/singleflight"

	"github.com/feedpollard/pollard/cache/feedstate"
	"github.com/feedpollard/pollard/cache/store"
)

// table holds the feeds that are in memory: those that readers have asked for recently, and
// those that are being polled. All others are in the store alone.
type table struct {
	feeds sync.Map // key to *Feed; a hit takes no lock
	ids   sync.Map // ID to *Feed
	size  atomic.Int64

	moves sync.Mutex // held while a feed comes or goes

	loads   singleflight.Group  // of records from the store, by key
	loading *semaphore.Weighted // requests that wait for records, and loads that none waits for any more
	changes atomic.Uint64       // of the store that were noticed
}

// maxLoading is how many requests may wait for records. Clients may send requests faster than the store reads
// records, and give them up at once.
const maxLoading = 1024

// InMemory returns the feed of a key if it is in memory, and nil otherwise.
func (c *Cache) InMemory(key string) *Feed {
	if f, ok := c.table.feeds.Load(key); ok {
		return f.(*Feed)
	}
	return nil
}

// Feed returns the feed of a key, which is a canonical URL (package feedurl) or what a shield
// makes of a request. If it is not in memory, its record is read, once for all requests of the
// moment. A feed that is not known yet is polled when it is served.
func (c *Cache) Feed(ctx context.Context, key string) (*Feed, error) {
	if f := c.InMemory(key); f != nil {
		return f, nil
	}
	if err := c.table.loading.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	done := c.table.loads.DoChan(key, func() (any, error) { return c.load(c.life, key) })
	select {
	case got := <-done:
		c.table.loading.Release(1)
		f, _ := got.Val.(*Feed)
		return f, got.Err
	case <-ctx.Done():
		go func() { <-done; c.table.loading.Release(1) }()
		return nil, ctx.Err()
	}
}

// load reads a feed into memory.
func (c *Cache) load(ctx context.Context, key string) (*Feed, error) {
	if f := c.InMemory(key); f != nil {
		return f, nil // it has just come
	}
	f := newFeed(c, key, &feedstate.State{})
	changes := c.table.changes.Load()
	records, err := c.store.Lookup(ctx, []store.ID{f.id})
	if err != nil {
		c.logUnreadable("the record of a feed cannot be read", key, err)
		return nil, &Unavailable{Status: 503, Reason: "the store cannot be read", RetryAfter: storeRetry}
	}
	if len(records) > 0 {
		f.adopt(records[0])
	} else {
		f.publish(feedstate.Unknown())
	}
	resident := c.admit(f)
	if resident != f || c.table.changes.Load() != changes { // perhaps of this feed
		c.readLater(c.readChanged(ctx, []*Feed{resident})...)
	}
	return resident, nil
}

// admit puts a feed into memory, unless there is one of its key already. It returns
// the one that is there then.
func (c *Cache) admit(f *Feed) *Feed {
	t := &c.table
	t.moves.Lock()
	defer t.moves.Unlock()
	if other := c.InMemory(f.key.String()); other != nil {
		return other
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	t.feeds.Store(f.key.String(), f)
	t.ids.Store(f.id, f)
	f.inTable.Store(true)
	t.size.Add(f.size())
	if t.size.Load() > c.statesBudget() {
		c.wake(c.overBudget)
	}
	return f
}

// evict makes room in memory: of the feeds that were asked for the longest ago,
// until what remains takes nine tenths of its budget.
func (c *Cache) evict() {
	budget := c.statesBudget()
	if c.table.size.Load() <= budget {
		return
	}
	type candidate struct {
		feed  *Feed
		asked int64
	}
	var all []candidate
	c.table.feeds.Range(func(_, v any) bool {
		f := v.(*Feed)
		all = append(all, candidate{f, f.asked.Load()})
		return true
	})
	slices.SortFunc(all, func(a, b candidate) int { return cmp.Compare(a.asked, b.asked) })
	for _, one := range all {
		if c.table.size.Load() <= budget*9/10 {
			return
		}
		// If the store does not have when the feed was asked for, it never will: it refuses
		// writes, and memory stays within its budget all the same.
		if one.feed.underWay() == nil {
			c.drop(one.feed, true)
		}
	}
}

// drop takes a feed out of memory, unless it is in use or, if idle is true, being polled.
func (c *Cache) drop(f *Feed, idle bool) {
	t := &c.table
	t.moves.Lock()
	defer t.moves.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	if idle && f.underWay() != nil || !f.inTable.CompareAndSwap(true, false) {
		return
	}
	if f.users.Load() > 0 { // who comes later sees that it is not in the table
		f.inTable.Store(true)
		return
	}
	t.feeds.Delete(f.key.String())
	t.ids.Delete(f.id)
	t.size.Add(-f.size())
}

// use returns the feed of the same key that is in memory, and keeps it there until leave
// is called. So a key has one feed at a time, and readers join the poll that another one
// causes.
func (f *Feed) use() *Feed {
	for {
		f.users.Add(1)
		if f.inTable.Load() {
			return f
		}
		resident := f.cache.admit(f)
		if resident == f {
			return f
		}
		f.users.Add(-1)
		f = resident
	}
}

func (f *Feed) leave() { f.users.Add(-1) }

// locked returns the feed of the same key that is in memory, with its lock held.
func (f *Feed) locked() *Feed {
	for {
		f.mu.Lock()
		if f.inTable.Load() {
			return f
		}
		f.mu.Unlock()
		f = f.cache.admit(f)
	}
}
