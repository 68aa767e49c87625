// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

// Package httpcache is a shared HTTP cache, and nothing more: HTTP freshness alone
// decides what is stored, for how long it is served, and when the origin is asked.
//
// It follows RFC 9111 (caching), the parts of RFC 9110 that a cache obeys
// (conditions, ranges, Connection), RFC 5861 (stale-while-revalidate and
// stale-if-error), RFC 9213 (CDN-Cache-Control) and RFC 9211 (Cache-Status).
//
// There are two ways to the origin. What is stored comes from requests that the
// caller makes for nobody in particular (see [Target]); what cannot be shared goes
// the other way, untouched: the reader's own request, to the origin's own handler.
// So no reader's cookie, address or Host has a say in what others get.
//
// The cache knows nothing of feeds, has no floor and no back-off, keeps everything
// in memory, and forgets it with the process. Request directives of readers are
// advice (RFC 9111 section 5.2.1) and ignored, except only-if-cached. The way of a
// request is in serve.go, the way of a shared fetch in transfer.go.
package httpcache

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// largestBody is the size in bytes above which a body is never stored.
	largestBody = 10 << 20
	// staleIfError is how long past its freshness a response may stand in for an
	// origin that fails, where it says nothing itself (RFC 9111 section 4.2.4).
	staleIfError = 24 * time.Hour
	// detachedLimit is how long a fetch may go on that no reader waits for.
	detachedLimit = 30 * time.Second
)

// Cache is a shared HTTP cache. Its methods are safe for concurrent use.
type Cache struct {
	store      *store
	collapsing collapsing
	maxBody    int64        // bytes; larger bodies stream through
	capture    int64        // budget for bodies that are on their way into the store, in bytes
	capturing  atomic.Int64 // what is spent of it

	life   context.Context // ends with Close, and every fetch with it
	finish context.CancelFunc
	mu     sync.Mutex // guards closed, and wg.Add against Close
	closed bool
	wg     sync.WaitGroup // fetches under way
}

// New makes an empty cache with a budget in bytes, 64 MiB if that is zero: three
// quarters of it are for what is stored, the rest for what is on its way there. It
// owns goroutines until Close.
func New(memory int64) (*Cache, error) {
	if memory == 0 {
		memory = 64 << 20
	}
	store, err := newStore(memory - memory/4)
	if err != nil {
		return nil, fmt.Errorf("making the store of responses: %w", err)
	}
	c := &Cache{
		store: store, collapsing: collapsing{under: make(map[string]*transfer)},
		capture: memory / 4, maxBody: min(largestBody, memory/8),
	}
	c.life, c.finish = context.WithCancel(context.Background())
	return c, nil
}

// Close ends all shared fetches, waits for them and forgets everything. Requests
// that come later go to the origin.
func (c *Cache) Close() {
	c.mu.Lock()
	closed := c.closed
	c.closed = true
	c.mu.Unlock()
	if closed {
		return
	}
	c.finish()
	c.wg.Wait()
	c.store.close()
}

// begin counts a fetch in, so that Close waits for it. It is false after Close.
func (c *Cache) begin() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.wg.Add(1)
	}
	return !c.closed
}

// PurgeURL forgets what is stored of a URL under any key, and returns how many
// keys that were. It looks at everything that is stored.
func (c *Cache) PurgeURL(url string) int {
	return c.store.purge(func(_, of string) bool { return of == url })
}

// PurgePrefix forgets what is stored under the keys with a prefix, and returns how
// many keys that were. It looks at everything that is stored.
func (c *Cache) PurgePrefix(prefix string) int {
	return c.store.purge(func(key, _ string) bool { return strings.HasPrefix(key, prefix) })
}
