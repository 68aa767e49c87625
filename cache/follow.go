// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// missedRetry is when the record of a change that could not be read is read again, and
	// missedMost the longest pause between two such attempts.
	missedRetry = time.Second
	missedMost  = 10 * time.Second
	// missedInRow is how many records that cannot be read say that none can.
	missedInRow = 3
)

// errMissed says that what was changed unseen cannot be read either.
var errMissed = errors.New("the records of feeds cannot be read")

// missed are feeds of which a change was heard whose record could not be read.
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
			if err := c.see(ctx, change); err != nil {
				return err
			}
			from = change.At
			return nil
		})
		if ctx.Err() == nil {
			c.log().Warn("changes in the store cannot be followed at present", errField(err))
			sleep(ctx, time.Second)
		}
	}
}

// see brings what is in memory up to date with a change. It fails where all may have
// changed, and cannot be read: then it has not been seen.
func (c *Cache) see(ctx context.Context, change Change) error {
	if change.Lost {
		failed := 0
		c.table.feeds.Range(func(_, v any) bool {
			if v.(*Feed).follow(ctx) != nil {
				failed++
			}
			return failed < missedInRow && ctx.Err() == nil
		})
		if failed == missedInRow {
			return errMissed
		}
		return nil
	}
	if overtaken, ok := c.table.loading.Load(change.ID); ok {
		overtaken.(*atomic.Bool).Store(true)
	}
	v, ok := c.table.ids.Load(change.ID)
	if !ok {
		return nil
	}
	f := v.(*Feed)
	if change.Version != 0 && f.state.Load().version == change.Version {
		return nil
	}
	// Also of a feed that was forgotten the record is read: it may have come back since.
	switch err := f.follow(ctx); {
	case !change.Forgotten:
	case err != nil:
		c.drop(f) // whoever asks next reads it: versions that come later may have the same numbers
	case !f.state.Load().known:
		c.forgotten([]ID{change.ID})
	}
	return nil
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

// followLater has the record of a feed read when the store can be reached again. Until the
// next change, or poll of this node, nothing else would bring it.
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

// followMissed reads the records that could not be read, until none is left.
func (c *Cache) followMissed(ctx context.Context) {
	for pause := missedRetry; sleep(ctx, pause); pause = min(2*pause, missedMost) {
		failed := 0
		for _, f := range c.missed.take() {
			if failed == missedInRow {
				c.followLater(f)
			} else if f.follow(ctx) != nil {
				failed++
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
