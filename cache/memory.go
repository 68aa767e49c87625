// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"bytes"
	"encoding/binary"
	"slices"
	"sync"
	"time"

	"github.com/dgraph-io/ristretto/v2"

	"github.com/feedpollard/pollard/cache/feedstate"
	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/cache/version"
)

// memory holds hot representations. It is only memory: it may drop anything at any
// time, and refuse new ones while it is full of hot ones. A version never changes,
// so nothing in it is ever out of date.
//
// The stored form of a version may have several parts. Readers hold one of them at a time,
// and look for the next one when they have been sent it. All other forms have one part.
type memory struct {
	cache  *ristretto.Cache[uint64, *representation]
	budget int64

	// Ristretto must not be used once it is being closed, and readers go on asking. Only closing
	// takes the lock for itself: nothing ever waits before that.
	mu     sync.RWMutex
	closed bool
}

const (
	// overhead is what ristretto and the prepared headers cost beside a body, in bytes.
	overhead = 500
	// maxBudget is more memory than any machine has. Ristretto has counters of what was asked
	// for, which take some three bytes each; maxCounters are as many as 16 GiB need.
	maxBudget   = 1 << 50
	maxCounters = 1 << 24
)

// representation is a version in one coding, in memory.
type representation struct {
	*version.Representation
	id store.ID
}

func newMemory(budget int64) (*memory, error) {
	budget = min(budget, maxBudget)
	m := &memory{budget: budget}
	var err error
	m.cache, err = ristretto.NewCache(&ristretto.Config[uint64, *representation]{
		MaxCost:     max(budget*85/100, 1), // the heap grows to more than the sum of costs
		NumCounters: min(max(1000, budget/10_000*10), maxCounters),
		BufferItems: 64,
		// Entries have no time to live, so there is nothing to clean up.
		TtlTickerDurationInSec: int64(24 * time.Hour / time.Second),
	})
	return m, err
}

// memoryKey names a place in memory. A version takes it over from the one before: old
// versions, which are not requested any more, would keep new ones out.
func memoryKey(id store.ID, c version.Coding) uint64 {
	return binary.LittleEndian.Uint64(id[:]) + uint64(c)*0x9e3779b97f4a7c15
}

// open keeps memory open until the caller unlocks it for reading. It reports false if it is closed.
func (m *memory) open() bool {
	m.mu.RLock()
	if m.closed {
		m.mu.RUnlock()
	}
	return !m.closed
}

// get returns the representation of a state's version, or nil if it is not in memory. The tag
// names the version by its content: a publisher who takes a change back gives the same bytes
// as before, and a number may come again after a feed was forgotten.
func (m *memory) get(id store.ID, s *feedstate.State, c version.Coding) *representation {
	if r := s.Unstored; r != nil && r.Coding == c && r.Tag == s.Feed.Version.Tag {
		return &representation{Representation: r, id: id}
	}
	if !m.open() {
		return nil
	}
	defer m.mu.RUnlock()
	if r, ok := m.cache.Get(memoryKey(id, c)); ok && r.id == id && r.Coding == c && r.Tag == s.Feed.Version.Tag {
		return r
	}
	return nil
}

// add takes the body of a state's version into memory, in a coding. Memory may refuse it.
func (m *memory) add(id store.ID, s *feedstate.State, c version.Coding, body []byte) *representation {
	r := &representation{Representation: s.Feed.Version.Represent(c, inParts(body)...), id: id}
	if m.open() {
		defer m.mu.RUnlock()
		m.cache.Set(memoryKey(id, c), r, overhead+int64(len(body)))
		m.cache.Wait() // or the next reader might not find it
	}
	return r
}

// inParts returns a body in parts that can be freed one by one.
func inParts(body []byte) (parts [][]byte) {
	if len(body) <= store.PartSize {
		return [][]byte{body}
	}
	for part := range slices.Chunk(body, store.PartSize) {
		parts = append(parts, bytes.Clone(part))
	}
	return parts
}

// fits reports whether there is room for so many bytes without dropping anything.
func (m *memory) fits(bytes int64) bool { return overhead+bytes <= m.cache.RemainingCost() }

// share leaves a part of the budget to feeds' states.
func (m *memory) share(states int64) {
	if m.open() {
		defer m.mu.RUnlock()
		m.cache.UpdateMaxCost(max(m.budget/4, (m.budget-states)*85/100))
	}
}

func (m *memory) used() int64 { return m.cache.MaxCost() - m.cache.RemainingCost() }

func (m *memory) close() {
	m.mu.Lock()
	m.closed = true
	m.mu.Unlock()
	m.cache.Close() // outside of the lock: it waits for goroutines of its own
}
