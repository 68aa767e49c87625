// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package poller

import (
	"net/netip"
	"strconv"

	"github.com/feedpollard/pollard/cache/feedstate"
	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/internal/feedurl"
)

// Mark returns the hash of a text by the store's key, which is the same on all nodes. It is "" before the
// store is open.
func (e *Engine) Mark(text string) string {
	if e.cache.Load() == nil {
		return ""
	}
	return e.counters.key.Load().Of(text)
}

// TokenOf returns the owner of feeds that a reader with a token asks for.
func (e *Engine) TokenOf(name string) store.Owner { return e.ownerOf(store.KindToken, name) }

// AddressOf returns the owner of an address that the operator has named, or that is private.
func (e *Engine) AddressOf(a netip.Addr) store.Owner {
	return e.ownerOf(store.KindAddress, a.Unmap().String())
}

// NetworkOf returns the owner of a public address: its network. All addresses that are not known are
// one.
func (e *Engine) NetworkOf(a netip.Addr) store.Owner {
	return e.ownerOf(store.KindPublic, feedurl.Network(a).String())
}

func (e *Engine) ownerOf(kind store.Kind, name string) store.Owner {
	return store.OwnerOf(kind, e.counters.key.Load().Of(name))
}

// GroupOf returns what the store has of a group, or 0 for 0.
func (e *Engine) GroupOf(g feedstate.Group) feedstate.Group {
	if g == 0 {
		return 0
	}
	return feedstate.GroupOf(e.counters.key.Load().Of(strconv.FormatUint(uint64(g), 16)))
}
