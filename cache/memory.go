// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"encoding/binary"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dgraph-io/ristretto/v2"
	"golang.org/x/sync/semaphore"

	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/cache/version"
	"github.com/feedpollard/pollard/policy"
)

// memory holds hot representations. It is only memory: it may drop anything at any
// time, and refuse new ones while it is full of hot ones. A version never changes,
// so that nothing in it is ever out of date.
//
// A representation that is being sent stays in memory until the last of its readers has
// it, also after the cache has dropped it, and counts for as long. So readers of one feed
// share one copy however slow they are, and the copies of many feeds are bounded.
type memory struct {
	cache  *ristretto.Cache[uint64, *representation]
	budget int64
	large  *semaphore.Weighted // bytes of large representations, in the cache or being sent
	most   int64               // of them

	// Ristretto must not be used once it is being closed, and readers go on asking.
	// Only closing takes a lock for itself: nothing ever waits before that. They are
	// several so that readers of different feeds share no cache line.
	locks  [16]paddedLock
	closed bool // guarded by all locks

	held sync.Map // memory key to *representation: those with holders
}

type paddedLock struct {
	sync.RWMutex
	_ [40]byte
}

const (
	// overhead is what ristretto and the prepared headers cost beside a body, in bytes.
	overhead = 500
	// maxBudget is more memory than any machine has. Ristretto has counters of what was asked
	// for, which take some three bytes each; maxCounters are as many as 16 GiB need.
	maxBudget   = 1 << 50
	maxCounters = 1 << 24
	// besideMemory is how many bytes of large representations may be on their way to readers
	// beyond the budget of memory.
	besideMemory = 24 << 20
	// readPatience is how long a reader waits if there are more.
	readPatience = 20 * time.Second
)

// errCrowded reports that too many large feeds are on their way to readers.
var errCrowded = errors.New("many large feeds are being read: try again in a moment")

// representation is a version in one coding, in memory.
type representation struct {
	*version.Representation
	id      store.ID
	memory  *memory
	size    reservation
	holders atomic.Int32 // the cache, and each response that it is sent in
}

// hold adds a holder, unless the last one has released it.
func (r *representation) hold() bool {
	for {
		n := r.holders.Load()
		if n == 0 {
			return false
		}
		if r.holders.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// release removes a holder. Releasing nil does nothing.
func (r *representation) release() {
	if r != nil && r.holders.Add(-1) == 0 {
		r.memory.held.CompareAndDelete(memoryKey(r.id, r.Coding), r)
		r.size.release()
	}
}

func newMemory(budget int64) (*memory, error) {
	budget = min(budget, maxBudget)
	m := &memory{budget: budget, most: budget + besideMemory}
	m.large = semaphore.NewWeighted(m.most)
	var err error
	m.cache, err = ristretto.NewCache(&ristretto.Config[uint64, *representation]{
		MaxCost:     max(budget*85/100, 1), // the heap grows to more than the sum of costs
		NumCounters: min(max(1000, budget/10_000*10), maxCounters),
		BufferItems: 64,
		OnExit:      func(r *representation) { r.release() },
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

// get returns the representation of a state's version, or nil if it is not in memory. The
// caller has to release it.
func (m *memory) get(id store.ID, s *state, c version.Coding) *representation {
	key := memoryKey(id, c)
	lock := &m.locks[key%uint64(len(m.locks))]
	lock.RLock()
	defer lock.RUnlock()
	if m.closed {
		return nil
	}
	// The tag names the version by its content: a publisher who takes a change back gives the
	// same bytes as before, and a number may come again after a feed was forgotten.
	is := func(r *representation) bool {
		return r.id == id && r.Coding == c && r.Tag == s.feed.Version.Tag && r.hold()
	}
	if r, ok := m.cache.Get(key); ok && is(r) {
		return r
	}
	if r, ok := m.held.Load(key); ok && is(r.(*representation)) {
		return r.(*representation)
	}
	return nil
}

// add takes a representation into memory, with the bytes that were reserved for it. The
// caller has to release it.
func (m *memory) add(id store.ID, rep *version.Representation, size reservation) *representation {
	r := &representation{Representation: rep, id: id, memory: m, size: size.shrink(len(rep.Body))}
	r.holders.Store(1)
	key := memoryKey(id, rep.Coding)
	lock := &m.locks[key%uint64(len(m.locks))]
	lock.RLock()
	defer lock.RUnlock()
	if m.closed {
		return r
	}
	m.held.Store(key, r)
	r.holders.Add(1) // the cache
	if !m.cache.Set(key, r, overhead+int64(len(rep.Body))) {
		r.release()
	}
	return r
}

// reservation is a number of bytes of a [semaphore.Weighted].
type reservation struct {
	of    *semaphore.Weighted
	bytes int64
}

func (r reservation) release() {
	if r.bytes > 0 {
		r.of.Release(r.bytes)
	}
}

// shrink gives back what is not needed for so many bytes.
func (r reservation) shrink(length int) reservation {
	if rest := r.bytes - int64(length); rest > 0 {
		r.of.Release(rest)
		r.bytes -= rest
	}
	return r
}

// reserve waits until a representation of so many bytes may be read. Small ones never wait.
func (m *memory) reserve(ctx context.Context, length int) (reservation, error) {
	if length <= policy.SmallBody {
		return reservation{}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, readPatience)
	defer cancel()
	size := min(int64(length), m.most)
	if m.large.Acquire(ctx, size) != nil {
		return reservation{}, errCrowded
	}
	return reservation{m.large, size}, nil
}

// tryReserve is [memory.reserve] for what can be left out.
func (m *memory) tryReserve(length int) (r reservation, ok bool) {
	if length <= policy.SmallBody {
		return reservation{}, true
	}
	size := min(int64(length), m.most)
	return reservation{m.large, size}, m.large.TryAcquire(size)
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
