// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"slices"
	"time"

	"github.com/cespare/xxhash/v2"
)

const (
	// maxAddresses is at how many addresses a feed is served with its own in the document,
	// and addressPause how long it takes until another one is let in beyond them. Each
	// costs a copy, and its compression; a reader can invent as many as it likes.
	maxAddresses = 16
	addressPause = time.Minute
	// maxAddress is how long an address may be, in bytes.
	maxAddress = 4 << 10
)

// addresses are those at which a feed is served, by their hashes: the one that was
// admitted last is the last. Readers at others get the document as its publisher has
// written it.
type addresses struct {
	known []uint64
	next  time.Duration // when another one may take the place of the first
}

// admits reports whether the document may be made for an address.
func (f *Feed) admits(address string) bool {
	if len(address) > maxAddress {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.addresses == nil {
		f.addresses = new(addresses)
	}
	return f.addresses.admit(xxhash.Sum64String(address), f.cache.elapsed())
}

func (a *addresses) admit(hash uint64, now time.Duration) bool {
	i := slices.Index(a.known, hash)
	switch {
	case i >= 0:
		a.known = slices.Delete(a.known, i, i+1)
	case len(a.known) < maxAddresses:
	case now < a.next:
		return false
	default:
		a.known = slices.Delete(a.known, 0, 1)
	}
	if i < 0 {
		a.next = now + addressPause
	}
	a.known = append(a.known, hash)
	return true
}
