// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/feedpollard/pollard/cache"
	"github.com/feedpollard/pollard/cache/store/sqlite"
	"github.com/feedpollard/pollard/internal/feedurl"
	"github.com/feedpollard/pollard/internal/readers"
	"github.com/feedpollard/pollard/policy"
	"github.com/feedpollard/pollard/policy/document"
)

// stage is a gateway and the model of its origin, to which a log is replayed.
type stage struct {
	options    Options
	found      prospect
	clock      atomic.Int64 // the virtual time, in Unix nanoseconds; it never goes back
	origin     *origin      // nil before the first request
	sizes      sizes
	engine     *cache.Cache
	feed       *cache.Feed
	ended      chan struct{}    // receives a value for each poll that has ended
	limiter    *readers.Limiter // nil: no request is refused
	statistics *readers.Statistics

	newest   visitor // has the validators of the version that was served last
	visitors visitors
	request  *http.Request
	sink     sink
	tally    tally
}

// feedName is the name of the feed in the statistics.
const feedName = "replay"

// newStage returns a stage whose engine is not open yet: open needs the time of the first
// request.
func newStage(o Options, found prospect) (*stage, error) {
	if err := o.Rules.Validate(); err != nil {
		return nil, err
	}
	if _, err := document.Read(o.Feed, o.Header.Get("Content-Type"), time.Now()); err != nil {
		return nil, fmt.Errorf("reading the feed: %w", err)
	}
	s := &stage{options: o, found: found, ended: make(chan struct{}, 64)}
	if o.Defence != nil {
		s.limiter = readers.NewLimiter(0)
	}
	// The seed is fixed, so that two replays of a log have the same result.
	s.statistics = readers.NewStatistics(readers.Options{Seed: 1})
	s.request = &http.Request{
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Host: "replay.invalid",
		URL: &url.URL{Path: found.path}, RequestURI: found.path, Header: make(http.Header),
	}
	s.sink.header = make(http.Header)
	return s, nil
}

func (s *stage) now() time.Time { return time.Unix(0, s.clock.Load()).UTC() }

// open starts the engine at the time of the first request and polls the feed. If that is
// in the feed's skip hours, the first poll is made in the last second before them.
func (s *stage) open(ctx context.Context, begin time.Time) error {
	f, err := newFeed(s.options, begin)
	if err != nil {
		return err
	}
	if f.every > 0 && !f.changes() {
		f.every, s.tally.unchanging = 0, true
	}
	s.origin = &origin{now: s.now, feed: f, skipHours: readers.HoursOf(f.document.Hints.SkipHours)}
	s.sizes = sizesOf(f.current)
	start := awake(f.document.Hints, begin)
	s.clock.Store(start.UnixNano())
	s.engine, err = cache.New(cache.Options{Store: sqlite.NewMemory(s.now), Origin: s.origin, Now: s.now})
	if err != nil {
		return err
	}
	s.engine.Apply(cache.Settings{
		Rules:   func(cache.Key) policy.Rules { return s.options.Rules },
		Observe: func(cache.Poll) { s.ended <- struct{}{} },
	})
	feedURL, err := feedurl.Canonical("https://replay.invalid" + s.found.path)
	if err != nil {
		return fmt.Errorf("path %s: %w", s.found.path, err)
	}
	if s.feed, err = s.engine.Feed(ctx, feedURL); err != nil {
		return err
	}
	s.request.Method = http.MethodGet
	if err := s.serve(ctx); err != nil {
		return fmt.Errorf("filling the cache: %w", err)
	}
	s.newest.etag, s.newest.modified = s.sink.header["Etag"], s.sink.header["Last-Modified"]
	return nil
}

// awake returns the last time up to t outside of the feed's skip hours and skip days.
func awake(h policy.Hints, t time.Time) time.Time {
	for range 8 * 24 { // more hours than a week has; hints never skip all of them
		if h.OutOfSkip(t, t, 0).Equal(t) {
			return t
		}
		t = t.UTC().Truncate(time.Hour).Add(-time.Second)
	}
	return t
}

func (s *stage) close() {
	if s.engine != nil {
		_ = s.engine.Close() // the store in memory does not fail
	}
}

