// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package upstream

import "container/heap"

// hostHeap is a heap of hosts with waiters, in the order of their first waiters, or of the
// times at which these may start.
type hostHeap struct {
	hosts []*host
	late  bool
}

func (q *hostHeap) first() *host {
	if len(q.hosts) == 0 {
		return nil
	}
	return q.hosts[0]
}

// list enters the host into a heap.
func (h *host) list(q *hostHeap) {
	h.heap = q
	heap.Push(q, h)
}

// unlist takes the host out of the heap that it is in, if any.
func (h *host) unlist() {
	if h.heap != nil {
		heap.Remove(h.heap, h.index)
		h.heap = nil
	}
}

// The methods of [heap.Interface].

func (q *hostHeap) Len() int { return len(q.hosts) }

func (q *hostHeap) Less(i, j int) bool {
	a, b := q.hosts[i], q.hosts[j]
	if q.late {
		return a.at.Before(b.at)
	}
	return a.queue[0].before(b.queue[0])
}

func (q *hostHeap) Swap(i, j int) {
	q.hosts[i], q.hosts[j] = q.hosts[j], q.hosts[i]
	q.hosts[i].index, q.hosts[j].index = i, j
}

func (q *hostHeap) Push(x any) {
	h := x.(*host)
	h.index = len(q.hosts)
	q.hosts = append(q.hosts, h)
}

func (q *hostHeap) Pop() any {
	last := len(q.hosts) - 1
	h := q.hosts[last]
	q.hosts[last] = nil
	q.hosts = q.hosts[:last]
	return h
}
