// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"github.com/feedpollard/pollard/cache/feedstate"
	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/internal/feedurl"
	"github.com/feedpollard/pollard/internal/status"
)

// A hub (W3C WebSub) announces the changes of feeds. It is asked for that when a poll has found
// that the feed names it (hub.go), confirms the request (callback.go), and then sends pushes, of
// which each causes a poll. The body of a push never becomes content.
//
// A subscription has no schedule of its own. The outcome of each poll decides whether the hub is
// asked for something, and the commit that records the request is the right to send it: so one of
// several nodes sends it, once. If the node dies before, a later poll repeats the request, as no
// hub has confirmed it.

// subscription returns the one of a feed's state, with what this node has from the hub since that was read.
func (c *Cache) subscription(id store.ID, s *feedstate.State) feedstate.Subscription {
	p := s.Feed.Push
	if f, ok := c.table.ids.Load(id); ok {
		p.State = p.State.With(f.(*Feed).hub.Load())
	}
	if p.Mode != "" && p.State.For != "" {
		if key, err := c.secret(c.life); err != nil || p.State.For != key.mark(id, p.HubRequest) {
			p.State = feedstate.HubState{}
		}
	}
	return p
}

// pushStatus describes the subscription of a feed; nil: there is none.
func (c *Cache) pushStatus(id store.ID, s *feedstate.State) *status.Push {
	base := c.settings.Load().WebSub
	if base == "" || s.Feed.Push.Mode == "" {
		return nil
	}
	p, now := c.subscription(id, s), c.now()
	push := &status.Push{
		Hub: feedurl.Redacted(p.Hub), State: status.PushAsked, Asked: p.At, LastPush: p.State.Pushed,
	}
	if f, ok := c.table.ids.Load(id); ok {
		push.Ignored = f.(*Feed).ignored.Load()
	}
	if !p.State.Refused.Before(p.At) {
		push.Error, push.Wait = p.State.Why, p.State.Wait
	}
	switch {
	case p.Mode == feedstate.ModeUnsubscribe:
		push.State = status.PushEnded
	case p.Live(now):
		push.State, push.Lease = status.PushActive, p.State.Lease
	case push.Error != "":
		push.State = status.PushRefused
	case now.Sub(p.At) >= feedstate.ConfirmedWithin:
		push.State, push.Callback = status.PushUnreachable, p.Base+CallbackPath+"..."
	}
	return push
}

// requestsOf decides whether hubs have to be asked for something after a poll, and records that in
// the state that the poll commits. The requests are sent if that succeeds.
func (f *Feed) requestsOf(next *feedstate.State, v feedstate.Classified) []feedstate.HubRequest {
	c := f.cache
	base, over := c.settings.Load().WebSub, next.Ended || next.Points != ""
	if base == "" || f.key.Shielded() || !v.Good() && !over || c.asking.Load() >= maxAsking {
		return nil
	}
	var want feedstate.HubTopic
	if !over && f.askedRecently() {
		want = next.HubOf(f.key, v.Answer.Private)
	}
	p, now := c.subscription(f.id, next), c.now().Round(0).UTC()
	p, ask := p.Ask(want, base, now)
	if !ask {
		return nil
	}
	requests := []feedstate.HubRequest{p.HubRequest}
	if p.Ended != next.Feed.Push.Ended {
		requests = append(requests, p.Ended)
	}
	next.Feed.Push = p
	return requests
}

// askedRecently reports whether readers have asked for the feed recently. If none is known to, one
// has just asked at another node, or the operator wants it to be prefetched.
func (f *Feed) askedRecently() bool {
	return f.sinceAsked(f.cache.elapsed()) < f.cache.settings.Load().IdleAfter
}
