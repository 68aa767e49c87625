// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package poller

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/notify"
	"go.uber.org/zap"

	"github.com/feedpollard/pollard/cache"
	"github.com/feedpollard/pollard/caddymodule/door"
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
	counters *counters        // the statistics of readers and polls
	events   chan *cache.Poll // polls whose events are to be emitted
	refused  *refusedReaders

	app   atomic.Pointer[App]         // of the configuration in force; nil before the first start
	cache atomic.Pointer[cache.Cache] // nil before the first start and after the end
	ready chan struct{}               // closed when cache is set for the first time
	lost  time.Time                   // when the file of the store was found damaged; set before cache
	taken atomic.Int64                // when an app took it over last, in Unix nanoseconds

	mu    sync.Mutex // guards the fields below
	store Database
	// The apps that have started and not stopped, the newest last. If a newer configuration
	// fails to start, Caddy stops it and continues with the older one, without starting that again.
	apps   []*App
	memory int64 // bytes; the cache was opened with it
}

// Parts are the parts of an engine that are not configured.
type Parts struct {
	// Origin makes the polls.
	Origin *upstream.Client
	// Open opens the store. If it is nil, the configured store is opened.
	Open func(context.Context, *zap.Logger) (Database, error)
	// Now and Suspended are the machine's clock, as in [cache.Options].
	Now       func() time.Time
	Suspended func() time.Duration
	// Node is this node's name in the store. Default: the ID of the Caddy instance.
	Node string
}

// node returns this node's name in the store. It is the same in the next process,
// unless Caddy's data directory cannot be written.
func (p *Parts) node() string {
	if p.Node != "" {
		return p.Node
	}
	id, err := caddy.InstanceID()
	if err != nil {
		return rand.Text()
	}
	return id.String()
}

// Adopt registers an engine made of p for the SQLite store in a directory. Apps whose
// configuration names that directory use this engine. Tests call it to run Caddy with
// their own origins and clock. release drops the reference; the engine ends when no
// configuration uses it either.
func Adopt(directory string, p Parts) (release func() error, err error) {
	key := "sqlite:" + directory
	_, _, err = engines.LoadOrNew(key, func() (caddy.Destructor, error) {
		return newEngine(p), nil
	})
	return func() error { _, err := engines.Delete(key); return err }, err
}

// newEngine allocates an engine. It uses neither files nor the network, because `caddy
// validate` calls it while a server runs.
func newEngine(parts Parts) *Engine {
	e := &Engine{
		origin:   parts.Origin,
		parts:    parts,
		Limiter:  readers.NewLimiter(),
		NewFeeds: newNewFeeds(),
		events:   make(chan *cache.Poll, maxQueued),
		refused:  newRefusedReaders(),
		ready:    make(chan struct{}),
	}
	e.metrics = newMetrics(e.totals)
	e.metrics.gateway.refused, e.metrics.shield.refused = e.refused, e.refused
	e.counters = newCounters(func() *zap.Logger { return e.app.Load().log })
	return e
}

// GatewayRequests counts the requests of all gateways.
func (e *Engine) GatewayRequests() *Requests { return e.metrics.gateway }

// ShieldRequests counts the requests of all shields.
func (e *Engine) ShieldRequests() *Requests { return e.metrics.shield }

// Store describes the store, or returns "" before it is opened.
func (e *Engine) Store() string {
	if a := e.app.Load(); a != nil {
		return a.store.String()
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
	e.queueEvents(p)
	e.counters.traffic.countPoll(&p)
}

// takeOver puts an app in force. The first call opens the engine.
func (e *Engine) takeOver(a *App) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	a.cache.Subscribers = e.Subscribers
	a.cache.Client = func(r *http.Request) netip.Addr { return door.Read(r).Client.Address }
	a.cache.Post = e.origin.Post
	a.cache.Observe = e.polled
	a.cache.Forgotten = e.counters.forget
	if err := e.open(a); err != nil {
		return err
	}
	feeds := a.cache.Feeds
	if n := len(e.apps); n > 0 {
		feeds = e.apps[n-1].cache.Feeds // until it has started
	}
	e.apps = append(e.apps, a)
	e.apply(a, feeds)
	e.taken.Store(time.Now().UnixNano())
	return nil
}

// started puts the feeds of an app in force when all apps of its configuration have started. The store
// remembers for days which feeds are configured, and must not learn it from a configuration that fails.
func (e *Engine) started(a *App) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.app.Load() == a && slices.Contains(e.apps, a) {
		e.apply(a, a.cache.Feeds)
	}
}

