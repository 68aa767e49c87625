// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package readers

import (
	"math/bits"
	"sync"
)

// table is a bounded map from hashes to values, in shards with a lock each. Where
// it is full, the value of a shard that was used longest ago gives way. It never
// holds more than its capacity.
type table[V any] struct {
	shards []shard[V]
	evict  func(*V) // sees what gives way, under the shard's lock; may be nil
}

type shard[V any] struct {
	mu       sync.Mutex
	entries  map[uint64]*entry[V]
	capacity int
	recent   *entry[V] // a ring: the next of it is the second most recent, the previous one the least
	_        [32]byte  // keeps neighbours' locks apart in the processor's cache
}

type entry[V any] struct {
	key            uint64
	previous, next *entry[V]
	value          V
}

const (
	maxShards = 64
	minShard  = 32 // values: with fewer the least recent of a shard would say little
)

// newTable returns a table that holds capacity values, at least one.
func newTable[V any](capacity int) *table[V] {
	capacity = max(capacity, 1)
	count := 1
	for count < maxShards && capacity/(2*count) >= minShard {
		count *= 2
	}
	t := &table[V]{shards: make([]shard[V], count)}
	for i := range t.shards {
		t.shards[i].entries = make(map[uint64]*entry[V])
		t.shards[i].capacity = capacity / count
	}
	return t
}

// shard is chosen by the high bits, which the map inside does not depend on.
func (t *table[V]) shard(key uint64) *shard[V] {
	return &t.shards[key>>(64-bits.Len(uint(len(t.shards)-1)))]
}

// update calls change with the value of a key, under its shard's lock. fresh says
// that the value is new, and zero.
func (t *table[V]) update(key uint64, change func(value *V, fresh bool)) {
	s := t.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.update(key, change, t.evict)
}

// try is update where nobody holds the lock. Otherwise it does nothing, and reports false.
func (t *table[V]) try(key uint64, change func(value *V, fresh bool)) bool {
	s := t.shard(key)
	if !s.mu.TryLock() {
		return false
	}
	defer s.mu.Unlock()
	s.update(key, change, t.evict)
	return true
}

func (s *shard[V]) update(key uint64, change func(value *V, fresh bool), evict func(*V)) {
	e, known := s.entries[key]
	if !known {
		e = s.insert(key, evict)
	}
	s.touch(e)
	change(&e.value, !known)
}

// insert makes room where there is none, and reuses it: a table that is full
// allocates no more.
func (s *shard[V]) insert(key uint64, evict func(*V)) *entry[V] {
	var e *entry[V]
	if len(s.entries) >= s.capacity {
		e = s.recent.previous
		if evict != nil {
			evict(&e.value)
		}
		s.remove(e)
		var zero V
		e.value = zero
	} else {
		e = new(entry[V])
	}
	e.key = key
	s.entries[key] = e
	return e
}

// touch makes an entry, which may be in no ring yet, the most recent one.
func (s *shard[V]) touch(e *entry[V]) {
	if s.recent == e {
		return
	}
	if e.next != nil {
		e.previous.next, e.next.previous = e.next, e.previous
	}
	if s.recent == nil {
		e.previous, e.next = e, e
	} else {
		e.previous, e.next = s.recent.previous, s.recent
		e.previous.next, e.next.previous = e, e
	}
	s.recent = e
}

func (s *shard[V]) remove(e *entry[V]) {
	delete(s.entries, e.key)
	if e.next == e {
		s.recent = nil
	} else {
		e.previous.next, e.next.previous = e.next, e.previous
		if s.recent == e {
			s.recent = e.next
		}
	}
	e.previous, e.next = nil, nil
}

// each calls visit with every value, shard by shard under the shard's lock, in no
// particular order.
func (t *table[V]) each(visit func(*V)) {
	for i := range t.shards {
		s := &t.shards[i]
		s.mu.Lock()
		for _, e := range s.entries {
			visit(&e.value)
		}
		s.mu.Unlock()
	}
}

// drop removes the values that match, which nobody sees give way.
func (t *table[V]) drop(match func(*V) bool) {
	for i := range t.shards {
		s := &t.shards[i]
		s.mu.Lock()
		for _, e := range s.entries {
			if match(&e.value) {
				s.remove(e)
			}
		}
		s.mu.Unlock()
	}
}

// len is how many values there are.
func (t *table[V]) len() int {
	n := 0
	for i := range t.shards {
		s := &t.shards[i]
		s.mu.Lock()
		n += len(s.entries)
		s.mu.Unlock()
	}
	return n
}
