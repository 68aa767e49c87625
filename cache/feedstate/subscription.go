// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package feedstate

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/feedpollard/pollard/internal/feedurl"
	"github.com/feedpollard/pollard/internal/httpfield"
	"github.com/feedpollard/pollard/policy"
)

// The modes of a request to a hub.
const (
	ModeSubscribe   = "subscribe"
	ModeUnsubscribe = "unsubscribe"
)

const (
	// ConfirmedWithin is how long a hub may take to confirm a request, and how long the first
	// request is not repeated. Each further one doubles that, up to maxHubRetry.
	ConfirmedWithin = time.Hour
	maxHubRetry     = 24 * time.Hour
	// maxHubURL is the longest URL of a hub or a topic, in bytes.
	maxHubURL = 2048
)

// Subscription is a feed's subscription at its hub. Polls write all of it but State.
type Subscription struct {
	HubRequest          // the last one
	Tries      int      `json:"tries,omitempty"` // requests in a row, this one included, of which none was confirmed before the next
	State      HubState `json:"state,omitzero"`

	// Ended is the request that ends the subscription before, at another hub or of another topic.
	Ended HubRequest `json:"ended,omitzero"`

	Polled time.Time `json:"polled,omitzero"` // the last poll that a push has caused
}

// HubRequest is a request to a hub.
type HubRequest struct {
	HubTopic
	Mode string    `json:"mode,omitempty"` // empty: there was none
	Base string    `json:"base,omitempty"` // of the callback
	At   time.Time `json:"at,omitzero"`
}

// HubTopic is a hub, and the topic by which it knows a feed.
type HubTopic struct {
	Hub   string `json:"hub,omitempty"`
	Topic string `json:"topic,omitempty"`
}

// HubState is what became of requests, and what the hub has sent. Any node may learn of it at any
// time, while another one polls the feed. Therefore two of them can be merged.
type HubState struct {
	For      string    `json:"for,omitempty"`     // the mark of the request; that of another one says nothing
	Answered time.Time `json:"answered,omitzero"` // the hub has confirmed or denied a request
	Lease    time.Time `json:"lease,omitzero"`    // until when it sends pushes, as of then
	Refused  time.Time `json:"refused,omitzero"`  // a request has failed
	Wait     time.Time `json:"wait,omitzero"`     // until when there is none, as of then
	Why      string    `json:"why,omitempty"`
	Pushed   time.Time `json:"pushed,omitzero"` // the last push
}

// AddHubState adds what a hub has said to what is stored of a feed. It
// returns nil if nothing is stored yet, or if that is damaged: the next poll replaces it.
func AddHubState(stored []byte, hub *HubState) []byte {
	m, err := decodeFeedState(stored)
	if err != nil {
		return nil
	}
	m.Push.State = m.Push.State.With(hub)
	stored, _ = m.encode()
	return stored
}

// With returns what two of them say. Of different requests, the later one counts.
func (h HubState) With(o *HubState) HubState {
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

func (h *HubState) latest() time.Time {
	return slices.MaxFunc([]time.Time{h.Answered, h.Refused, h.Pushed}, time.Time.Compare)
}

// confirmed reports whether the hub has answered the last request.
func (p *Subscription) confirmed() bool { return !p.State.Answered.Before(p.At) }

// Live reports whether the hub sends pushes.
func (p *Subscription) Live(now time.Time) bool {
	return p.Mode == ModeSubscribe && p.State.Lease.After(now)
}

// renewal is when the lease is renewed: at half of it.
func (p *Subscription) renewal() time.Time {
	return p.State.Answered.Add(p.State.Lease.Sub(p.State.Answered) / 2)
}

// UpdatePush takes over what a poll says of the feed's hub. p is the subscription; zero: there is none.
func (s *State) UpdatePush(p Subscription, v Classified) {
	if v.Good() && v.Answer.Status == http.StatusOK {
		s.Feed.Linked = linkedBy(v.Answer)
	}
	if p.Mode == "" {
		return
	}
	if v.Pushed && !v.Answer.Unsent() {
		p.Polled = v.Answer.At.Round(0).UTC()
	}
	s.Feed.Push = p
}

// Ask decides whether a hub has to be asked for something, to get the subscription that is wanted;
// zero: none. It returns the subscription with that request.
func (p Subscription) Ask(want HubTopic, base string, now time.Time) (_ Subscription, ask bool) {
	same := want == p.HubTopic
	r, end := HubRequest{want, ModeSubscribe, base, now}, HubRequest{p.HubTopic, ModeUnsubscribe, p.Base, now}
	subscribed := p.Live(now) || p.Mode == ModeSubscribe && now.Sub(p.At) < ConfirmedWithin
	switch {
	case want.Hub == "" && subscribed:
		r = end
	case want.Hub == "", same && !p.due(base, now):
		return p, false
	case !same:
		p = Subscription{Polled: p.Polled}
		if subscribed {
			p.Ended = end
		}
	}
	if p.Tries++; p.confirmed() || p.Mode != r.Mode {
		p.Tries = 1
	}
	p.HubRequest = r
	return p, true
}

// due reports whether the same subscription has to be asked for again.
func (p *Subscription) due(base string, now time.Time) bool {
	switch {
	case p.State.Wait.After(now):
		return false
	case p.Mode == ModeUnsubscribe:
		return true
	case p.confirmed() && p.Base == base:
		return !p.renewal().After(now)
	}
	return now.Sub(p.At) >= min(ConfirmedWithin<<min(max(p.Tries-1, 0), 10), maxHubRetry)
}

// HubOf returns the hub that the origin names for the feed, and its topic. There is none if the hub
// must not learn of the feed, as its URL may have a secret.
func (s *State) HubOf(own Key, private bool) HubTopic {
	named, hints := s.Feed.Linked, &s.Feed.History.Hints
	if named.Hub == "" && len(hints.Hubs) > 0 { // W3C WebSub section 4: what fields and document say is not mixed
		named = HubTopic{hints.Hubs[0], hints.Self}
	}
	if topic := youtubeTopic(own.url); topic != "" {
		return HubTopic{youtubeHub, topic}
	}
	hub, err := feedurl.Parse(named.Hub)
	if err != nil || hub.User() != nil {
		return HubTopic{}
	}
	if _, err := feedurl.Parse(named.Topic); err != nil || !feedurl.Redacted(named.Topic).Open() || !feedurl.Redacted(own.text).Open() {
		return HubTopic{}
	}
	named.Hub = hub.String()
	if rest, plain := strings.CutPrefix(named.Hub, "http://"); plain && !private {
		named.Hub = "https://" + rest // W3C WebSub section 8.2; the hub is given a secret
	}
	return named
}

// linkedBy returns the hub and the topic that the Link fields of a response name.
func linkedBy(a policy.Answer) (named HubTopic) {
	base, err := url.Parse(a.URL)
	if err != nil {
		return HubTopic{}
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
	if named = (HubTopic{resolve("hub"), resolve("self")}); named.Hub == "" || named.Topic == "" {
		return HubTopic{}
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
