// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package shield

import (
	"errors"
	"net/http"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/feedpollard/pollard/cache"
	"github.com/feedpollard/pollard/cache/version"
	"github.com/feedpollard/pollard/caddymodule/door"
)

// ServeHTTP answers a request from the cache, or lets the origin answer it.
func (s *Shield) ServeHTTP(w http.ResponseWriter, received *http.Request, next caddyhttp.Handler) error {
	in := door.Read(received)
	r := &in
	if s.cameBack(r.Header) {
		return s.refuseLoop(w, r)
	}
	if isPoll(received) { // of a shield around this one
		return s.origin.serve(w, received, next)
	}
	if s.serveStatus(w, r) || s.servePing(w, r) {
		return nil
	}
	key, ok := s.keyOf(r)
	if !ok {
		return s.pass(w, r, next)
	}
	text := key.String()
	if reason := notShared(received); reason != "" {
		if e := s.entries.get(text); e != nil && e.feed.Load() {
			e.pass(reason)
		}
		return s.pass(w, r, next)
	}
	return s.serveFeed(w, r, next, text)
}

// serveFeed answers with the feed of a key, or lets the origin answer.
func (s *Shield) serveFeed(w http.ResponseWriter, r *door.Request, next caddyhttp.Handler, key string) error {
	c, err := s.engine.Opened(r.Context())
	if err != nil {
		return s.pass(w, r, next) // a site without a shield is better than none
	}
	now := time.Now()
	e := s.entries.request(key, now)
	if !mayPoll(c, r.Request, key, e, now) {
		if e != nil && e.unshared.Load() != nil {
			e.pass(*e.unshared.Load())
		}
		return s.passAndDetect(w, r, next, key)
	}
	if e == nil {
		e = s.entries.add(key)
	}
	feed, err := s.engine.Feed(r.Context(), key)
	if err != nil {
		return s.passAndDetect(w, r, next, key)
	}
	if feed.New() && s.engine.NewFeeds.Take(s.owner, r.Client.Address, now) > 0 {
		return s.pass(w, r, next) // its network has requested too many new feeds
	}
	feed.Ask(s.owner, true)
	waited, served := feed.Await(r.Context()) // all readers of a slow origin wait for one poll
	if !served {
		if left := r.Context().Err(); left != nil {
			s.requests.Refused(r, key, &door.Refusal{Status: door.StatusClientClosed, Reason: "the client left before the answer"})
			return caddyhttp.Error(door.StatusClientClosed, left)
		}
		if e.loops.Load() {
			return s.refuseLoop(w, r)
		}
		return s.passAndDetect(w, r, next, key)
	}
	vary, stored := feed.Fields()
	if field := differs(r.Request, vary, stored); field != "" {
		e.pass(field)
		feed.PollIfDue() // the site may vary by other fields by now
		return s.pass(w, r, next)
	}
	return s.answer(w, r, next, feed, waited, key)
}

// mayPoll reports whether a request may cause a poll: it seems to be for a feed. For anything
// else a poll would be a second request to the origin. e is the entry of its key, or nil.
func mayPoll(c *cache.Cache, r *http.Request, key string, e *entry, now time.Time) bool {
	if e != nil {
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
	return c.Has(r.Context(), key) == nil // may read the store
}

// answer serves a feed, unless the rules of defend refuse the request.
func (s *Shield) answer(w http.ResponseWriter, r *door.Request, next caddyhttp.Handler, feed *cache.Feed, waited version.CacheStatus, key string) error {
	observed := s.engine.Observe(r, key, feed)
	if s.Defend != nil {
		if refusal := s.Defend.refuse(s.engine.Limiter, r, &observed); refusal != nil {
			s.engine.Answered(observed)
			return s.refuse(w, r, key, refusal)
		}
	}
	sent, err := feed.Serve(w, r.Request, cache.ServeOptions{Waited: waited})
	if u, ok := errors.AsType[*cache.Unavailable](err); ok && u.Busy { // the origin would not be less busy
		return s.refuse(w, r, key, door.RefusalOf(err))
	}
	if err != nil {
		return s.pass(w, r, next) // the version was withdrawn a moment ago
	}
	s.requests.Sent(r, key, sent)
	observed.Status, observed.Bytes = sent.Status, sent.Bytes
	if s.Defend != nil {
		s.engine.Limiter.Answered(s.Defend.limits, observed)
	}
	s.engine.Answered(observed)
	return nil
}

// refuse answers with an error, through handle_errors if the site has it. The key may be unknown.
func (s *Shield) refuse(w http.ResponseWriter, r *door.Request, key string, refusal *door.Refusal) error {
	s.requests.Refused(r, key, refusal)
	return refusal.Answer(w, r)
}
