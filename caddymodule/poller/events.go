// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package poller

import (
	"context"
	"runtime/debug"

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
//	pollard.moved      the feed has redirected to another one for seven days
//	pollard.gone       the origin answered 410: polling ends
//	pollard.refused    a rule refused a reader, once per reader and hour: see refused.go
//
// Failures of the store emit no pollard.failed. A URL that is neither configured nor has
// ever returned a feed emits neither pollard.failed, pollard.recovered nor pollard.gone:
// a reader can request any URL, and must not trigger the operator's alerts.
//
// The data of an event of a poll, as {event.data.<name>}:
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
	eventRefused   = "pollard.refused"
)

func eventsOf(p *cache.Poll) (names []string) {
	failed := p.Result == status.ResultFailed && p.Failures == 1 && p.Failure != policy.FailureStore
	if failed && p.IsFeed {
		names = append(names, eventFailed)
	}
	// A refresh by hand may return 410 again. That does not emit a second event.
	if p.Result == status.ResultGone && p.Before != policy.FailureGone && p.IsFeed {
		names = append(names, eventGone)
	}
	if p.Recovered > 0 && p.IsFeed {
		names = append(names, eventRecovered)
	}
	if p.MovedTo != "" {
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
			data["error"] = feedurl.Message(p.Err.Error())
		}
	}
	return data
}

// maxQueued bounds the polls that wait for slow handlers of events.
const maxQueued = 1000

// queueEvents queues a poll if it has events. It never blocks: handlers of events may be slow (a command,
// an HTTP request), and polls must not wait for them. Each configuration has one goroutine that
// emits events in order.
func (e *Engine) queueEvents(p cache.Poll) {
	if len(eventsOf(&p)) == 0 {
		return
	}
	select {
	case e.events <- &p:
	default:
		e.app.Load().log.Warn("an event was dropped, as handlers of events are slow", zap.String("feed", feedurl.Redact(ReadersURL(p.URL))))
	}
}

// emitter emits the events of an engine in the events app of one configuration.
type emitter struct {
	ctx    caddy.Context
	app    *App
	events *caddyevents.App
}

// connect emits the events of an app's engine in the events app of its configuration once that has
// started. Before, the events app adds subscriptions without a lock, so that emitting
// an event would be a data race. Caddy starts apps in any order.
func connect(ctx caddy.Context, a *App) error {
	app, err := ctx.App("events")
	if err != nil {
		return err
	}
	events := app.(*caddyevents.App)
	return events.On("started", &emitter{ctx, a, events})
}

// Handle starts to emit when Caddy itself says that all apps have started.
func (e *emitter) Handle(_ context.Context, event caddy.Event) error {
	if event.Origin() == nil {
		e.app.engine.started(e.app)
		go e.run()
	}
	return nil
}

// run emits until the configuration ends. The next one emits the rest of the queue.
func (e *emitter) run() {
	for e.ctx.Err() == nil {
		select {
		case <-e.ctx.Done():
		case p := <-e.app.engine.events:
			for _, name := range eventsOf(p) {
				e.emit(name, eventData(name, p))
			}
		case data := <-e.app.engine.refused.events:
			e.emit(eventRefused, data)
		}
	}
}

// emit emits an event. It recovers from panics of handlers.
func (e *emitter) emit(name string, data map[string]any) {
	defer func() {
		if panicked := recover(); panicked != nil {
			e.app.log.Error("handler of an event panicked", zap.Any("panic", panicked), zap.ByteString("stack", debug.Stack()))
		}
	}()
	if e.events.ShouldEmit(name) {
		e.events.Emit(e.ctx, name, data)
	}
}

// Interface guards.
var _ caddyevents.Handler = (*emitter)(nil)
