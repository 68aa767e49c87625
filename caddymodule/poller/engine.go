// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package poller

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"

	"github.com/feedpollard/pollard/cache"
	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/internal/readers"
	"github.com/feedpollard/pollard/internal/status"
	"github.com/feedpollard/pollard/upstream"
)

// engines are the engines of this process by [Store.Key]. An engine outlives the reload
// of a configuration, with its memory, its cool-downs and its polls in flight.
var engines = caddy.NewUsagePool()

// opening is how long a request waits for an engine that has not started yet. Caddy
// starts its apps in any order, so requests may arrive before the engine starts.
const opening = 10 * time.Second

// Engine is a store, the poller and the cache that joins them.
type Engine struct {
	origin   *upstream.Client
	parts    Parts
	Limiter  *readers.Limiter // for the defend lines of shields
	NewFeeds *NewFeeds
	metrics  *metrics
	counters *counters // the statistics of readers and polls
	events   *eventQueue

	shields atomic.Pointer[map[string][]Shield] // of the configuration in force, by identity
	log     atomic.Pointer[zap.Logger]
	where   atomic.Pointer[string]  // the store, as it is shown
	names   atomic.Pointer[[]Names] // of its handlers

	cache atomic.Pointer[cache.Cache] // nil before the first start and after the end
	ready chan struct{}               // closed when cache is set for the first time
	taken atomic.Int64                // when a configuration took it over last, in Unix nanoseconds

	// turn guards the fields below, as a mutex would.
	turn   chan struct{}
	store  store.Store
	owners []owner // configurations that have started and not stopped, the newest last
	last   uint64  // generation
	memory int64   // bytes; the cache was opened with it
}

// owner is a configuration that uses the engine. Its settings are kept in case a newer
// configuration fails to start: Caddy then stops the newer one and continues with the
// older one, without starting it again.
type owner struct {
	generation uint64
	settings   settings
}

// settings are a configuration's settings of the engine.
type settings struct {
	cache   cache.Settings
	shields map[string][]Shield // by identity
	names   []Names
	origin  upstream.Settings
	memory  int64
	store   Store
	log     *zap.Logger
}

// newEngine allocates an engine. It uses neither files nor the network, because `caddy
// validate` calls it while a server runs.
func newEngine(parts Parts) *Engine {
	e := &Engine{
		origin:   parts.Origin,
		parts:    parts,
		Limiter:  readers.NewLimiter(0),
		NewFeeds: newNewFeeds(),
		events:   newEventQueue(),
		ready:    make(chan struct{}),
		turn:     make(chan struct{}, 1),
	}
	e.metrics = newMetrics(e.totals)
	e.counters = newCounters(&e.log)
	return e
}

// GatewayRequests counts the requests of all gateways.
func (e *Engine) GatewayRequests() *Requests { return &e.metrics.gateway }

// ShieldRequests counts the requests of all shields.
func (e *Engine) ShieldRequests() *Requests { return &e.metrics.shield }

// Store describes the store, or returns "" before it is opened.
func (e *Engine) Store() string {
	if where := e.where.Load(); where != nil {
		return *where
	}
	return ""
}

// totals returns a summary of the cache, or false if the cache is not open.
func (e *Engine) totals() (status.Summary, bool) {
	c := e.cache.Load()
	if c == nil {
		return status.Summary{}, false
	}
	return c.Summary(context.Background()), true
}

// polled records a poll in metrics, events and statistics.
func (e *Engine) polled(p cache.Poll) {
	e.metrics.polled(p)
	e.events.polled(p)
	e.counters.traffic.countPoll(&p)
}

// forgotten drops the reader statistics of feeds that the cache has forgotten.
func (e *Engine) forgotten(keys []string) {
	for _, key := range keys {
		e.counters.forget(key)
	}
}

// takeOver applies a configuration's settings. The first call opens the engine. It
// returns the generation to pass to release.
func (e *Engine) takeOver(s settings) (uint64, error) {
	e.turn <- struct{}{}
	defer func() { <-e.turn }()
	s.cache.Subscribers = e.Subscribers
	s.cache.Client = Client
	s.cache.Post = e.origin.Post
	s.cache.Observe = e.polled
	s.cache.Forgotten = e.forgotten
	s.cache.Site, s.cache.Rules = e.originOf, e.rulesOf(s.cache.Rules)
	if err := e.open(s); err != nil {
		return 0, err
	}
	e.last++
	e.owners = append(e.owners, owner{e.last, s})
	e.apply(s)
	e.taken.Store(time.Now().UnixNano())
	return e.last, nil
}

