// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package readers

import "sync/atomic"

// note is a request on its way into the records of its feed, its family and its reader.
type note struct {
	Request
	visitor visitor
	feedKey uint64
	name    string    // of the feed, as records have it; empty: not known yet
	keys    [3]uint64 // of the records
	entered [3]bool
	next    *note
}

// notes are requests that have been put off. A reader's answer must not wait until
// another core, which the system may have taken away from its work, lets go of the
// record of a feed that both ask for. So a request that finds a record in use is left
// here, and whoever comes next enters it: the next request, or a report.
type notes struct {
	first atomic.Pointer[note]
	count atomic.Int64
}

// maxNotes bounds them, at about 1 KiB each with what they hold of the request. Where
// there are more, requests wait.
const maxNotes = 256

func (q *notes) crowded() bool { return q.count.Load() >= maxNotes }

// add puts a request off.
func (q *notes) add(n note) {
	q.count.Add(1)
	q.put(&n)
}

func (q *notes) put(n *note) {
	for {
		n.next = q.first.Load()
		if q.first.CompareAndSwap(n.next, n) {
			return
		}
	}
}

// takeAll returns all of them, the last one first; nil: there is none.
func (q *notes) takeAll() *note {
	if q.first.Load() == nil {
		return nil
	}
	return q.first.Swap(nil)
}
