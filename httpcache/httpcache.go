// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

// Package httpcache is a shared HTTP cache in front of an [http.RoundTripper],
// and nothing more: HTTP freshness alone decides what is stored, for how long it
// is served, and when the origin is asked.
//
// It follows RFC 9111 (caching), the parts of RFC 9110 that a cache obeys
// (conditions, ranges, Connection), RFC 5861 (stale-while-revalidate and
// stale-if-error), RFC 9213 (targeted Cache-Control) and RFC 9211 (Cache-Status).
//
// It knows nothing of feeds, has no floor and no back-off, keeps everything in
// memory only, and forgets it with the process. Request directives of readers are
// advice (RFC 9111 section 5.2.1) and ignored, except only-if-cached. The way of a
// request stands in serve.go, the way of a fetch in transfer.go.
package httpcache

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// Options are the settings of a cache. Every zero value is a sensible default.
type Options struct {
	// Memory is the budget for stored responses in bytes. If zero, 64 MiB.
	Memory int64
	// MaxBody is the size in bytes above which a body streams through unstored.
	// If zero, 10 MiB. It is never more than a quarter of Memory.
	MaxBody int64
	// StaleIfError is how long past its freshness a response may stand in for an
	// origin that fails, where the response itself says nothing (RFC 9111 section
	// 4.2.4). If zero, 24 hours; if negative, only stale-if-error allows it.
	StaleIfError time.Duration
	// Detached is how long a fetch may go on that no reader waits for. If zero, 30 s.
	Detached time.Duration
	// Targets lists the targeted fields to obey, the most specific first (RFC 9213
	// section 2.2). If nil, CDN-Cache-Control; if empty, none.
	Targets []string
	// ExplicitOnly turns heuristic freshness off (RFC 9111 section 4.2.2): a
	// response that names no lifetime is stored for revalidation at most.
	ExplicitOnly bool
	// Now is the clock. If nil, time.Now.
	Now func() time.Time
}

// Cache is a shared HTTP cache. Its methods are safe for concurrent use.
type Cache struct {
	options   Options
	now       func() time.Time
	store     *store
	flights   flights
	capturing atomic.Int64 // bytes of bodies that are on their way into the store

	life   context.Context // ends with Close, and every fetch with it
	finish context.CancelFunc
	mu     sync.Mutex // guards closed, and wg.Add against Close
	closed bool
	wg     sync.WaitGroup // fetches under way
}

// New makes an empty cache. It owns goroutines until Close.
func New(o Options) (*Cache, error) {
	if o.Memory == 0 {
		o.Memory = 64 << 20
	}
	if o.MaxBody == 0 {
		o.MaxBody = 10 << 20
	}
	o.MaxBody = min(o.MaxBody, o.Memory/4)
	if o.StaleIfError == 0 {
		o.StaleIfError = 24 * time.Hour
	}
	if o.Detached == 0 {
		o.Detached = 30 * time.Second
	}
	if o.Targets == nil {
		o.Targets = []string{"CDN-Cache-Control"}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	store, err := newStore(o.Memory)
	if err != nil {
		return nil, fmt.Errorf("making the store of responses: %w", err)
	}
	c := &Cache{options: o, now: o.Now, store: store, flights: flights{under: make(map[string]*transfer)}}
	c.life, c.finish = context.WithCancel(context.Background())
	return c, nil
}

// Close ends all fetches, waits for them and forgets everything. Requests that
// come later, or are still running, go to the origin.
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
