// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"fmt"
	"runtime"
	"testing"
	"time"
)

// A million feeds that are due take at most 64 MB if ten are of one site each, names of sites included: 54 MB were measured.
// If each has a site of its own they take 300 MB.
func TestMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("puts a million feeds into the queue")
	}
	before := heapInUse()
	q := New(operator)
	fill(q, 1_000_000, 100_000)
	put := heapInUse() - before
	q.Next(0, 1)
	ready := heapInUse() - before
	t.Logf("%d bytes, %d when all sites are free", put, ready)
	if max(put, ready) > 64_000_000 {
		t.Error("more than 64 MB")
	}
	runtime.KeepAlive(q)
}

// fill puts feeds that are due into the queue, as they are read from a store.
func fill(q *Queue, feeds, sites int) {
	batch := make([]Feed, 0, 1000)
	for i := range feeds {
		batch = append(batch, Feed{ID: numbered(i), Site: fmt.Sprintf("site%d.example", i%sites), Owner: operator, Due: time.Duration(i)})
		if len(batch) == cap(batch) || i == feeds-1 {
			q.Due(batch...)
			batch = batch[:0]
		}
	}
}

func heapInUse() int {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}