// open opens the store and the cache, unless they are open.
func (e *Engine) open(a *App) error {
	if e.store != nil {
		if a.Memory != e.memory {
			a.log.Warn("memory changes with the next start of the process", zap.Int64("bytes", e.memory))
		}
		return nil
	}
	open := a.store.Open
	if e.parts.Open != nil {
		open = e.parts.Open
	}
	opened := make(chan struct{})
	go extendStart(opened)
	store, err := open(context.Background(), a.log)
	close(opened)
	if err != nil {
		return err // it names the store and says what to do
	}
	e.metrics.observe(store)
	e.origin.Apply(a.upstream) // before the cache: it may poll as soon as it is open
	c, err := cache.New(cache.Options{
		Store: store, Origin: e.origin, Memory: a.Memory,
		Now: e.parts.Now, Suspended: e.parts.Suspended,
	})
	if err != nil {
		return errors.Join(fmt.Errorf("opening the cache: %w", err), store.Close())
	}
	if ago, err := store.Lost(context.Background()); err == nil && ago >= 0 { // after an error, readers hear that the store is away
		e.lost = time.Now().Add(-ago)
	}
	e.store, e.memory = store, a.Memory
	e.app.Store(a)                                               // before the first request
	e.counters.open(context.Background(), store, e.parts.node()) // before the first reader
	c.Apply(a.cache)
	if e.cache.Swap(c) == nil {
		close(e.ready)
	}
	return nil
}

// StoreDamaged returns when the file of the store was found damaged when it was opened; zero if that was more than a week ago, or
// never.
func (e *Engine) StoreDamaged() time.Time {
	if time.Since(e.lost) > 7*24*time.Hour {
		return time.Time{}
	}
	return e.lost.UTC()
}

// Crowded reports whether strangers cannot add feeds, as the store has no room.
func (e *Engine) Crowded() bool {
	c := e.cache.Load()
	return c != nil && c.Crowded()
}

// extendStart has systemd wait while a store is opened, which takes long if its tables are brought up
// to a later version.
func extendStart(opened <-chan struct{}) {
	const every = 20 * time.Second
	for {
		select {
		case <-opened:
			return
		case <-time.After(every):
			_ = notify.Status("opening the store\nEXTEND_TIMEOUT_USEC=60000000") // there may be no systemd
		}
	}
}

func (e *Engine) apply(a *App, feeds []string) {
	e.origin.Apply(a.upstream)
	e.app.Store(a)
	settings := a.cache
	settings.Feeds = feeds
	e.cache.Load().Apply(settings)
}

// release ends an app. If it was in force, the one before it is again. If it was the last,
// prefetching stops, and polls are not logged and emit no events.
func (e *Engine) release(a *App) {
	e.mu.Lock()
	defer e.mu.Unlock()
	i := slices.Index(e.apps, a)
	if i < 0 {
		return
	}
	e.apps = slices.Delete(e.apps, i, i+1)
	switch {
	case i < len(e.apps): // a newer one is in force
	case i > 0:
		e.apply(e.apps[i-1], e.apps[i-1].cache.Feeds)
	default:
		// Caddy closes the log's writers and the events app next. A poll in flight is
		// still counted, because its origin has received the request.
		rest := a.cache
		rest.Prefetch, rest.Log = false, nil
		rest.Observe = func(p cache.Poll) { e.counters.traffic.countPoll(&p) }
		e.cache.Load().Apply(rest)
	}
}

// Destruct ends the engine, when no configuration refers to it any more.
func (e *Engine) Destruct() error {
	e.mu.Lock()
	defer e.mu.Unlock()
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
	ctx, cancel := context.WithTimeout(ctx, opening)
	defer cancel()
	reason := "the gateway is starting"
	select {
	case <-e.ready:
		if c := e.cache.Load(); c != nil {
			return c, nil
		}
		reason = "the gateway is stopping"
	case <-ctx.Done():
	}
	return nil, &cache.Unavailable{Status: http.StatusServiceUnavailable, Reason: reason, RetryAfter: opening}
}

// Forget drops a feed and the statistics of its readers.
func (e *Engine) Forget(ctx context.Context, c *cache.Cache, url string) error {
	if err := c.Forget(ctx, url); err != nil {
		return err
	}
	// A configured feed stays known.
	if _, err := c.Status(ctx, url); errors.Is(err, cache.ErrUnknownFeed) {
		e.counters.forget([]string{url})
		e.counters.save(ctx)
	}
	return nil
}
