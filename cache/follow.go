// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// missedRetry is when the record of a change that could not be read is read again, and
	// missedMost the longest pause between two such attempts.
	missedRetry = time.Second
	missedMost  = 10 * time.Second
	// missedInRow is how many records that cannot be read, one after the other, say that none can.
	missedInRow = 3
)

// missed are feeds that may have changed unseen: records that are still to be read.
type missed struct {
	mu      sync.Mutex // guards what follows
	feeds   map[*Feed]struct{}
	reading bool // somebody reads them
}

// watch follows what changes in the store, on this node or another.
func (c *Cache) watch(ctx context.Context) {
	// The feeds that were read before the first call has found its place, or while it
	// fails, may have changed unseen. A cursor that no store has made says so.
	from := Cursor("unknown")
	for ctx.Err() == nil {
		err := c.store.Watch(ctx, from, func(change Change) error {
			from = change.At
			c.see(ctx, change)
			return nil
		})
		if ctx.Err() == nil {
			c.log().Warn("changes in the store cannot be followed at present", errField(err))
			sleep(ctx, time.Second)
		}
	}
}

// see brings what is in memory up to date with a change.
func (c *Cache) see(ctx context.Context, change Change) {
	if change.Lost {
		c.table.feeds.Range(func(_, v any) bool {
			c.followLater(v.(*Feed))
			return true
		})
		return
	}
	if overtaken, ok := c.table.loading.Load(change.ID); ok {
		overtaken.(*atomic.Bool).Store(true)
	}
	v, ok := c.table.ids.Load(change.ID)
	if !ok {
		return
	}
	f := v.(*Feed)
	if change.Version != 0 && f.state.Load().version == change.Version {
		return
	}
	// Also of a feed that was forgotten the record is read: it may have come back since.
	switch err := f.follow(ctx); {
	case !change.Forgotten:
	case err != nil:
		c.drop(f) // whoever asks next reads it: versions that come later may have the same numbers
	case !f.state.Load().known:
		c.forgotten([]ID{change.ID})
	}
}

// follow reads what others have changed in the store: where that fails, it is read later.
// A poll whose request has left publishes what it brings, and does so when it ends.
func (f *Feed) follow(ctx context.Context) error {
	f.overtaken.Store(true)
	if p := f.underWay(); p != nil {
		select {
		case <-p.sent:
			return nil
		default:
		}
	} else {
		f.overtaken.Store(false)
	}
	err := f.reload(ctx)
	if err != nil {
		f.cache.followLater(f)
	}
	return err
}

// catchUp reads what others have changed in the store while a poll was under way.
func (f *Feed) catchUp() {
	if f.overtaken.Swap(false) && f.reload(f.cache.life) != nil {
		f.cache.followLater(f)
	}
}

// followLater has the record of a feed read soon, and again until it can be: nothing else
// would bring it before the next change, or the next poll of this node.
func (c *Cache) followLater(f *Feed) {
	m := &c.missed
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.feeds == nil {
		m.feeds = make(map[*Feed]struct{})
	}
	m.feeds[f] = struct{}{}
	if !m.reading {
		m.reading = c.background(func() { c.followMissed(c.open) })
	}
}

// followMissed reads the records that are still to be read, until none is left.
func (c *Cache) followMissed(ctx context.Context) {
	for pause := missedRetry; sleep(ctx, pause); pause = min(2*pause, missedMost) {
		failed := 0
		for _, f := range c.missed.take() {
			switch {
			case failed == missedInRow:
				c.followLater(f)
			case f.follow(ctx) != nil:
				failed++
			default:
				failed = 0
			}
		}
		if c.missed.end() {
			return
		}
	}
}

// take removes all of them, in no order.
func (m *missed) take() (all []*Feed) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for f := range m.feeds {
		all = append(all, f)
	}
	clear(m.feeds)
	return all
}

// end ends their reading, where none is left.
func (m *missed) end() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.reading = len(m.feeds) > 0
	return !m.reading
}
