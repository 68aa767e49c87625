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
	"github.com/feedpollard/pollard/caddymodule/poller"
)

// statusClientClosed is what Caddy's own handlers log where a client has left.
const statusClientClosed = 499

// firstBytes is how long one reader waits for the beginning of what may be no feed.
const firstBytes = time.Second

// serveFeed answers with the feed of a key, or lets the origin answer.
func (s *Shield) serveFeed(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler, key poller.ShieldKey) error {
	c, err := s.engine.Opened(r.Context())
	if err != nil {
		return s.pass(w, r, next) // better a site without a shield than none
	}
	text := key.String()
	if !s.polls(c, r, text) {
		return s.passObserved(w, r, next, text)
	}
	feed, waited, err := s.feed(c, key, text, r)
	if left := r.Context().Err(); err != nil && left != nil {
		s.engine.ShieldRequests().Count(poller.ResultUnavailable, 0)
		return caddyhttp.Error(statusClientClosed, left) // the site need not be asked for whoever has gone
	}
	if err != nil {
		return s.passObserved(w, r, next, text)
	}
	return s.answer(w, r, next, feed, waited, text)
}

// polls reports whether a request may cause a poll: it is for a feed, as far as that
// can be told. Otherwise the site would be asked twice for what is no feed.
func (s *Shield) polls(c *cache.Cache, r *http.Request, key string) bool {
	now := time.Now()
	if e := s.known.get(key); e != nil {
		e.touch(now)
		if e.feed.Load() {
			return true
		}
		if e.notFeed(now) {
			return false
		}
	}
	if likely(r) && r.Header["Range"] == nil {
		return true
	}
	return c.Knows(r.Context(), key) // of an earlier life of the process; it may read the store
}

// passObserved lets the origin answer a reader's own request, and notes if that turns
// out to be a feed.
func (s *Shield) passObserved(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler, key string) error {
	return s.pass(observe(w, func() {
		if e := s.enter(key, "", nil); !e.notFeed(time.Now()) {
			e.feed.Store(true)
		}
	}), r, next)
}

// enter returns what is known of a key, which is known from now on.
func (s *Shield) enter(key, plain string, fields http.Header) *entry {
	if e := s.known.get(key); e != nil {
		return e
	}
	e, evicted := s.known.add(key, plain, fields, time.Now())
	for _, key := range evicted {
		s.engine.Evict(key)
	}
	return e
}

// feed is the feed that a request asks for: the plain one, or a variant where the
// site tells its readers apart.
func (s *Shield) feed(c *cache.Cache, key poller.ShieldKey, text string, r *http.Request) (*cache.Feed, cache.Waited, error) {
	feed, waited, err := s.await(text, s.enter(text, "", nil), r)
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
	now := time.Now()
	e := s.known.get(of)
	if e != nil {
		e.touch(now)
	} else {
		e = s.enter(of, text, sent)
	}
	if e.notFeed(now) {
		return nil, waited, errNoVersion
	}
	return s.await(of, e, r)
}

// await is the feed of a key. Readers wait for its first poll for as long as that runs:
// a site that is slow cannot answer all of them at once. Where it may well be no feed that
// is slow to begin, one of them goes ahead and asks by itself.
func (s *Shield) await(key string, e *entry, r *http.Request) (*cache.Feed, cache.Waited, error) {
	feed, err := s.engine.Feed(r.Context(), key)
	if err != nil {
		return nil, cache.Waited{}, err
	}
	ctx := r.Context()
	if !e.feed.Load() && !named(r) {
		waiting, leave := context.WithCancel(ctx)
		defer leave()
		defer time.AfterFunc(firstBytes, func() {
			if !e.promising.Load() && e.ahead.CompareAndSwap(false, true) {
				leave()
			}
		}).Stop()
		ctx = waiting
	}
	waited, some := feed.Await(ctx)
	if !some {
		return nil, waited, errNoVersion
	}
	return feed, waited, nil
}

var errNoVersion = errors.New("nothing to serve")

// answer serves the feed, if the defences let its reader have it.
func (s *Shield) answer(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler, feed *cache.Feed, waited cache.Waited, key string) error {
	unobserved := s.engine.Unobserved()
	if unobserved && s.Defend == nil {
		sent, err := feed.ServeAfter(waited, w, r)
		if err != nil {
			return s.pass(w, r, next) // it has been withdrawn in this moment
		}
		s.engine.ShieldRequests().Served(sent)
		poller.Report(r, poller.ResultOf(sent), key, "")
		return nil
	}
	note := s.engine.Observe(r, poller.Client(r), key, feed)
	if s.Defend != nil {
		if no := s.Defend.judge(s.engine.Gate, r, &note); no != nil {
			poller.Report(r, s.engine.ShieldRequests().Refused(no.Status), key, no.Reason)
			if !unobserved {
				s.engine.Ledger.Note(note)
			}
			return no.Answer(w, r, s.origin.server)
		}
	}
	sent, err := feed.ServeAfter(waited, w, r)
	if err != nil {
		return s.pass(w, r, next)
	}
	s.engine.ShieldRequests().Served(sent)
	poller.Report(r, poller.ResultOf(sent), key, "")
	note.Status, note.Bytes = sent.Status, sent.Bytes
	if s.Defend != nil {
		s.engine.Gate.Answered(s.Defend.defence, note)
	}
	if !unobserved {
		s.engine.Ledger.Note(note)
	}
	return nil
}
