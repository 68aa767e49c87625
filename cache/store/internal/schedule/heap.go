// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package schedule

// heap is a queue of values by the time at which their turn comes: a heap of four
// children, which has half the levels of a binary one. It holds no pointers
// unless V does, so that an index of a million feeds costs a garbage collector
// nothing.
type heap[V any] []turn[V]

type turn[V any] struct {
	at    Time
	value V
}

// first is the time of the first value, [End] where there is none.
func (h heap[V]) first() Time {
	if len(h) == 0 {
		return End
	}
	return h[0].at
}

func (h *heap[V]) push(at Time, value V) {
	*h = append(*h, turn[V]{at, value})
	all := *h
	for i := len(all) - 1; i > 0; {
		parent := (i - 1) / 4
		if all[parent].at <= all[i].at {
			return
		}
		all[parent], all[i] = all[i], all[parent]
		i = parent
	}
}

func (h *heap[V]) pop() turn[V] {
	all := *h
	top, last := all[0], all[len(all)-1]
	clear(all[len(all)-1:])
	all = all[:len(all)-1]
	*h = all
	if len(all) == 0 {
		return top
	}
	i := 0
	for {
		least := i
		at := last.at
		for child := 4*i + 1; child <= 4*i+4 && child < len(all); child++ {
			if all[child].at < at {
				least, at = child, all[child].at
			}
		}
		if least == i {
			break
		}
		all[i] = all[least]
		i = least
	}
	all[i] = last
	return top
}

// until counts the values whose time has come. It visits no others, but for the
// children of those.
func (h heap[V]) until(now Time) int {
	return h.below(0, now)
}

func (h heap[V]) below(i int, now Time) int {
	if i >= len(h) || h[i].at > now {
		return 0
	}
	n := 1
	for child := 4*i + 1; child <= 4*i+4; child++ {
		n += h.below(child, now)
	}
	return n
}
