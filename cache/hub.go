// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"go.uber.org/zap"

	"github.com/feedpollard/pollard/cache/feedstate"
	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/internal/feedurl"
)

const (
	// CallbackPath is the path of callbacks below Settings.WebSub, without the token that follows.
	CallbackPath = "/-/websub/"
	// askedLease is the lease that hubs are asked for.
	askedLease = 10 * 24 * time.Hour
	// maxAsking is how many requests to hubs may wait. Others are sent after a later poll.
	maxAsking = 1024
	// hubTimeout is how long the store may take to record what a hub has said.
	hubTimeout = 5 * time.Second
)

// hubKey makes what names and protects subscriptions. It is the store's, so all nodes have the same
// one, and nothing of a subscription need be recorded.
type hubKey []byte

func (c *Cache) secret(ctx context.Context) (hubKey, error) {
	if key := c.key.Load(); key != nil {
		return *key, nil
	}
	b, err := c.store.Secret(ctx)
	if err != nil {
		return nil, err
	}
	key := hubKey(b)
	c.key.Store(&key)
	return key, nil
}

func (k hubKey) sum(use string, id store.ID, r feedstate.HubRequest) []byte {
	mac := hmac.New(sha256.New, k)
	for _, part := range []string{use, string(id[:]), r.Base, r.Hub, r.Topic} {
		fmt.Fprintf(mac, "%d %s", len(part), part)
	}
	return mac.Sum(nil)
}

// secret is what the hub signs its pushes with.
func (k hubKey) secret(id store.ID, r feedstate.HubRequest) string {
	return hex.EncodeToString(k.sum("secret", id, r))
}

// mark names the subscription in the record of the feed. Its callback cannot be found with it.
func (k hubKey) mark(id store.ID, r feedstate.HubRequest) string {
	return base64.RawURLEncoding.EncodeToString(k.sum("mark", id, r)[:9])
}

// token is the last part of the callback: the feed's ID, and what only the store's nodes can make.
func (k hubKey) token(id store.ID, r feedstate.HubRequest) string {
	return base64.RawURLEncoding.EncodeToString(append(id[:], k.sum("token", id, r)[:16]...))
}

// idOfToken returns the ID of a feed in what may be a token.
func idOfToken(token string) (id store.ID, ok bool) {
	b, err := base64.RawURLEncoding.Strict().DecodeString(token)
	return store.ID(append(b, id[:]...)[:len(id)]), err == nil && len(b) == len(id)+16
}

// askHubs sends requests that a commit has recorded, one after the other.
func (c *Cache) askHubs(f *Feed, requests []feedstate.HubRequest, private bool) {
	if len(requests) == 0 {
		return
	}
	c.background(func() {
		c.asking.Add(1)
		defer c.asking.Add(-1)
		key, err := c.secret(c.open)
		if err != nil {
			return // they are repeated, as no hub confirms them
		}
		for _, r := range requests {
			c.askHub(key, f, r, private)
		}
	})
}

func (c *Cache) askHub(key hubKey, f *Feed, r feedstate.HubRequest, private bool) {
	status, until, err := c.postToHub(key, f, r, private)
	if err == nil && status/100 == 2 || c.open.Err() != nil {
		return
	}
	if err == nil {
		err = fmt.Errorf("the hub answered %d %s", status, http.StatusText(status))
	}
	c.log().Warn("hub was asked in vain", c.urlField(f.key.String()), zap.String("hub", feedurl.Redact(r.Hub)), zap.String("mode", r.Mode), errField(err))
	if r != f.state.Load().Feed.Push.Ended { // the lease of that one ends by itself
		f.setHub(feedstate.HubState{For: key.mark(f.id, r), Refused: c.now().Round(0).UTC(), Wait: until.Round(0).UTC(), Why: feedurl.RedactText(feedurl.Message(err.Error()))})
	}
}

// postToHub is W3C WebSub section 5.1.
func (c *Cache) postToHub(key hubKey, f *Feed, r feedstate.HubRequest, private bool) (status int, until time.Time, err error) {
	hub, err := feedurl.Parse(r.Hub)
	if err != nil {
		return 0, until, err
	}
	form := url.Values{
		"hub.callback": {r.Base + CallbackPath + key.token(f.id, r)},
		"hub.mode":     {r.Mode},
		"hub.topic":    {r.Topic},
	}
	if r.Mode == feedstate.ModeSubscribe {
		form.Set("hub.lease_seconds", strconv.Itoa(int(askedLease/time.Second)))
		form.Set("hub.secret", key.secret(f.id, r))
	}
	ctx, cancel := context.WithTimeout(c.open, feedstate.ConfirmedWithin-time.Minute) // later ones could not be confirmed
	defer cancel()
	return c.settings.Load().Post(ctx, hub, form, private)
}

// note merges what a hub has said into what this node knows.
func (f *Feed) note(h feedstate.HubState) {
	for {
		old := f.hub.Load()
		next := h.With(old)
		if f.hub.CompareAndSwap(old, &next) {
			return
		}
	}
}

// setHub records what a hub has said, here and in the store. If the store cannot be written, or a
// poll under way on another node does not know of it yet, it learns with [Cache.storeReaders].
func (f *Feed) setHub(h feedstate.HubState) {
	f.note(h)
	add := f.addHubNews()
	if add == nil {
		return
	}
	ctx, cancel := context.WithTimeout(f.cache.open, hubTimeout)
	defer cancel()
	if f.cache.store.Touch(ctx, map[store.ID]store.Asked{f.id: {Ago: -1, FeedState: add}}) == nil {
		f.hubStored()
	}
}

// addHubNews returns what adds to the state of the feed what its hub has said, if the store does not know. Nil: it does.
func (f *Feed) addHubNews() (add func(state []byte) []byte) {
	s, hub := f.state.Load(), f.hub.Load()
	if s.Feed.Push.State.With(hub) == s.Feed.Push.State {
		return nil
	}
	return func(state []byte) []byte { return feedstate.AddHubState(state, hub) }
}

// hubStored records that the store has it.
func (f *Feed) hubStored() {
	f.mu.Lock()
	defer f.mu.Unlock()
	old := f.state.Load()
	next := *old
	next.Feed.Push.State = old.Feed.Push.State.With(f.hub.Load())
	f.setState(old, &next)
}
