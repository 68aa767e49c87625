// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"sync"
	"time"

	"github.com/dgraph-io/ristretto/v2"
)

// memory holds hot versions. It is only memory: it may drop anything at any
// time, refuse newcomers while it is full of hot ones, and may even keep the
// older of two versions that were put in quick succession. So whoever gets a
// version out of it compares it with the feed's state.
type memory struct {
	cache *ristretto.Cache[uint64, *prepared]

	// Ristretto must not be used once it is being closed, and readers go on asking.
	// Only closing takes a gate for itself: nobody ever waits at one before that.
	// They are several so that readers of different feeds share no cache line.
	gates  [16]gate
	closed bool // guarded by all gates
}

type gate struct {
	sync.RWMutex
	_ [40]byte
}

// overhead is what ristretto and the prepared headers cost beside the bodies, in bytes.
const overhead = 1000

func newMemory(budget int64) (*memory, error) {
	c, err := ristretto.NewCache(&ristretto.Config[uint64, *prepared]{
		MaxCost:     budget * 85 / 100, // the heap grows to more than the sum of costs
		NumCounters: max(1000, budget/10_000*10),
		BufferItems: 64,
		// Nothing in it has a time to live, so that there is nothing to be cleaned up.
		TtlTickerDurationInSec: int64(24 * time.Hour / time.Second),
		// Of two fillers the one with the newer version wins, whichever comes last.
		ShouldUpdate: func(cur, prev *prepared) bool { return prev == nil || cur.version >= prev.version },
	})
	return &memory{cache: c}, err
}

// get is the feed's version as the state describes it; nil: it is not in memory.
func (m *memory) get(key uint64, id ID, s *state) *prepared {
	gate := &m.gates[key%uint64(len(m.gates))]
	gate.RLock()
	defer gate.RUnlock()
	if m.closed {
		return nil
	}
	p, ok := m.cache.Get(key)
	if !ok || p.id != id || !p.shows(s) {
		return nil
	}
	return p
}

func (m *memory) put(key uint64, p *prepared) {
	gate := &m.gates[key%uint64(len(m.gates))]
	gate.RLock()
	defer gate.RUnlock()
	if !m.closed {
		m.cache.Set(key, p, p.cost())
	}
}

// drop makes room of a feed that has been forgotten. If it comes back its versions
// are numbered anew, and an old one would keep the new ones out.
func (m *memory) drop(key uint64) {
	gate := &m.gates[key%uint64(len(m.gates))]
	gate.RLock()
	defer gate.RUnlock()
	if !m.closed {
		m.cache.Del(key)
	}
}

// used is the cost of what is held, in bytes.
func (m *memory) used() int64 { return m.cache.MaxCost() - m.cache.RemainingCost() }

func (m *memory) close() {
	for i := range m.gates {
		m.gates[i].Lock()
	}
	m.closed = true
	for i := range m.gates {
		m.gates[i].Unlock()
	}
	m.cache.Close() // outside of the gates: it waits for goroutines of its own
}
