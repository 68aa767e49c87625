// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package readers

import (
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// lru holds values by hash. When it is full, it evicts the least recently used value and
// reuses its memory, so that requests with random keys do not create garbage.
type lru[V any] struct {
	capacity int
	*simplelru.LRU[uint64, *V]
	evicted func(*V) // called with each value before it is evicted; may be nil
}

func newLRU[V any](capacity int, evicted func(*V)) *lru[V] {
	capacity = max(capacity, 1)
	values, err := simplelru.NewLRU[uint64, *V](capacity, nil)
	if err != nil {
		panic(err) // only for a capacity below 1
	}
	return &lru[V]{capacity, values, evicted}
}

// find returns the value of a key, and adds a zero value if the key is new.
func (l *lru[V]) find(key uint64) (value *V, fresh bool) {
	if value, ok := l.Get(key); ok {
		return value, false
	}
	if l.Len() >= l.capacity {
		_, value, _ = l.RemoveOldest()
		if l.evicted != nil {
			l.evicted(value)
		}
		var zero V
		*value = zero
	} else {
		value = new(V)
	}
	l.Add(key, value)
	return value, true
}

// sharedLRU is an lru that is safe for concurrent use.
type sharedLRU[V any] struct {
	mu sync.Mutex
	*lru[V]
}

func newSharedLRU[V any](capacity int) *sharedLRU[V] {
	return &sharedLRU[V]{lru: newLRU[V](capacity, nil)}
}

// update calls change with the value of a key, which is zero if the key is new.
func (l *sharedLRU[V]) update(key uint64, change func(*V)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	value, _ := l.find(key)
	change(value)
}

// tryUpdate calls update if the lock is free. Otherwise it does nothing.
func (l *sharedLRU[V]) tryUpdate(key uint64, change func(*V)) {
	if !l.mu.TryLock() {
		return
	}
	defer l.mu.Unlock()
	value, _ := l.find(key)
	change(value)
}
