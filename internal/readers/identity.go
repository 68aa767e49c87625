// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package readers

import (
	"math/rand/v2"
	"net/netip"

	"github.com/cespare/xxhash/v2"
	"github.com/feedpollard/pollard/internal/feedurl"
)

// seed keys the hashes by which counters are found. They are valid in this process only,
// and clients cannot choose values that collide.
type seed uint64

func newSeed() seed { return seed(rand.Uint64()) }

func (s seed) text(text string) uint64 {
	var d xxhash.Digest
	d.ResetWithSeed(uint64(s))
	_, _ = d.WriteString(text)
	return d.Sum64()
}

// address returns the hash of a full address, which itself is not kept.
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

// join combines two keys with the finalizer of SplitMix64.
func join(a, b uint64) uint64 {
	h := a*0x9e3779b97f4a7c15 + b
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}

// identity returns the hash of User-Agent and full address. It is the same in all processes,
// because sketches are merged. It cannot be recovered from a sketch.
func identity(r *Request) uint64 {
	const common = seed(1)
	userAgent := r.UserAgent[:min(len(r.UserAgent), maxAgent)]
	// Sketches in stores have a third part, which is empty for readers of shields.
	return join(join(common.text(userAgent), common.address(r.Client.Unmap())), common.text(""))
}

// networkHash returns the hash of a network for sketches.
func networkHash(p netip.Prefix) uint64 { return seed(1).address(p.Addr()) }

// network returns the part of an address that may be kept: the /24 of IPv4 or the /48 of
// IPv6, the largest prefix that one customer usually has. It is invalid if the address is.
func network(a netip.Addr) netip.Prefix { return feedurl.Network(a) }
