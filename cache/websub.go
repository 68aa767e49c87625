// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/internal/feedurl"
	"github.com/feedpollard/pollard/internal/httpfield"
	"github.com/feedpollard/pollard/internal/status"
	"github.com/feedpollard/pollard/policy"
)

// A hub (W3C WebSub) announces the changes of feeds. It is asked for that when a poll has found
// that the feed names it (hub.go), confirms the request (callback.go), and then sends pushes, of
// which each causes a poll. What it pushes never becomes content.
//
// A subscription has no schedule of its own. The outcome of each poll decides whether the hub is
// asked for something, and the commit that records the request is the right to send it: so one of
// several nodes sends it, once. If the node dies before, a later poll repeats the request, as no
// hub has confirmed it.

const (
	modeSubscribe   = "subscribe"
	modeUnsubscribe = "unsubscribe"

	// confirmedWithin is how long a hub may take to confirm a request, and how long the first
	// request is not repeated. Each further one doubles that, up to maxHubRetry.
	confirmedWithin = time.Hour
	maxHubRetry     = 24 * time.Hour
	// deniedFor is how long a hub is left alone that has denied a subscription.
	deniedFor = 7 * 24 * time.Hour
	// A hub that has missed maxMisses changes is not trusted for doubtedFor. Missed is an entry
	// that is older than announcedIn when a poll finds it, and was not announced.
	maxMisses   = 2
	missesFor   = 7 * 24 * time.Hour
	announcedIn = 15 * time.Minute
	// maxHubURL is the longest URL of a hub or a topic, in bytes.
	maxHubURL = 2048
)

// subscription is a feed's subscription at its hub. Polls write all of it but State.
type subscription struct {
	hubRequest          // the last one
	Tries      int      `json:"tries,omitempty"` // requests in a row, this one included, of which none was confirmed before the next
	State      hubState `json:"state,omitzero"`

	Polled time.Time `json:"polled,omitzero"`  // the last poll that a push has caused
	Worked bool      `json:"worked,omitempty"` // a push has brought a change
	Misses int       `json:"misses,omitempty"`
	Missed time.Time `json:"missed,omitzero"` // the last of maxMisses
}

// hubRequest is a request to a hub.
type hubRequest struct {
	hubTopic
	Mode string    `json:"mode,omitempty"` // empty: there was none
	Base string    `json:"base,omitempty"` // of the callback
	At   time.Time `json:"at,omitzero"`
}

// hubTopic is a hub, and the topic by which it knows a feed.
type hubTopic struct {
	Hub   string `json:"hub,omitempty"`
	Topic string `json:"topic,omitempty"`
}

// hubState is what became of requests, and what the hub has sent. Any node may learn of it at any
// time, while another one polls the feed. Therefore two of them can be merged.
type hubState struct {
	For      string    `json:"for,omitempty"`     // the mark of the request; that of another one says nothing
	Answered time.Time `json:"answered,omitzero"` // the hub has confirmed or denied a request
	Lease    time.Time `json:"lease,omitzero"`    // until when it sends pushes, as of then
	Refused  time.Time `json:"refused,omitzero"`  // a request has failed
	Wait     time.Time `json:"wait,omitzero"`     // until when there is none, as of then
	Why      string    `json:"why,omitempty"`
	Pushed   time.Time `json:"pushed,omitzero"` // the last push
}

// with returns what two of them say. Of different requests, the later one counts.
func (h hubState) with(o *hubState) hubState {
	switch {
	case o == nil || o.For == "":
		return h
	case h.For != o.For && o.latest().After(h.latest()):
		return *o
	case h.For != o.For:
		return h
	}
	if o.Answered.After(h.Answered) {
		h.Answered, h.Lease = o.Answered, o.Lease
	}
	if o.Refused.After(h.Refused) {
		h.Refused, h.Wait, h.Why = o.Refused, o.Wait, o.Why
	}
	if o.Pushed.After(h.Pushed) {
		h.Pushed = o.Pushed
	}
	return h
}

func (h *hubState) latest() time.Time {
	return slices.MaxFunc([]time.Time{h.Answered, h.Refused, h.Pushed}, time.Time.Compare)
}

