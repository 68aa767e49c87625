// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package poller

import (
	"context"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyevents"
	"go.uber.org/zap"

	"github.com/feedpollard/pollard/cache"
	"github.com/feedpollard/pollard/internal/feedurl"
	"github.com/feedpollard/pollard/internal/status"
	"github.com/feedpollard/pollard/policy"
)

// The events that are emitted in Caddy's events app:
//
//	pollard.updated    a poll returned a new version
//	pollard.failed     a poll failed, the first of several in a row
//	pollard.recovered  a poll succeeded after failures
//	pollard.moved      a permanent redirect has lasted so long that polls now use its target
//	pollard.gone       the origin answered 410: polling ends
//
// Failures of the store emit no pollard.failed. A URL that is neither configured nor has
// ever returned a feed emits neither pollard.failed, pollard.recovered nor pollard.gone:
// a reader can request any URL, and must not trigger the operator's alerts.
//
// The data of an event, as {event.data.<name>}:
//
//	feed       all        the feed's URL without credentials, as in logs
//	status     all        the origin's status code; 0: it did not answer
//	next_poll  all        RFC 3339; "never" after a 410
//	hint       all        the hint that decided next_poll
//	entries    all        the entries of the version that readers get; 0: no version
//	first      updated    whether it is the feed's first version
//	failures   recovered  how many polls failed before
//	failure    failed, gone  the class of the failure, as in logs
//	error      failed, gone  the error's text
//	moved_to   moved      the new URL without credentials
const (
	eventUpdated   = "pollard.updated"
	eventFailed    = "pollard.failed"
	eventRecovered = "pollard.recovered"
	eventMoved     = "pollard.moved"
	eventGone      = "pollard.gone"
)

// eventsOf returns the events of a poll, in order.
func eventsOf(p *cache.Poll) (names []string) {
	failed := p.Result == status.ResultFailed && p.Failures == 1 && p.Failure != policy.FailureStore
	if failed && p.Known {
		names = append(names, eventFailed)
	}
	// A refresh by hand may return 410 again. That does not emit a second event.
	if p.Result == status.ResultGone && p.Before != policy.FailureGone && p.Known {
		names = append(names, eventGone)
	}
	if p.Recovered > 0 && p.Known {
		names = append(names, eventRecovered)
	}
	if p.Result == status.ResultMoved {
		names = append(names, eventMoved)
	}
	if p.Updated {
		names = append(names, eventUpdated)
	}
	return names
}

// eventData returns the data of an event, in a new map: handlers may add to it.
func eventData(name string, p *cache.Poll) map[string]any {
	data := map[string]any{
		"feed": feedurl.Redact(ReadersURL(p.URL)), "status": p.Status, "next_poll": p.NextText(),
		"hint": p.Winner, "entries": p.Entries,
	}
	switch name {
	case eventUpdated:
		data["first"] = p.First
	case eventRecovered:
		data["failures"] = p.Recovered
	case eventMoved:
		data["moved_to"] = feedurl.Redact(p.MovedTo)
	case eventFailed, eventGone:
		data["failure"], data["error"] = string(p.Failure), ""
		if p.Err != nil {
			data["error"] = OneLine(p.Err.Error())
		}
	}
	return data
}

// announcer passes the events of polls to the configuration in force. Handlers of events
// may be slow (a command, an HTTP request), and polls must not wait for them. So events
// are queued, and one goroutine delivers them in order.
type announcer struct {
	queue   chan *cache.Poll
	dropped atomic.Int64 // polls that found the queue full
	changed chan struct{}
	done    chan struct{} // closed when the engine ends

	mu      sync.Mutex // guards outlets
	outlets []*outlet  // of the configurations that run, the newest last
}

// maxQueued bounds the polls that wait for slow handlers of events.
const maxQueued = 1000

func newAnnouncer() *announcer {
	return &announcer{
		queue:   make(chan *cache.Poll, maxQueued),
		changed: make(chan struct{}, 1), done: make(chan struct{}),
	}
}

// polled queues a poll if it has events. It never blocks.
func (a *announcer) polled(p cache.Poll) {
	if len(eventsOf(&p)) == 0 {
		return
	}
	select {
	case a.queue <- &p:
	default:
		a.dropped.Add(1)
	}
}

// run delivers until the engine ends.
func (a *announcer) run() {
	for {
		select {
		case <-a.done:
			return
		case p := <-a.queue:
			o := a.outlet()
			if o == nil {
				return
			}
			if n := a.dropped.Swap(0); n > 0 {
				o.log.Warn("events were dropped, as their handlers are slow", zap.Int64("polls", n))
			}
			o.tell(p)
		}
	}
}

// outlet waits for the outlet of the configuration in force and returns it, or nil when
// the engine ends.
func (a *announcer) outlet() *outlet {
	for {
		a.mu.Lock()
		a.prune()
		n := len(a.outlets)
		var o *outlet
		if n > 0 {
			o = a.outlets[n-1]
		}
		a.mu.Unlock()
		if o != nil {
			return o
		}
		select {
		case <-a.changed:
		case <-a.done:
			return nil
		}
	}
}

// open makes an outlet the one in force. If its configuration ends first, the one
// before it is in force again.
func (a *announcer) open(o *outlet) {
	a.mu.Lock()
	a.prune()
	a.outlets = append(a.outlets, o)
	a.mu.Unlock()
	select {
	case a.changed <- struct{}{}:
	default:
	}
}

// prune drops the outlets of configurations that have ended. Caddy does not deliver
// events to a cancelled context.
func (a *announcer) prune() {
	a.outlets = slices.DeleteFunc(a.outlets, func(o *outlet) bool { return o.ctx.Err() != nil })
}

// outlet is the events app of one configuration.
type outlet struct {
	ctx       caddy.Context
	log       *zap.Logger
	events    *caddyevents.App
	announcer *announcer
}

// connect sends an engine's events to the events app of a configuration once that has
// started. Before, the events app adds subscriptions without a lock, so that emitting
// an event would be a data race. Caddy starts apps in any order.
func connect(ctx caddy.Context, log *zap.Logger, a *announcer) error {
	app, err := ctx.App("events")
	if err != nil {
		return err
	}
	events := app.(*caddyevents.App)
	return events.On("started", &outlet{ctx, log, events, a})
}

// Handle opens the outlet when Caddy itself says that all apps have started.
func (o *outlet) Handle(_ context.Context, e caddy.Event) error {
	if e.Origin() == nil {
		o.announcer.open(o)
	}
	return nil
}

// tell emits the events of a poll. It recovers from panics of handlers.
func (o *outlet) tell(p *cache.Poll) {
	defer func() {
		if panicked := recover(); panicked != nil {
			o.log.Error("handler of an event panicked", zap.Any("panic", panicked), zap.ByteString("stack", debug.Stack()))
		}
	}()
	for _, name := range eventsOf(p) {
		if o.events.ShouldEmit(name) {
			o.events.Emit(o.ctx, name, eventData(name, p))
		}
	}
}

// Interface guards.
var _ caddyevents.Handler = (*outlet)(nil)
