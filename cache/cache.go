// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

// Package cache is a read-through cache of feeds that polls politely.
//
// It owns the life of a feed. A reader's request is answered from memory
// ([Feed.Serve]); where the feed's next poll is due, one poll waits for its host's
// slot, is claimed in the [Store], made through the [Origin], judged, and committed
// as one transaction (poll.go, conclude.go). How rarely that happens is decided by
// package policy; how a poll is carried out is the business of the Origin.
//
// The store owns the schedule. What is in memory is a view of it: the feeds that
// are asked for (table.go) and the representations that are sent often (memory.go),
// within one budget. Several nodes may share a store, and each follows what the others
// change in it (follow.go).
//
// Readers are answered by RFC 9110 (conditional requests, content coding),
// RFC 9111 (Cache-Control) and RFC 9211 (Cache-Status). It is no general HTTP
// cache: its one kind of content is the feed.
package cache

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/semaphore"
	"golang.org/x/sync/singleflight"

	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/internal/feedurl"
	"github.com/feedpollard/pollard/policy"
)

// An Origin is where feeds come from.
type Origin interface {
	// Acquire waits for the right to ask the URL's host once: in the host's queue, in
	// which polls that a reader waits for are urgent and go first. It fails with a
	// [policy.Held] where the host has to be left alone for longer than it may wait.
	Acquire(ctx context.Context, u feedurl.URL, urgent bool) (policy.Slot, error)
	// Held is the pause that the URL's host has asked for, nil where there is none.
	Held(u feedurl.URL) *policy.Held
	// Host is whom a poll of the URL asks.
	Host(u feedurl.URL) policy.Host
	// Busy lists the hosts, by name, with polls under way or waiting.
	Busy() []string
	// Hold takes over pauses that were agreed before a restart, or by another node.
	Hold(pauses []policy.Pause)
}

// Options are what a cache is made of. They stay as they are for its life.
type Options struct {
	Store  store.Store
	Origin Origin
	Memory int64            // budget of what is held in memory, in bytes; 0: 64 MiB
	Now    func() time.Time // nil: time.Now
	// ReadAhead brings into memory, at the start, what readers have asked for of late: for
	// a store that may be out of reach when they ask again.
	ReadAhead bool
	// Suspended is how long the machine has been suspended since some moment, in
	// which a monotonic clock stands still. Nil: as the system says.
	Suspended func() time.Duration
}

// Settings are what a new configuration may change while the cache runs.
type Settings struct {
	// Rules returns the operator's rules for a feed. Nil: the default rules for all.
	Rules func(key Key) policy.Rules
	// Site returns the origin of a shielded feed, nil where its shield is not
	// configured. Nil: there are no shields.
	Site func(key string) Origin
	// Allow returns why a redirect may not lead from one URL to another, for feeds that
	// are not configured. Nil: it may lead anywhere.
	Allow func(from, to feedurl.URL) error
	// Feeds are the keys of configured feeds: they are never forgotten.
	Feeds []string
	// Prefetch polls due feeds in the background. Without it, a poll happens when a reader asks.
	Prefetch bool
	// IdleAfter ends the prefetching of a feed that nobody has asked for so long. 0: 30 days.
	IdleAfter time.Duration
	// Polls is how many polls may be in flight. 0: 128.
	Polls int
	// Disk is the budget of stored bodies, in bytes. 0: 10 GiB.
	Disk int64
	// Subscribers tells how many readers stand behind a feed; 0: not known. Nil: never known.
	Subscribers func(key string) int
	// Observe is called after each poll, without locks held. Nil: nobody listens.
	Observe func(Poll)
	// Forgotten is called with the keys of feeds that have been forgotten. Nil: nobody listens.
	Forgotten func(keys []string)
	Log       *zap.Logger // nil: nothing is logged

	configured map[string]bool
	recorded   *atomic.Bool // the store has records of all of them
}

const (
	// closePatience is how long Close lets polls that are under way finish: with the 5 seconds
	// that many give a server for its readers, less than the 10 after which systems kill.
	closePatience = 3 * time.Second
)

// Cache is the engine. It is safe for concurrent use.
type Cache struct {
	store    store.Store
	origin   Origin
	memory   *memory
	now      func() time.Time
	clock    clock
	chance   func() float64
	settings atomic.Pointer[Settings]

	table     table
	reads     singleflight.Group // of representations from the store
	making    sync.Map           // memory keys of representations that are being made
	polls     atomic.Pointer[pollLimit]
	waiting   atomic.Int64        // polls that are not in flight yet
	bodies    *semaphore.Weighted // bytes of large bodies that polls have in hand
	documents *semaphore.Weighted // bytes of documents that are parsed or compressed
	shields   atomic.Bool         // feeds of sites of this process are asked for
	swept     time.Duration       // when they were swept last
	behind    behind              // feeds that the store has changed
	network   network             // whether anything can be reached
	outage    outage              // of the store

	changed chan struct{} // rung when the prefetching should look again
	crowded chan struct{} // rung when feeds in memory take more than their budget
	full    chan struct{} // rung when the store may have more bodies than its budget
	written atomic.Int64  // bytes of bodies, since the store was held to its budget

	open context.Context // of background work: ends when Close begins
	shut context.CancelFunc
	life context.Context // of polls: ends some seconds later
	end  context.CancelFunc
	work sync.WaitGroup
	mu   sync.Mutex // guards the start of work against Close
}

