// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"time"

	"github.com/feedpollard/pollard/cache/store"
)

const (
	// readAheadAsked is how long ago readers asked, at most, for what is read ahead.
	readAheadAsked = 24 * time.Hour
	// readAheadPart is which part of memory it may take, as 1/n: what readers ask for now
	// finds room beside it.
	readAheadPart = 2
	// readAheadRecord is how many bytes of memory one record is looked at for: a store of
	// a million feeds, of which few are asked for, is not read to its end.
	readAheadRecord = 4096
	// readAheadBatch is how many records are read at a time.
	readAheadBatch = 200
)

// readAhead brings into memory what readers have asked for of late, so that a process that
// has just started can answer them while its store is out of reach. Where that is more than
// memory has room for, it is a part of it by chance: nothing tells which part will be asked
// for. It ends where records cannot be read: the store is away already.
func (c *Cache) readAhead(ctx context.Context) {
	left := c.memory.budget / readAheadRecord
	for records := range store.Pages(ctx, c.store, readAheadBatch) {
		for _, r := range records {
			if r.Version == 0 || r.Asked < 0 || r.Asked > readAheadAsked {
				continue
			}
			if c.memory.used() > c.memory.budget/readAheadPart || c.table.size.Load() > c.statesBudget()/readAheadPart {
				return
			}
			f, err := c.Feed(ctx, r.URL)
			if err != nil || ctx.Err() != nil {
				return
			}
			c.hold(ctx, f)
		}
		if left -= readAheadBatch; left <= 0 {
			return
		}
	}
}

// hold reads the stored form of a feed's version into memory. Where that fails, the next
// reader finds it out.
func (c *Cache) hold(ctx context.Context, f *Feed) {
	s := f.state.Load()
	if s.version == 0 {
		return
	}
	if r, err := c.read(ctx, f, s, s.memo.Version.stored()); err == nil {
		r.release()
		f.whole.CompareAndSwap(nil, s)
	}
}
