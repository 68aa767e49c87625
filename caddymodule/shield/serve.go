// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package shield

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/feedpollard/pollard/cache"
	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/caddymodule/poller"
)

// statusClientClosed is what Caddy's own handlers log if the client has left.
const statusClientClosed = 499

// patience is how long readers wait for the first bytes of a response that may not be a feed.
const patience = time.Second

// ServeHTTP answers a request from the cache, or lets the origin answer it.
func (s *Shield) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	if isPoll(r) { // of a shield around this one
		return s.origin.serve(w, r, next)
	}
	if s.serveStatus(w, r) {
		return nil
	}
	if cannotShare(r) {
		return s.pass(w, r, next)
	}
	key, ok := s.keyOf(r)
	if !ok {
		return s.pass(w, r, next)
	}
	return s.serveFeed(w, r, next, key)
}

// serveFeed answers with the feed of a key, or lets the origin answer.
func (s *Shield) serveFeed(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler, key poller.ShieldKey) error {
	c, err := s.engine.Opened(r.Context())
	if err != nil {
		return s.pass(w, r, next) // a site without a shield is better than none
	}
	text := key.String()
	if !s.mayPoll(c, r, text) {
		return s.passAndDetect(w, r, next, text)
	}
	feed, waited, err := s.feed(c, key, text, r)
	if left := r.Context().Err(); err != nil && left != nil {
		s.engine.ShieldRequests().Count(poller.ResultUnavailable, 0)
		return caddyhttp.Error(statusClientClosed, left)
	}
	if err != nil {
		return s.passAndDetect(w, r, next, text)
	}
	feed.Ask(store.OwnerOf(store.KindShield, key.Shield))
	return s.answer(w, r, next, feed, waited, text)
}

// mayPoll reports whether a request may cause a poll: it seems to be for a feed. For anything
// else a poll would be a second request to the origin.
func (s *Shield) mayPoll(c *cache.Cache, r *http.Request, key string) bool {
	now := time.Now()
	if e := s.entries.request(key, now); e != nil {
		if e.feed.Load() {
			return true
		}
		if e.bypasses(now) {
			return false
		}
	}
	if likely(r) && r.Header["Range"] == nil {
		return true
	}
	return c.Knows(r.Context(), key) // may read the store
}

// feed returns the feed that a request is for: a variant of it if the origin's responses vary.
func (s *Shield) feed(c *cache.Cache, key poller.ShieldKey, text string, r *http.Request) (*cache.Feed, cache.Waited, error) {
	now := time.Now()
	plain := s.entries.add(text, now)
	feed, waited, err := s.await(text, plain, r)
	if err != nil {
		return nil, waited, err
	}
	fields, secret := feed.Vary()
	if len(fields) == 0 {
		return feed, waited, nil
	}
	variant, sent, err := variantOf(fields, secret, r.Header)
	if err != nil || variant == "" {
		return feed, waited, err
	}
	key.Variant = variant
	of := key.String()
	now = time.Now()
	e := s.entries.request(of, now)
	if e == nil {
		var evicted string
		if e, evicted = s.entries.addVariant(plain, of, sent, now); evicted != "" {
			s.engine.Evict(evicted)
		}
	}
	if e.bypasses(now) {
		return nil, waited, errNoVersion
	}
	return s.await(of, e, r)
}

// await returns the feed of a key when it has a version. All readers of a slow origin wait for
// one poll. If the response may not be a feed and does not begin soon, one of them goes to the
// origin instead.
func (s *Shield) await(key string, e *entry, r *http.Request) (*cache.Feed, cache.Waited, error) {
	feed, err := s.engine.Feed(r.Context(), key)
	if err != nil {
		return nil, cache.Waited{}, err
	}
	ctx := r.Context()
	if !e.feed.Load() && !named(r) {
		waiting, leave := context.WithCancel(ctx)
		defer leave()
		defer time.AfterFunc(patience, func() {
			if !e.looksLikeFeed.Load() && e.bypassed.CompareAndSwap(false, true) {
				leave()
			}
		}).Stop()
		ctx = waiting
	}
	waited, ok := feed.Await(ctx)
	if !ok {
		return nil, waited, errNoVersion
	}
	return feed, waited, nil
}

var errNoVersion = errors.New("the feed has no version")

// answer serves a feed, unless the rules of defend refuse the request.
func (s *Shield) answer(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler, feed *cache.Feed, waited cache.Waited, key string) error {
	observed := s.engine.Observe(r, poller.Client(r), key, feed)
	if s.Defend != nil {
		if refusal := s.Defend.refuse(s.engine.Limiter, r, &observed); refusal != nil {
			poller.Report(r, s.engine.ShieldRequests().Refused(refusal.Status), key, refusal.Reason)
			s.engine.RecordReader(observed)
			return refusal.Answer(w, r, s.origin.server)
		}
	}
	sent, err := feed.ServeAfter(waited, w, r)
	if err != nil {
		return s.pass(w, r, next) // the version was withdrawn a moment ago
	}
	s.engine.ShieldRequests().Served(sent)
	s.engine.FeedCounter(key).CountAnswer(sent.Bytes)
	poller.Report(r, poller.ResultOf(sent), key, "")
	observed.Status, observed.Bytes = sent.Status, sent.Bytes
	if s.Defend != nil {
		s.engine.Limiter.Answered(s.Defend.defence, observed)
	}
	s.engine.RecordReader(observed)
	return nil
}
