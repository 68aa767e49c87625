// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package bolt

import (
	"bytes"
	"slices"

	"go.etcd.io/bbolt"

	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/cache/store/internal/schedule"
)

// entry is a feed as a walk finds it.
type entry struct {
	id      store.ID
	feed    schedule.Feed
	text    schedule.Text
	damaged bool
}

// pageSize is how many feeds a walk reads at a time. A transaction that stays open
// keeps pages from being used again.
const pageSize = 1024

// Each implements [schedule.Keeper]. A feed that comes or goes meanwhile may be visited
// or not. The visitor must not keep the feed.
func (k *keeper) Each(visit func(store.ID, *schedule.Feed)) error {
	var after []byte
	var page []entry
	for {
		var err error
		if page, err = k.page(page, after, pageSize, false); err != nil {
			return err
		}
		for i := range page {
			switch e := &page[i]; {
			case !e.damaged:
				visit(e.id, &e.feed)
			case k.damaged != nil:
				visit(e.id, k.damaged(e.id))
			}
		}
		if len(page) < pageSize {
			return nil
		}
		after = bytes.Clone(page[len(page)-1].id[:])
	}
}

// ahead reads keys of a bucket in their order. That is a step for each, where the bucket
// has few others, and not a search from its root.
type ahead struct {
	*bbolt.Cursor
	key, value []byte
	begun      bool
}

func (a *ahead) get(key []byte) []byte {
	if !a.begun {
		a.key, a.value = a.Seek(key)
		a.begun = true
	}
	for a.key != nil && bytes.Compare(a.key, key) < 0 {
		a.key, a.value = a.Next()
	}
	if bytes.Equal(a.key, key) {
		return a.value
	}
	return nil
}

// page returns up to limit feeds behind an ID, in their order, in the memory of
// another page. The caller may keep what is in them, facts and memos too.
func (k *keeper) page(page []entry, after []byte, limit int, texts bool) ([]entry, error) {
	err := k.view(func(b buckets) error {
		page = slices.Grow(page[:0], min(limit, pageSize))
		others := k.apart(after)
		c, beside := b.feeds.Cursor(), ahead{Cursor: b.texts.Cursor()}
		key, value := c.Seek(after)
		if key != nil && bytes.Equal(key, after) {
			key, value = c.Next()
		}
		for len(page) < limit && (key != nil || len(others) > 0) {
			var e entry
			if key != nil && len(key) != len(e.id) { // damaged, and of no feed
				key, value = c.Next()
				continue
			}
			if len(others) > 0 && (key == nil || bytes.Compare(others[0][:], key) <= 0) {
				e.id = others[0]
				others = others[1:]
			} else {
				copy(e.id[:], key)
			}
			f, known := k.inMemory(e.id)
			if known && f != nil {
				e.feed = *f
				e.feed.Facts = bytes.Clone(f.Facts)
			} else if !known {
				e.damaged = decodeFeed(e.id, value, &e.feed) != nil
			}
			if bytes.Equal(key, e.id[:]) {
				key, value = c.Next()
			}
			if known && f == nil {
				continue
			}
			if texts {
				e.text = k.text(beside.get, e.id)
			}
			page = append(page, e)
		}
		return nil
	})
	return page, err
}

// apart returns feeds that the bucket of all feeds may not have: those behind an ID, in
// their order.
func (k *keeper) apart(after []byte) []store.ID {
	k.mu.RLock()
	defer k.mu.RUnlock()
	var ids []store.ID
	for id := range k.pending {
		if bytes.Compare(id[:], after) > 0 {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, store.ID.Compare)
	return ids
}
