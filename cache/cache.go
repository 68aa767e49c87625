// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

// Package cache is a read-through cache of feeds that polls politely.
//
// # The life of a feed
//
// A reader requests a feed by its key ([Cache.Feed] in table.go), and is answered from memory
// ([Feed.Serve], serve.go, representation.go, memory.go). If the feed's next poll is due, the
// request puts it into the queue, or joins the poll under way:
//
//	wait for the turn of the feed         due.go, schedule.go, package queue
//	claim the poll, durably               claim.go, [store.Store.Claim]
//	make one conditional request          poll.go, [policy.Slot.Poll]
//	classify the answer                   package feedstate: new, unchanged, gone, failed, unsent
//	learn from it, decide on the next     packages feedstate and policy
//	commit all of that at once            commit.go, [store.Store.Commit]
//	publish to readers here, and report   feed.go, report.go; other nodes: nodes.go
//
// Feeds that are due are put into the queue without readers, if the operator wants it, or if someone has poked them
// (prefetch.go, byhand.go). Feeds without readers are forgotten after a while, and feeds give way
// if the disk is full (maintain.go).
//
// The store remembers when a feed and its site may be asked next. Memory schedules: the queue decides whose turn it is,
// and a restart forgets that. Memory is also a view of the store (package feedstate): the feeds that readers use, and the
// representations that are sent often, within one budget. Several nodes may share a store. Polls and bytes in hand are
// limited (limits.go).
//
// # Waits
//
//	who waits     for what                        how long                                        then
//	reader        the poll of a stored feed       3 s (pollTimeout)                               gets what is stored
//	reader        the first poll of a feed        15 s in the queue (queueTimeout), a minute      gets an empty feed that
//	                                              in all (coldTimeout)                            says so, or 503
//	queued poll   its turn                        5 min (maxQueued)                               ends
//	queued poll   the end of a site's pause       15 s (maxPaused), of a longer one not at all    ends
//	queued poll   a place in flight               0.5 s (tryAgain)                                asks again
//	granted poll  its request to begin            10 s (feedstate.Grace)                          returns its claim
//	hop           the site that it leads to       10 s or two spacings, 2 min in all              the poll is held
//	                                              (policy.MaxHopWait)
//	outcome       the store to take it            15 s (commitTimeout)                            is dropped: the claim stands
//	claim         the store to come back          10 s (storeRetry)                               asks again
//	prefetch      what other nodes make due       10 min (dueEvery)                               reads all that is due
//
// The status of feeds is in status.go and feeds.go; polls by hand and publish pings are in byhand.go.
// Subscriptions at hubs are in websub.go, hub.go and callback.go.
//
// # Redirects
//
// A permanent redirect of a feed's URL ends its poll: the feed points to that of the other URL (State.Points,
// [Feed.Resolve] in points.go), which answers for it as long as its URL redirects. Temporary redirects are hops
// of the poll, each of which the store grants ([store.Claim]): a poll that waits too long for one is held.
// The document is the feed's own (FeedState.Version.From).
//
// # Who has asked
//
//	who remembers              what                                     for
//	Feed.asked, Record.Asked   when a reader asked last                 prefetch and sweeping
//	Feed.askers                owners that the store has not, a minute  the same as the next
//	Record.Askers              the owners of 30 days                    whose share it takes, which viewers see it
//
// # Trouble
//
// Two things can go away for all feeds at once (trouble.go):
//
//	state       begins when                     polls                             readers get
//	offline     every host fails to connect     are tried as after any failure    what is stored
//	store away  the store refuses writes        stop; a claim is tried each 10 s  what memory has
//
// It ends as soon as one host answers, or the store takes one write.
//
// # Standards
//
// Readers are answered by RFC 9110 (package version), RFC 9111 (Cache-Control) and RFC 9211
// (Cache-Status). It is not a general HTTP cache: its only content is feeds. How rarely a feed
// is polled is decided by package policy, and a poll is made by package upstream.
package cache

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/semaphore"
	"golang.org/x/sync/singleflight"
	"golang.org/x/time/rate"

	"github.com/feedpollard/pollard/cache/queue"
	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/internal/feedurl"
	"github.com/feedpollard/pollard/internal/status"
	"github.com/feedpollard/pollard/policy"
)

// An Origin is where feeds come from.
type Origin interface {
	// Acquire returns the right to have another request to the URL's host in flight; nil if the host or its site has
	// as many as it may.
	Acquire(u feedurl.URL) policy.Slot
	// Host returns the site that a poll of the URL asks, and its spacing.
	Host(u feedurl.URL) policy.Host
}