// serve answers the request into the sink. If that has started a poll, serve waits for
// its end, so that the clock does not advance during the poll.
func (s *stage) serve(ctx context.Context) error {
	s.sink.reset()
	s.feed.Ask(0)
	_, err := s.feed.Serve(&s.sink, s.request)
	for s.origin.begun() > s.tally.polls {
		select {
		case <-s.ended:
			s.tally.polls++
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if u, ok := errors.AsType[*cache.Unavailable](err); ok {
		s.sink.refuse(s.request.Method, u.Status, u.Reason, int64((u.RetryAfter+time.Second-1)/time.Second))
		return nil
	}
	return err
}

// replay replays one line.
func (s *stage) replay(ctx context.Context, l *Line) error {
	if string(l.path()) != s.found.path {
		s.tally.elsewhere++
		return nil
	}
	if s.origin == nil {
		if err := s.open(ctx, l.Time); err != nil {
			return err
		}
	}
	if at := l.Time.UnixNano(); at >= s.clock.Load() {
		s.clock.Store(at)
	} else {
		// Servers write a line when the answer ends, with the time when it began. Joined
		// logs may also overlap.
		s.tally.disorder++
	}
	now := s.now()
	skipped := s.origin.skipHours.Contains(now)
	s.tally.logged(l, now, skipped)
	if !l.asks() || redirected(l.Status) {
		s.tally.pass(l)
		return nil
	}
	v := s.visitors.of(l)
	if v.etag == nil {
		// A new reader whose request is conditional already has the feed.
		v.etag, v.modified = s.newest.etag, s.newest.modified
	}
	s.request.Header = v.dress(l, s.sizes)
	if len(l.Referer) > 0 {
		s.request.Header["Referer"] = []string{s.refererOf(l)}
	}
	s.request.Method = method(l.Method)
	s.request.RemoteAddr = v.address
	r := readers.FromHTTP(s.request, feedName, v.client, now)
	r.SkipHours = s.origin.skipHours
	r.Validators = s.validators(l)
	if !l.Known {
		r.Person = r.Person || v.browser // the log does not have the fields that tell
	}
	var defence readers.Defence
	if s.limiter != nil {
		defence = s.options.Defence(s.request)
	}
	if !s.refused(defence, &r) {
		if err := s.serve(ctx); err != nil {
			return err
		}
		if s.limiter != nil {
			r.Status = s.sink.status
			s.limiter.Answered(defence, r)
		}
	}
	if s.sink.status == http.StatusOK {
		v.etag, v.modified = s.sink.header["Etag"], s.sink.header["Last-Modified"]
		s.newest.etag, s.newest.modified = v.etag, v.modified
	}
	s.note(l, v, &r)
	return nil
}

// refererOf returns the Referer of a request, at the host of the replay if it is the feed
// itself: a log does not have the host of its server.
func (s *stage) refererOf(l *Line) string {
	referer := string(l.Referer)
	if u, err := url.Parse(referer); err == nil && strings.TrimRight(u.Path, "/") == strings.TrimRight(s.found.path, "/") {
		return "https://" + s.request.Host + s.found.path
	}
	return referer
}

// validators compares the request's validators with those that the replay has served.
// Validators taken from the log are not compared, because the log's origin made them.
func (s *stage) validators(l *Line) readers.Validators {
	if l.Known && l.Status != http.StatusNotModified {
		return readers.ValidatorsNone
	}
	switch s.feed.Standing(s.request.Header) {
	case cache.Current:
		return readers.ValidatorsCurrent
	case cache.Earlier:
		return readers.ValidatorsEarlier
	case cache.Unknown:
		return readers.ValidatorsUnknown
	}
	return readers.ValidatorsNone
}

// refused applies the defence, as a shield does before it serves.
func (s *stage) refused(d readers.Defence, r *readers.Request) bool {
	if s.limiter == nil {
		return false
	}
	verdict := s.limiter.Judge(d, *r)
	if verdict.Status == 0 {
		return false
	}
	var wait int64
	if verdict.Status == http.StatusTooManyRequests {
		wait = verdict.RetryAfter(r.Time)
	}
	s.sink.refuse(r.Method, verdict.Status, verdict.Reason, wait)
	return true
}

// note counts the result of a line. The statistics record the answer of the log, because
// scores describe the log.
func (s *stage) note(l *Line, v *visitor, r *readers.Request) {
	sent := s.sink.body
	if s.found.headers {
		sent += s.sink.head()
	}
	s.tally.answered(s.sink.status, sent)
	s.tally.handshake(l, s)
	if v.given != nil {
		v.given.bytes += sent
		if s.sink.status/100 == 4 {
			v.given.refused++
		}
	}
	r.Status, r.Bytes = l.Status, l.Bytes
	s.statistics.Record(*r)
}

// redirected reports whether the line was answered by a redirect, which a gateway would
// not change.
func redirected(status int) bool { return status/100 == 3 && status != http.StatusNotModified }

func method(logged []byte) string {
	if string(logged) == http.MethodHead {
		return http.MethodHead
	}
	return http.MethodGet
}
