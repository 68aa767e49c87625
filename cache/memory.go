// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"weak"

	"github.com/dgraph-io/ristretto/v2"

	"github.com/feedpollard/pollard/cache/store"
)

// memory holds hot representations. It is only memory: it may drop anything at any
// time, and refuse newcomers while it is full of hot ones. A version never changes,
// so that nothing in it is ever out of date.
type memory struct {
	cache  *ristretto.Cache[uint64, *representation]
	budget int64

	// Ristretto must not be used once it is being closed, and readers go on asking.
	// Only closing takes a lock for itself: nobody ever waits before that. They are
	// several so that readers of different feeds share no cache line.
	locks  [16]paddedLock
	closed bool // guarded by all locks

	// held are the representations that are somewhere in use: those that do not find
	// room in the cache are held once all the same, not once for each reader.
	held sync.Map // memory key to weak.Pointer[representation]
	// alive is how many bytes they have, those in the cache among them. What nobody uses
	// any more counts until it is collected.
	alive atomic.Int64
}

type paddedLock struct {
	sync.RWMutex
	_ [40]byte
}

// overhead is what ristretto and the prepared headers cost beside a body, in bytes.
const overhead = 500

// The most that a budget can be is more than any machine has; the counters of what was asked
// for, which take some three bytes each, are as many as 16 GiB need.
const (
	maxBudget   = 1 << 50
	maxCounters = 1 << 24
)

func newMemory(budget int64) (*memory, error) {
	budget = min(budget, maxBudget)
	c, err := ristretto.NewCache(&ristretto.Config[uint64, *representation]{
		MaxCost:     max(budget*85/100, 1), // the heap grows to more than the sum of costs
		NumCounters: min(max(1000, budget/10_000*10), maxCounters),
		BufferItems: 64,
		// Nothing in it has a time to live, so that there is nothing to be cleaned up.
		TtlTickerDurationInSec: int64(24 * time.Hour / time.Second),
	})
	return &memory{cache: c, budget: budget}, err
}

// get is the representation of a state's version; nil: it is not in memory.
func (m *memory) get(id store.ID, s *state, rank int) *representation {
	key := memoryKey(id, rank)
	lock := &m.locks[key%uint64(len(m.locks))]
	lock.RLock()
	defer lock.RUnlock()
	if m.closed {
		return nil
	}
	r, ok := m.cache.Get(key)
	if !ok {
		if held, ok := m.held.Load(key); ok {
			r = held.(weak.Pointer[representation]).Value()
		}
	}
	if r == nil || !r.is(id, s, rank) {
		return nil
	}
	return r
}

func (m *memory) put(r *representation) {
	key := memoryKey(r.id, r.rank)
	lock := &m.locks[key%uint64(len(m.locks))]
	lock.RLock()
	defer lock.RUnlock()
	if m.closed {
		return
	}
	m.cache.Set(key, r, overhead+int64(len(r.body)))
	held := weak.Make(r)
	m.held.Store(key, held)
	size := int64(len(r.body))
	m.alive.Add(size)
	runtime.AddCleanup(r, func(key uint64) {
		m.held.CompareAndDelete(key, held)
		m.alive.Add(-size)
	}, key)
}

// share leaves a part of the budget to feeds' states.
func (m *memory) share(states int64) {
	lock := &m.locks[0]
	lock.RLock()
	defer lock.RUnlock()
	if !m.closed {
		m.cache.UpdateMaxCost(max(m.budget/4, (m.budget-states)*85/100))
	}
}

// used is the cost of what is held, in bytes.
func (m *memory) used() int64 { return m.cache.MaxCost() - m.cache.RemainingCost() }

func (m *memory) close() {
	for i := range m.locks {
		m.locks[i].Lock()
	}
	m.closed = true
	for i := range m.locks {
		m.locks[i].Unlock()
	}
	m.cache.Close() // outside of the locks: it waits for goroutines of its own
}
