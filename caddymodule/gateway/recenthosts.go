// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"hash/maphash"
	"net/netip"
	"sync/atomic"
	"time"
)

// recentHosts remembers for some minutes which clients have asked for feeds of which hosts, by a hash
// with a seed of this process, so that no address can be read from it. It may forget one: another one with
// the same place takes it.
type recentHosts struct {
	seed   maphash.Seed
	places [1024]atomic.Uint64
}

// recentFor is how long a request is remembered.
const recentFor = 15 * time.Minute

func newRecentHosts() *recentHosts { return &recentHosts{seed: maphash.MakeSeed()} }

// place returns the place of a client and host, and what stands there after a request now: the hash, and
// the minutes in its last 16 bits.
func (h *recentHosts) place(client netip.Addr, host string) (place *atomic.Uint64, now uint64) {
	type request struct {
		client netip.Addr
		host   string
	}
	hash := maphash.Comparable(h.seed, request{client, host})
	return &h.places[hash>>16%uint64(len(h.places))], hash&^0xffff | uint64(time.Now().Unix()/60)&0xffff
}

func (h *recentHosts) add(client netip.Addr, host string) {
	place, now := h.place(client, host)
	place.Store(now)
}

func (h *recentHosts) has(client netip.Addr, host string) bool {
	place, now := h.place(client, host)
	then := place.Load()
	return then>>16 == now>>16 && uint16(now-then) < uint16(recentFor/time.Minute)
}
