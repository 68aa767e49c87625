// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package readers

import (
	"math/rand/v2"
	"net/netip"

	"github.com/cespare/xxhash/v2"
)

// seed keys the hashes by which counters are found. They are valid in this process only,
// and clients cannot choose values that collide.
type seed uint64

// common is the seed of hashes that are the same in all processes.
const common = seed(1)

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
	userAgent := r.UserAgent[:min(len(r.UserAgent), maxAgent)]
	// Sketches in stores have a third part, which is empty for readers of shields.
	return join(join(common.text(userAgent), common.address(r.Client.Unmap())), common.text(""))
}
