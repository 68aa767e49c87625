// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package readers

import (
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
