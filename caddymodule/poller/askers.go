// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package poller

import (
	"encoding/binary"
	"strconv"

	"github.com/feedpollard/pollard/cache/feedstate"
	"github.com/feedpollard/pollard/cache/store"
)

// Mark returns the hash of a text by the store's key, which is the same on all nodes. It is "" before the
// store is open.
func (e *Engine) Mark(text string) string {
	if e.cache.Load() == nil {
		return ""
	}
	return e.counters.key.Load().Of(text)
}

// OwnerOf returns the owner of feeds that a reader asks for: one of a kind, with a name that cannot be
// read from it. The name is that of a token, an address, or the network of a public address.
func (e *Engine) OwnerOf(kind store.Kind, name string) store.Owner {
	return store.OwnerOf(kind, e.counters.key.Load().Of(name))
}

// GroupOf returns what the store has of a group, or 0 for 0.
func (e *Engine) GroupOf(g feedstate.Group) feedstate.Group {
	if g == 0 {
		return 0
	}
	return feedstate.Group(binary.BigEndian.Uint64([]byte(e.counters.key.Load().Of(strconv.FormatUint(uint64(g), 16)))))
}
