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

// engines are the engines of this process by the directory of their store. An
// engine outlives the reload of a configuration: memory, pauses and polls under
// way go on in it.
var engines = caddy.NewUsagePool()

// opening is how long a request waits for an engine that has not started yet:
// Caddy starts its apps in any order, so the first requests may come before it.
const opening = 10 * time.Second

// Engine is a store, the poller and the cache that joins them.
type Engine struct {
	origin    *upstream.Client
	parts     Parts
	Limiter   *readers.Limiter // what defences have to know of readers
	metrics   *metrics
	counters  *counters  // the statistics of readers and polls
	announcer *announcer // of events

	shields atomic.Pointer[map[string]shield] // of the configuration in force, by name
	log     atomic.Pointer[zap.Logger]
	where   atomic.Pointer[string]         // the store, for people
	kept    atomic.Pointer[map[string]any] // what its handlers keep over reloads, by name

	cache atomic.Pointer[cache.Cache] // nil before the first start and after the end
	ready chan struct{}               // closed when cache is set for the first time
	taken atomic.Int64                // when a configuration took it over last, in Unix nanoseconds

	// turn is held by whoever changes what follows. It is a channel as it is held
	// while files are opened.
	turn   chan struct{}
	store  store.Store
	owners []owner // configurations that have started and not stopped, the newest last
	last   uint64  // generation
	memory int64   // that the cache was opened with

	origins map[string][]byte // configuration of the origins of shields, by name
}

// owner is a configuration that runs on the engine. Its settings are kept, for
// when a newer configuration fails to start: Caddy stops that one and goes on with
// the older one, without starting it again.
type owner struct {
	generation uint64
	settings   settings
}

// settings are what a configuration says to the engine.
type settings struct {
	cache   cache.Settings
	shields map[string]shield // by name
	kept    map[string]any    // by handlers, by name
	origin  upstream.Settings
	memory  int64
	store   Store
	log     *zap.Logger
}

// newEngine allocates an engine. It touches no file and no network: `caddy
// validate` gets this far beside a running server.
func newEngine(parts Parts) *Engine {
	e := &Engine{
		origin:    parts.Origin,
		parts:     parts,
		Limiter:   readers.NewLimiter(0),
		announcer: newAnnouncer(),
		ready:     make(chan struct{}),
		turn:      make(chan struct{}, 1),
	}
	e.origins = make(map[string][]byte)
	e.metrics = newMetrics(e.totals)
	e.counters = newCounters(&e.log)
	return e
}

// GatewayRequests counts the requests of all gateways.
func (e *Engine) GatewayRequests() *Requests { return &e.metrics.gateway }

// ShieldRequests counts those of all shields.
func (e *Engine) ShieldRequests() *Requests { return &e.metrics.shield }

// Store is where the feeds are kept, for people.
func (e *Engine) Store() string {
	if where := e.where.Load(); where != nil {
		return *where
	}
	return ""
}

// totals are figures of the cache; false where it is not open.
func (e *Engine) totals() (status.Summary, bool) {
	c := e.cache.Load()
	if c == nil {
		return status.Summary{}, false
	}
	return c.Summary(context.Background()), true
}

// polled tells metrics and events of a poll.
func (e *Engine) polled(p cache.Poll) {
	e.metrics.polled(p)
	e.announcer.polled(p)
	e.counters.traffic.countPoll(&p)
}

// forgotten drops what is known of the readers of feeds that are not known any more.
func (e *Engine) forgotten(keys []string) {
	for _, key := range keys {
		e.counters.forget(key)
	}
}

// takeOver puts a configuration's settings in force, opening the engine where
// this is the first. It returns the generation to release.
func (e *Engine) takeOver(s settings) (uint64, error) {
	e.turn <- struct{}{}
	defer func() { <-e.turn }()
	s.cache.Subscribers = e.Subscribers
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

// open opens store and cache.
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
		return err // says which store, and what to do
	}
	e.origin.Apply(s.origin) // before the cache: it may poll as soon as it is open
	c, err := cache.New(cache.Options{
		Store: e.metrics.timed(store), Origin: e.origin, Memory: s.memory, Preload: s.store.Remote(),
		Now: e.parts.Now, Suspended: e.parts.Suspended,
	})
	if err != nil {
		return errors.Join(fmt.Errorf("opening the cache: %w", err), store.Close())
	}
	e.store, e.memory = store, s.memory
	where := s.store.String()
	e.where.Store(&where)
	go e.announcer.run()
	e.log.Store(s.log)
	e.counters.open(context.Background(), store, e.parts.node()) // before the first reader
	c.Apply(s.cache)
	e.shields.Store(&s.shields) // before anybody can ask
	if e.cache.Swap(c) == nil {
		close(e.ready)
	}
	return nil
}

func (e *Engine) apply(s settings) {
	e.origin.Apply(s.origin)
	e.kept.Store(&s.kept)
	e.useShields(e.cache.Load(), s.shields)
	e.log.Store(s.log)
	e.cache.Load().Apply(s.cache)
}

// release ends a configuration. Where it was the one in force, the one before it
// is again; where it was the last, background work rests until the end.
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
		// The logger's writers are about to be closed, and so is who hears of polls. One
		// that is under way still counts: its origin was asked.
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
	close(e.announcer.done)
	if e.store == nil {
		e.origin.Close()
		return nil
	}
	err := e.cache.Swap(nil).Close()
	e.counters.close()
	e.origin.Close()
	return errors.Join(err, e.store.Close())
}

// Running returns the engine that a configuration took over last, with its
// cache, or nil. There is more than one only while a reload changes the store.
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

// Opened returns the cache, waiting for it a bounded time.
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

// Forget drops a feed and what is known of its readers.
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
