// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package bolt

import (
	"bytes"
	"context"
	"slices"
	"sync"

	"github.com/feedpollard/pollard/cache"
)

// holds gives one caller at a time the body files of a feed. It is no mutex
// because file operations happen meanwhile, and whoever waits may give up. The
// zero value is ready for use.
type holds struct {
	mu   sync.Mutex
	held map[cache.ID]chan struct{} // closed on release
}

// hold waits until nobody holds any of ids and takes them all. Duplicates do no harm.
func (h *holds) hold(ctx context.Context, ids ...cache.ID) (release func(), err error) {
	// One order for everybody, so that two callers cannot wait for each other.
	ids = slices.Clone(ids)
	slices.SortFunc(ids, func(a, b cache.ID) int { return bytes.Compare(a[:], b[:]) })
	ids = slices.Compact(ids)
	for i, id := range ids {
		if err := h.one(ctx, id); err != nil {
			h.release(ids[:i])
			return nil, err
		}
	}
	return func() { h.release(ids) }, nil
}

func (h *holds) one(ctx context.Context, id cache.ID) error {
	for {
		released := h.try(id)
		if released == nil {
			return nil
		}
		select {
		case <-released:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// try takes a feed that nobody holds, or returns what its holder closes.
func (h *holds) try(id cache.ID) (released chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if released, held := h.held[id]; held {
		return released
	}
	if h.held == nil {
		h.held = make(map[cache.ID]chan struct{})
	}
	h.held[id] = make(chan struct{})
	return nil
}

func (h *holds) release(ids []cache.ID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, id := range ids {
		close(h.held[id])
		delete(h.held, id)
	}
}