// New opens a cache over a store. It reads nothing of it but pauses.
func New(o Options) (*Cache, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Memory <= 0 {
		o.Memory = 64 << 20
	}
	memory, err := newMemory(o.Memory)
	if err != nil {
		return nil, fmt.Errorf("making room for hot representations: %w", err)
	}
	c := &Cache{
		store: o.Store, origin: o.Origin, memory: memory, bodies: semaphore.NewWeighted(bodiesSize), documents: semaphore.NewWeighted(documentsSize),
		now: o.Now, clock: newClock(o.Now, o.Suspended), chance: rand.Float64,
		changed: make(chan struct{}, 1), crowded: make(chan struct{}, 1), full: make(chan struct{}, 1),
		behind: newBehind(),
	}
	c.life, c.end = context.WithCancel(context.Background())
	c.open, c.shut = context.WithCancel(c.life)
	c.settings.Store(Settings{}.filled())
	c.resize()
	pauses, err := c.store.Pauses(c.life)
	if err != nil {
		c.end()
		memory.close()
		return nil, fmt.Errorf("reading the store: %w", err)
	}
	c.origin.Hold(pauses)
	c.background(func() { c.prefetch(c.open) })
	c.background(func() { c.keepHouse(c.open) })
	c.background(func() { c.watch(c.open) })
	c.background(func() { c.catchUp(c.open) })
	if o.ReadAhead {
		c.background(func() { c.readAhead(c.open) })
	}
	return c, nil
}

func (s Settings) filled() *Settings {
	if s.Rules == nil {
		s.Rules = func(Key) policy.Rules { return policy.DefaultRules() }
	}
	if s.Site == nil {
		s.Site = func(string) Origin { return nil }
	}
	if s.Allow == nil {
		s.Allow = func(feedurl.URL, feedurl.URL) error { return nil }
	}
	if s.IdleAfter <= 0 {
		s.IdleAfter = 30 * 24 * time.Hour
	}
	if s.Polls <= 0 {
		s.Polls = 128
	}
	if s.Disk <= 0 {
		s.Disk = 10 << 30
	}
	if s.Subscribers == nil {
		s.Subscribers = func(string) int { return 0 }
	}
	if s.Observe == nil {
		s.Observe = func(Poll) {}
	}
	if s.Forgotten == nil {
		s.Forgotten = func([]string) {}
	}
	if s.Log == nil {
		s.Log = zap.NewNop()
	}
	s.recorded = new(atomic.Bool)
	s.configured = make(map[string]bool, len(s.Feeds))
	for _, key := range s.Feeds {
		s.configured[key] = true
	}
	return &s
}

// Apply puts settings in force, for all feeds and at once. What was decided
// under earlier rules stands until the next poll, which does not come before a floor
// that has been raised.
func (c *Cache) Apply(s Settings) {
	c.settings.Store(s.filled())
	c.resize()
	c.wake(c.changed)
}

// resize puts the limit of polls in flight in force.
func (c *Cache) resize() {
	limit := c.settings.Load().Polls
	if p := c.polls.Load(); p == nil || p.limit != limit {
		c.polls.Store(newPollLimit(limit))
	}
}

// elapsed is the time that feeds are scheduled by: it grows while the machine is
// suspended, and steps of the wall clock change nothing.
func (c *Cache) elapsed() time.Duration { return c.clock.elapsed() }

func (c *Cache) log() *zap.Logger { return c.settings.Load().Log }

// statesBudget is how much of the memory's budget feeds may take without their
// representations.
func (c *Cache) statesBudget() int64 { return c.memory.budget / 2 }

func (c *Cache) wake(bell chan struct{}) {
	select {
	case bell <- struct{}{}:
	default:
	}
}

// background runs work that Close waits for; not at all once Close has begun.
func (c *Cache) background(work func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open.Err() != nil {
		return false
	}
	c.work.Go(work)
	return true
}

// Close ends background work, lets polls that are under way finish for some
// seconds, and frees memory. It does not wait for a disk that hangs. The store is the
// caller's to close. Readers may go on asking: they get what the store and memory still
// give.
func (c *Cache) Close() error {
	c.mu.Lock()
	closed := c.open.Err() != nil
	c.shut()
	c.mu.Unlock()
	if closed {
		return errors.New("cache is closed already")
	}
	done := make(chan struct{})
	go func() { c.work.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(closePatience):
	}
	c.end()
	select {
	case <-done:
		ctx, cancel := context.WithTimeout(context.Background(), closePatience)
		c.noteReaders(ctx)
		cancel()
	case <-time.After(closePatience): // what is left waits for the store, which does not answer
	}
	c.memory.close()
	return nil
}