// confirmed reports whether the hub has answered the last request.
func (p *subscription) confirmed() bool { return !p.State.Answered.Before(p.At) }

// live reports whether the hub sends pushes.
func (p *subscription) live(now time.Time) bool {
	return p.Mode == modeSubscribe && p.State.Lease.After(now)
}

// renewal is when the lease is renewed: at half of it.
func (p *subscription) renewal() time.Time {
	return p.State.Answered.Add(p.State.Lease.Sub(p.State.Answered) / 2)
}

// subscription returns the one of a feed's state, with what this node has from the hub since that was read.
func (c *Cache) subscription(id store.ID, s *state) subscription {
	p := s.feed.Push
	if f, ok := c.table.ids.Load(id); ok {
		p.State = p.State.with(f.(*Feed).hub.Load())
	}
	if p.Mode != "" && p.State.For != "" {
		if key, err := c.secret(c.life); err != nil || p.State.For != key.mark(id, p.hubRequest) {
			p.State = hubState{}
		}
	}
	return p
}

// trusted reports whether the hub's pushes make up for polls.
func (p *subscription) trusted(now time.Time) bool {
	return p.live(now) && p.Worked && p.Misses < maxMisses
}

// pushStatus describes the subscription of a feed; nil: there is none.
func (c *Cache) pushStatus(id store.ID, s *state) *status.Push {
	base := c.settings.Load().WebSub
	if base == "" || s.feed.Push.Mode == "" {
		return nil
	}
	p, now := c.subscription(id, s), c.now()
	push := &status.Push{
		Hub: feedurl.Shown(p.Hub), State: status.PushAsked, Asked: p.At, LastPush: p.State.Pushed, Trusted: p.trusted(now), Misses: p.Misses,
	}
	if f, ok := c.table.ids.Load(id); ok {
		push.Ignored = f.(*Feed).ignored.Load()
	}
	if !p.State.Refused.Before(p.At) {
		push.Error, push.Wait = p.State.Why, p.State.Wait
	}
	switch {
	case p.Mode == modeUnsubscribe:
		push.State = status.PushEnded
	case p.live(now):
		push.State, push.Lease = status.PushActive, p.State.Lease
	case push.Error != "":
		push.State = status.PushRefused
	case now.Sub(p.At) >= confirmedWithin:
		push.State, push.Callback = status.PushUnreachable, p.Base+CallbackPath+"..."
	}
	return push
}

// updatePush takes over what a poll says of the feed's hub, before the next poll is decided.
func (f *Feed) updatePush(s, next *state, v classified) {
	if v.good() && v.answer.Status == http.StatusOK {
		next.feed.Linked = linkedBy(v.answer)
	}
	next.feed.History.Pushed = 0
	if f.cache.settings.Load().WebSub == "" || next.feed.Push.Mode == "" {
		return
	}
	p, now := f.cache.subscription(f.id, next), v.answer.At.Round(0).UTC()
	if v.pushed && !v.answer.Unsent() {
		p.Polled = now
	}
	if !p.Missed.IsZero() && now.Sub(p.Missed) >= missesFor {
		p.Misses, p.Missed = 0, time.Time{}
	}
	live := p.live(now)
	if live && v.result == status.ResultNew && s.version != 0 {
		newest := next.feed.History.Rhythm.Newest
		switch {
		case p.State.Pushed.After(s.last.At):
			p.Worked = true
		case newest.After(s.feed.History.Rhythm.Newest) && newest.After(p.State.Answered) && newest.After(p.State.Pushed) && now.Sub(newest) > announcedIn:
			if p.Misses++; p.Misses == maxMisses {
				p.Missed = now
			}
		}
	}
	if p.trusted(now) {
		next.feed.History.Pushed = p.State.Lease.Sub(now)
		if left := p.renewal().Sub(now); left > 0 {
			next.feed.History.Pushed = left // a poll renews the lease
		}
	}
	next.feed.Push = p
}

