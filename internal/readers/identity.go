// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package readers

import (
	"math/rand/v2"
	"net/netip"

	"github.com/cespare/xxhash/v2"
)

// seed keys the hashes that stand for addresses, User-Agents and feeds: they mean
// nothing outside of this process, and strangers cannot choose ones that collide.
type seed uint64

// newSeed is the seed wanted, or one drawn at random where that is 0.
func newSeed(want uint64) seed {
	for want == 0 {
		want = rand.Uint64()
	}
	return seed(want)
}

func (s seed) text(text string) uint64 {
	var d xxhash.Digest
	d.ResetWithSeed(uint64(s))
	_, _ = d.WriteString(text)
	return d.Sum64()
}

// address stands for a full address, which is stored nowhere.
func (s seed) address(a netip.Addr) uint64 {
	if !a.IsValid() {
		return uint64(s)
	}
	b := a.As16()
	var d xxhash.Digest
	d.ResetWithSeed(uint64(s))
	_, _ = d.Write(b[:])
	return d.Sum64()
}

// join makes one key of two: the finalizer of SplitMix64 over both.
func join(a, b uint64) uint64 {
	h := a*0x9e3779b97f4a7c15 + b
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}

// network is as much of an address as may be stored: the /24 of IPv4, the /64 of
// IPv6. It is invalid where the address is.
func network(a netip.Addr) netip.Prefix {
	a = a.Unmap().WithZone("")
	if !a.IsValid() {
		return netip.Prefix{}
	}
	bits := 64
	if a.Is4() {
		bits = 24
	}
	p, err := a.Prefix(bits)
	if err != nil {
		return netip.Prefix{}
	}
	return p
}
