// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"github.com/dgraph-io/ristretto/v2"
)

// memory holds hot versions. It is only memory: it may drop anything at any
// time, refuse newcomers while it is full of hot ones, and may even keep the
// older of two versions that were put in quick succession. So whoever gets a
// version out of it compares its number with the feed's state.
type memory struct {
	cache *ristretto.Cache[uint64, *prepared]
}

// overhead is what ristretto and the prepared headers cost beside the bodies, in bytes.
const overhead = 1000

func newMemory(budget int64) (*memory, error) {
	c, err := ristretto.NewCache(&ristretto.Config[uint64, *prepared]{
		MaxCost:     budget * 85 / 100, // the heap grows to more than the sum of costs
		NumCounters: max(1000, budget/10_000*10),
		BufferItems: 64,
		// Of two fillers the one with the newer version wins, whichever comes last.
		ShouldUpdate: func(cur, prev *prepared) bool { return prev == nil || cur.version >= prev.version },
	})
	return &memory{c}, err
}

func (m *memory) get(key uint64, id ID, version uint64) *prepared {
	p, ok := m.cache.Get(key)
	if !ok || p.version != version || p.id != id {
		return nil
	}
	return p
}

func (m *memory) put(key uint64, p *prepared) { m.cache.Set(key, p, p.cost()) }

// used is the cost of what is held, in bytes.
func (m *memory) used() int64 { return m.cache.MaxCost() - m.cache.RemainingCost() }

func (m *memory) close() { m.cache.Close() }