// requestOf decides whether a hub has to be asked for something after a poll, and records that in
// the state that the poll commits. The request is sent if that succeeds.
func (f *Feed) requestOf(next *state, v classified) *hubRequest {
	c := f.cache
	base, over := c.settings.Load().WebSub, next.ended || next.feed.Alias != ""
	if base == "" || f.key.shielded() || !v.good() && !over || c.asking.Load() >= maxAsking {
		return nil
	}
	var want hubTopic
	if !over && f.wanted() {
		want = f.hubOf(next, v.answer.Private)
	}
	p, now := c.subscription(f.id, next), c.now().Round(0).UTC()
	same := want == p.hubTopic
	r := hubRequest{want, modeSubscribe, base, now}
	switch {
	case !same && (p.live(now) || p.Mode == modeSubscribe && now.Sub(p.At) < confirmedWithin):
		r = hubRequest{p.hubTopic, modeUnsubscribe, p.Base, now}
	case want.Hub == "", same && !p.due(base, now):
		return nil
	case !same:
		p = subscription{Polled: p.Polled}
	}
	if p.Tries++; p.confirmed() || p.Mode != r.Mode {
		p.Tries = 1
	}
	p.hubRequest = r
	next.feed.Push = p
	return &r
}

// due reports whether the same subscription has to be asked for again.
func (p *subscription) due(base string, now time.Time) bool {
	switch {
	case p.State.Wait.After(now):
		return false
	case p.Mode == modeUnsubscribe:
		return true
	case p.confirmed() && p.Base == base:
		return !p.renewal().After(now)
	}
	return now.Sub(p.At) >= min(confirmedWithin<<min(max(p.Tries-1, 0), 10), maxHubRetry)
}

// wanted reports whether readers have asked for the feed in the last time. If none is known to, one
// has just asked at another node, or the operator wants it to be prefetched.
func (f *Feed) wanted() bool {
	return f.sinceAsked(f.cache.elapsed()) < f.cache.settings.Load().IdleAfter
}

// hubOf returns the hub that the origin names for the feed, and its topic. There is none if the hub
// must not learn of the feed, as its URL may have a secret.
func (f *Feed) hubOf(s *state, private bool) hubTopic {
	named, hints := s.feed.Linked, &s.feed.History.Hints
	if named.Hub == "" && len(hints.Hubs) > 0 { // W3C WebSub section 4: what fields and document say is not mixed
		named = hubTopic{hints.Hubs[0], hints.Self}
	}
	if topic := youtubeTopic(f.key.url); topic != "" {
		return hubTopic{youtubeHub, topic}
	}
	hub, err := feedurl.Parse(named.Hub)
	if err != nil || hub.User() != nil {
		return hubTopic{}
	}
	if _, err := feedurl.Parse(named.Topic); err != nil || !feedurl.Shown(named.Topic).Open() || !feedurl.Shown(f.key.text).Open() {
		return hubTopic{}
	}
	named.Hub = hub.String()
	if rest, plain := strings.CutPrefix(named.Hub, "http://"); plain && !private {
		named.Hub = "https://" + rest // W3C WebSub section 8.2; the hub is given a secret
	}
	return named
}

// linkedBy returns the hub and the topic that the Link fields of a response name.
func linkedBy(a policy.Answer) (named hubTopic) {
	base, err := url.Parse(a.URL)
	if err != nil {
		return hubTopic{}
	}
	base.User = nil
	resolve := func(relation string) string {
		target := httpfield.Link(a.Header.Values("Link"), relation)
		u, err := base.Parse(target)
		switch {
		case target == "" || err != nil || len(target) > maxHubURL:
			return ""
		case strings.HasPrefix(target, "http://"), strings.HasPrefix(target, "https://"):
			return target // as written
		}
		return u.String()
	}
	if named = (hubTopic{resolve("hub"), resolve("self")}); named.Hub == "" || named.Topic == "" {
		return hubTopic{}
	}
	return named
}

// youtubeHub announces the channels of YouTube, whose feeds do not say so.
const youtubeHub = "https://pubsubhubbub.appspot.com/subscribe"

// youtubeTopic returns the topic of a channel's feed; empty: the feed is another one.
func youtubeTopic(u feedurl.URL) string {
	id, ok := strings.CutPrefix(u.Query(), "?channel_id=")
	if !ok || id == "" || u.Name() != "www.youtube.com" || u.Path() != "/feeds/videos.xml" || strings.Contains(id, "&") {
		return ""
	}
	return "https://www.youtube.com/xml/feeds/videos.xml?channel_id=" + id
}
