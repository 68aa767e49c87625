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

// The events that Caddy's events app is told, and when:
//
//	pollard.updated    a poll has brought a new version
//	pollard.failed     a poll has failed, the first of a row
//	pollard.recovered  a poll has succeeded, the first after failures
//	pollard.moved      a permanent redirect has held for so long that polls follow it from now on
//	pollard.gone       the origin has said that the feed is gone (410): polling ends
//
// A failure of the store is none of the feed. Of what nobody has configured and what
// has never been a feed, neither failures nor the end of them are told: a reader may
// ask for anything, and must not set off the operator's alarms.
//
// Their data, as {event.data.<name>}:
//
//	feed       all        the feed's URL without credentials, as in logs
//	status     all        of the origin's answer; 0: there was none
//	next_poll  all        RFC 3339; "never" after a 410
//	hint       all        what has decided that
//	entries    all        of the version that readers get; 0: there is none
//	first      updated    whether it is the feed's first version
//	failures   recovered  how many polls had failed
//	failure    failed, gone  the class of the failure, as in logs
//	error      failed, gone  more of it, for people
//	moved_to   moved      the new URL without credentials
const (
	eventUpdated   = "pollard.updated"
	eventFailed    = "pollard.failed"
	eventRecovered = "pollard.recovered"
	eventMoved     = "pollard.moved"
	eventGone      = "pollard.gone"
)

// eventsOf are the events that a poll amounts to, in order.
func eventsOf(p *cache.Poll) (names []string) {
	failed := p.Result == status.ResultFailed && p.Failures == 1 && p.Failure != policy.FailureStore
	if failed && p.Known {
		names = append(names, eventFailed)
	}
	// Somebody may ask for it by hand after it has gone, and be told so again.
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

// eventData is what an event says. The map is the event's own: handlers may add to it.
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

// announcer hands polls that are events to the configuration in force. Handlers
// of events may take their time (a command, a request to somewhere), and readers
// wait for polls: so they wait in a queue, and one goroutine delivers them in order.
type announcer struct {
	queue   chan *cache.Poll
	dropped atomic.Int64 // that found the queue full
	changed chan struct{}
	done    chan struct{} // closed when the engine ends

	mu      sync.Mutex // guards outlets
	outlets []*outlet  // of the configurations that run, the newest last
}

// maxQueued is how many polls may wait for slow handlers of events.
const maxQueued = 1000

func newAnnouncer() *announcer {
	return &announcer{
		queue:   make(chan *cache.Poll, maxQueued),
		changed: make(chan struct{}, 1), done: make(chan struct{}),
	}
}

// polled queues a poll if it amounts to any event. It never waits.
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

// outlet is that of the configuration in force, once there is one; nil at the end.
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

// open makes an outlet the one in force. The one before is so again where the new
// configuration ends before it does.
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

// prune drops the outlets of configurations that have ended: an event in a context
// that is cancelled reaches no handler.
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

// connect lets an engine's events go to the events app of a configuration, as soon
// as that has started: apps start in any order, and until then the events app
// writes its subscriptions, with no lock, where whoever emits an event reads them.
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

// tell emits the events of a poll.
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
