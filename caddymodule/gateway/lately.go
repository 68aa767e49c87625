// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/cespare/xxhash/v2"
)

// lately remembers for some minutes, and by hash, which clients have asked for feeds of which hosts. It
// may forget one: another one with the same place takes it.
type lately [1024]atomic.Uint64

// latelyFor is how long a request is remembered.
const latelyFor = 15 * time.Minute

// place returns the place of a client and host, and what stands there after a request now: the hash, and
// the minutes in its last 16 bits.
func (l *lately) place(client netip.Addr, host string) (place *atomic.Uint64, now uint64) {
	of := client.As16()
	hash := xxhash.Sum64(of[:]) ^ xxhash.Sum64String(host)
	return &l[hash>>16%uint64(len(l))], hash&^0xffff | uint64(time.Now().Unix()/60)&0xffff
}

func (l *lately) add(client netip.Addr, host string) {
	place, now := l.place(client, host)
	place.Store(now)
}

func (l *lately) has(client netip.Addr, host string) bool {
	place, now := l.place(client, host)
	then := place.Load()
	return then>>16 == now>>16 && uint16(now-then) < uint16(latelyFor/time.Minute)
}