// Cache is the engine. It is safe for concurrent use.
type Cache struct {
	store    store.Store
	origin   Origin
	settings atomic.Pointer[Settings]
	now      func() time.Time
	sinceStart
	random func() float64

	// Feeds and representations in memory.
	table   table
	memory  *memory
	reads   singleflight.Group // of representations from the store
	changes changes            // of feeds in the store, that memory does not know yet

	// Limits.
	queued, inFlight limit // of polls
	inHand           inHand
	schedule         schedule

	// Housekeeping.
	recording  *semaphore.Weighted // held while the store learns which feeds are configured
	written    atomic.Int64        // bytes, since the store was held to its budget
	over       atomic.Bool         // configured feeds take more than the disk budget, and the log says so
	crowded    atomic.Bool         // strangers cannot add feeds, as the disk budget is used up
	short      atomic.Bool         // the disk of the store is nearly full, and the log says so
	slow       atomic.Pointer[[]status.SlowSite]
	slowLogged map[string]time.Duration // when, by site
	key        atomic.Pointer[hubKey]
	asking     atomic.Int64 // requests to hubs that wait or are in flight

	// Trouble.
	offline    offline
	storeAway  storeAway
	unreadable rate.Sometimes // limits what is logged

	// Signals to background work. Each has room for one.
	changed    chan struct{} // a feed may be due earlier than prefetch knows
	looks      atomic.Int64  // when prefetch looks again by itself, as [Cache.elapsed] counts; while it looks, the end of time
	again      atomic.Bool   // so may feeds that it has passed: it has to begin from the start
	overBudget chan struct{} // feeds in memory take more than their budget
	full       chan struct{} // the store may have more bodies than its budget

	open context.Context // of background work: ends when Close begins
	shut context.CancelFunc
	life context.Context // of polls: ends some seconds later
	end  context.CancelFunc
	work sync.WaitGroup
	mu   sync.Mutex // guards the start of work against Close
}

// New opens a cache over a store.
func New(o Options) (*Cache, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Memory <= 0 {
		o.Memory = DefaultMemory
	}
	memory, err := newMemory(o.Memory)
	if err != nil {
		return nil, fmt.Errorf("allocating memory for hot representations: %w", err)
	}
	c := &Cache{
		store: o.Store, origin: o.Origin, now: o.Now, sinceStart: newClock(o.Now, o.Suspended), random: rand.Float64,
		memory: memory, table: table{loading: semaphore.NewWeighted(maxLoading)}, changes: newChanges(),
		schedule: newSchedule(), queued: newLimit(waitingPolls, false), inFlight: newLimit(0, false),
		inHand: inHand{
			receiving: newLimit(receivingSize, true), parsing: semaphore.NewWeighted(parsingSize),
			sending: readersLimit{networks: make(map[netip.Prefix]int64)}, garbage: rate.Sometimes{Interval: time.Second},
		},
		offline:    offline{answered: make(map[string]time.Duration), failed: make(map[string]bool)},
		unreadable: rate.Sometimes{Interval: unreadableInterval}, recording: semaphore.NewWeighted(1),
		changed: make(chan struct{}, 1), overBudget: make(chan struct{}, 1), full: make(chan struct{}, 1),
	}
	c.life, c.end = context.WithCancel(context.Background())
	c.open, c.shut = context.WithCancel(c.life)
	c.settings.Store(Settings{}.filled())
	c.slow.Store(new([]status.SlowSite))
	c.inFlight.resize(int64(c.settings.Load().Polls))
	c.background(func() { c.prefetch(c.open) })
	c.schedule.queue.Room = func(by queue.Owner) int { return int(c.inFlight.room(store.Owner(by))) }
	c.background(func() { c.claimTurns(c.open) })
	c.background(func() { c.maintain(c.open) })
	c.background(func() { c.watch(c.open) })
	c.background(func() { c.readChanges(c.open) })
	return c, nil
}

func (c *Cache) log() *zap.Logger { return c.settings.Load().Log }

// statesBudget returns how much of the memory's budget feeds may take without their
// representations, in bytes.
func (c *Cache) statesBudget() int64 { return c.memory.budget / 2 }

func (c *Cache) wake(signal chan struct{}) {
	select {
	case signal <- struct{}{}:
	default:
	}
}

// background runs work that Close waits for. It does nothing if Close has begun.
func (c *Cache) background(work func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open.Err() != nil {
		return false
	}
	c.work.Go(work)
	return true
}

// closeTimeout is how long Close lets polls that are under way finish: with the 5 seconds
// that many give a server for its readers, less than the 10 after which systems kill.
const closeTimeout = 3 * time.Second

// Close ends background work, gives polls that are under way some seconds to finish, and
// frees memory. It does not wait for a disk that hangs. The caller closes the store.
// Requests after Close get what the store and memory still have.
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
	case <-time.After(closeTimeout):
	}
	c.end()
	select {
	case <-done:
		ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
		c.storeReaders(ctx)
		cancel()
	case <-time.After(closeTimeout): // what is left waits for the store, which does not answer
	}
	c.memory.close()
	return nil
}
