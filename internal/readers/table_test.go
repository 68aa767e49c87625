// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package readers

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func TestTableForgetsTheLeastRecent(t *testing.T) {
	tab := newTable[int](3)
	put := func(key uint64) (fresh bool) {
		tab.update(key, func(v *int, isFresh bool) {
			if fresh = isFresh; fresh && *v != 0 {
				t.Errorf("value %d of a key that was not there", *v)
			}
			*v = int(key)
		})
		return fresh
	}
	for _, step := range []struct {
		key   uint64
		fresh bool
	}{{1, true}, {2, true}, {3, true}, {1, false}, {4, true}, {1, false}, {3, false}, {2, true}, {4, true}, {2, false}} {
		if fresh := put(step.key); fresh != step.fresh {
			t.Fatalf("key %d: fresh %v", step.key, fresh)
		}
	}
}

// Against a plain list that does the same, slowly.
func TestTableAgainstModel(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	const capacity = 7
	tab := newTable[uint64](capacity)
	var model []uint64 // least recent first
	for range 20_000 {
		key := rnd.Uint64N(12)
		if rnd.IntN(10) == 0 {
			tab.drop(func(v *uint64) bool { return *v == key })
			model = slices.DeleteFunc(model, func(k uint64) bool { return k == key })
			continue
		}
		known := slices.Contains(model, key)
		model = append(slices.DeleteFunc(model, func(k uint64) bool { return k == key }), key)
		model = model[max(0, len(model)-capacity):]
		tab.update(key, func(v *uint64, fresh bool) {
			if fresh == known {
				t.Fatalf("key %d: fresh %v", key, fresh)
			}
			*v = key
		})
		var held []uint64
		tab.each(func(v *uint64) { held = append(held, *v) })
		slices.Sort(held)
		want := slices.Sorted(slices.Values(model))
		if !slices.Equal(held, want) {
			t.Fatalf("holds %v, want %v", held, want)
		}
	}
}

func TestTableNeverHoldsMore(t *testing.T) {
	for _, capacity := range []int{1, 31, 64, 100, 1000, 8192} {
		tab := newTable[int](capacity)
		evicted := 0
		tab.evict = func(*int) { evicted++ }
		rnd := rand.New(rand.NewPCG(3, 4))
		for range 4 * capacity {
			tab.update(rnd.Uint64(), func(*int, bool) {})
		}
		if n := tab.len(); n > capacity || n < capacity*3/4 || n+evicted != 4*capacity {
			t.Errorf("capacity %d: holds %d, evicted %d", capacity, n, evicted)
		}
	}
}
