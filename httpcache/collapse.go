// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package httpcache

import (
	"net/http"
	"sync"
	"time"
)

// collapseWait is for how long a request waits for the answer to another one
// before it goes to the origin itself.
const collapseWait = 10 * time.Second

// collapsing are the transfers under way that others may join (RFC 9111 section 4:
// requests are collapsed where the answer may be reused for all of them).
type collapsing struct {
	mu    sync.Mutex
	under map[string]*transfer
}

// join returns the transfer under way for a collapse key, or starts one: also where
// what is under way was asked for before an invalidation.
func (c *Cache) join(key string, start func() *transfer) (t *transfer, started bool) {
	f := &c.collapsing
	f.mu.Lock()
	defer f.mu.Unlock()
	if t := f.under[key]; t != nil && !c.store.isVoid(t.watch) {
		return t, false
	}
	t = start()
	t.collapseKey = key
	f.under[key] = t
	return t, true
}

// remove ends the time in which a transfer can be joined.
func (f *collapsing) remove(t *transfer) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.under[t.collapseKey] == t {
		delete(f.under, t.collapseKey)
	}
}

// collapseKey tells the requests apart that can share an answer, as far as is known
// before it comes: by the Vary of the last one.
func collapseKey(key string, v *resource, r *http.Request) string {
	if len(v.variants()) == 0 {
		return key
	}
	return key + v.entries[0].selection.of(r)
}