// open opens the store and the cache, unless they are open.
func (e *Engine) open(s settings) error {
	if e.store != nil {
		if s.memory != e.memory {
			s.log.Warn("memory changes with the next start of the process", zap.Int64("bytes", e.memory))
		}
		return nil
	}
	open := s.store.Open
	if e.parts.Open != nil {
		open = e.parts.Open
	}
	store, err := open(context.Background(), s.log)
	if err != nil {
		return err // it names the store and says what to do
	}
	e.origin.Apply(s.origin) // before the cache: it may poll as soon as it is open
	c, err := cache.New(cache.Options{
		Store: e.metrics.timed(store), Origin: e.origin, Memory: s.memory,
		Now: e.parts.Now, Suspended: e.parts.Suspended,
	})
	if err != nil {
		return errors.Join(fmt.Errorf("opening the cache: %w", err), store.Close())
	}
	e.store, e.memory = store, s.memory
	where := s.store.String()
	e.where.Store(&where)
	go e.events.run()
	e.log.Store(s.log)
	e.counters.open(context.Background(), store, e.parts.node()) // before the first reader
	c.Apply(s.cache)
	e.shields.Store(&s.shields) // before the first request
	if e.cache.Swap(c) == nil {
		close(e.ready)
	}
	return nil
}

func (e *Engine) apply(s settings) {
	e.origin.Apply(s.origin)
	e.names.Store(&s.names)
	e.shields.Store(&s.shields)
	e.log.Store(s.log)
	e.cache.Load().Apply(s.cache)
}

// release ends a configuration. If it was in force, the one before it is again. If it was
// the last, prefetching stops, and polls are not logged and emit no events.
func (e *Engine) release(generation uint64) {
	e.turn <- struct{}{}
	defer func() { <-e.turn }()
	i := slices.IndexFunc(e.owners, func(o owner) bool { return o.generation == generation })
	if i < 0 {
		return
	}
	newest := i == len(e.owners)-1
	released := e.owners[i]
	e.owners = slices.Delete(e.owners, i, i+1)
	switch {
	case !newest:
	case len(e.owners) > 0:
		e.apply(e.owners[len(e.owners)-1].settings)
	default:
		// Caddy closes the log's writers and the events app next. A poll in flight is
		// still counted, because its origin has received the request.
		rest := released.settings
		rest.cache.Prefetch, rest.cache.Log = false, nil
		rest.cache.Observe = func(p cache.Poll) { e.counters.traffic.countPoll(&p) }
		e.apply(rest)
	}
}

// Destruct ends the engine, when no configuration refers to it any more.
func (e *Engine) Destruct() error {
	e.turn <- struct{}{}
	defer func() { <-e.turn }()
	close(e.events.done)
	if e.store == nil {
		e.origin.Close()
		return nil
	}
	err := e.cache.Swap(nil).Close()
	e.counters.close()
	e.origin.Close()
	return errors.Join(err, e.store.Close())
}

// Running returns the engine that was taken over last, and its cache; or nil if none
// runs. Several run only while a reload changes the store.
func Running() (newest *Engine, c *cache.Cache) {
	engines.Range(func(_, value any) bool {
		e := value.(*Engine)
		open := e.cache.Load()
		if open != nil && (newest == nil || e.taken.Load() > newest.taken.Load()) {
			newest, c = e, open
		}
		return true
	})
	return newest, c
}

// Opened returns the cache. It waits up to 10 seconds for the engine to start.
func (e *Engine) Opened(ctx context.Context) (*cache.Cache, error) {
	if c := e.cache.Load(); c != nil {
		return c, nil
	}
	t := time.NewTimer(opening)
	defer t.Stop()
	select {
	case <-e.ready:
		if c := e.cache.Load(); c != nil {
			return c, nil
		}
		return nil, &cache.Unavailable{Status: http.StatusServiceUnavailable, Reason: "the gateway is stopping", RetryAfter: opening}
	case <-t.C:
	case <-ctx.Done():
	}
	return nil, &cache.Unavailable{Status: http.StatusServiceUnavailable, Reason: "the gateway is starting", RetryAfter: opening}
}

// Forget drops a feed and the statistics of its readers.
func (e *Engine) Forget(ctx context.Context, c *cache.Cache, url string) error {
	if err := c.Forget(ctx, url); err != nil {
		return err
	}
	// A configured feed stays known.
	if _, err := c.Status(ctx, url); errors.Is(err, cache.ErrUnknownFeed) {
		e.forgotten([]string{url})
		e.counters.save(ctx)
	}
	return nil
}
