// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/feedpollard/pollard/cache"
	"github.com/feedpollard/pollard/cache/feedstate"
	"github.com/feedpollard/pollard/cache/store/sqlite"
	"github.com/feedpollard/pollard/cache/version"
	"github.com/feedpollard/pollard/internal/feedurl"
	"github.com/feedpollard/pollard/internal/readers"
	"github.com/feedpollard/pollard/policy"
	"github.com/feedpollard/pollard/policy/document"
	"github.com/feedpollard/pollard/upstream"
)

// gateway is a gateway and the model of its origin, to which a log is replayed.
type gateway struct {
	options    Options
	found      opening
	clock      atomic.Int64 // the virtual time, in Unix nanoseconds; it never goes back
	last       time.Time    // of the last line that was replayed
	origin     *origin      // nil before the first request
	sizes      sizes
	engine     *cache.Cache
	feed       *cache.Feed
	ended      chan struct{} // receives a value for each poll that has ended
	polls      int64         // that have ended
	limiter    *readers.Limiter
	fleets     *readers.Limiter // takes every program for a fleet
	statistics *readers.Statistics

	newest  reader // has the validators of the version that was served last
	readers memory
	request *http.Request
	answer  recorder
	report  Report
}

// feedName is the name of the feed in the statistics.
const feedName = "replay"

// newGateway returns a gateway whose engine is not open yet: open needs the time of the first
// request.
func newGateway(o Options, found opening) (*gateway, error) {
	if err := o.Rules.Validate(); err != nil {
		return nil, err
	}
	if _, err := document.Read(o.Feed, o.Header.Get("Content-Type"), time.Now()); err != nil {
		return nil, fmt.Errorf("reading the feed: %w", err)
	}
	s := &gateway{options: o, found: found, ended: make(chan struct{}, 64), readers: newMemory(), answer: recorder{header: make(http.Header)}}
	s.report = Report{Path: found.path, BytesOfHeaders: found.headers, Logged: map[string]int64{}, Served: map[string]int64{}}
	if o.Limits == nil {
		s.options.Limits = func(*http.Request) readers.Limits { return readers.Limits{} }
	}
	s.limiter, s.fleets, s.statistics = readers.NewLimiter(), readers.NewLimiter(), readers.NewStatistics(0)
	s.request = &http.Request{
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Host: "replay.invalid",
		URL: &url.URL{Path: found.path}, RequestURI: found.path, Header: make(http.Header),
	}
	return s, nil
}

func (s *gateway) now() time.Time { return time.Unix(0, s.clock.Load()).UTC() }

// open starts the engine at the time of the first request and polls the feed. If that is
// in the feed's skip hours, the first poll is made in the last second before them.
func (s *gateway) open(ctx context.Context, begin time.Time) error {
	f, err := newFeed(s.options, begin)
	if err != nil {
		return err
	}
	if f.every > 0 && !f.changes() {
		f.every, s.report.Feed.Unchanging = 0, true
	}
	s.origin = &origin{now: s.now, feed: f, skipHours: f.document.Hints.SkipHours}
	s.sizes = sizesOf(f.current)
	start := awake(f.document.Hints, begin)
	s.clock.Store(start.UnixNano())
	client := upstream.New(upstream.WithTransport(s.origin), upstream.WithoutPacing(), upstream.WithClock(s.now))
	s.engine, err = cache.New(cache.Options{Store: sqlite.NewMemory(s.now), Origin: client, Now: s.now})
	if err != nil {
		return err
	}
	s.engine.Apply(cache.Settings{
		Rules:   func(feedstate.Key) policy.Rules { return s.options.Rules },
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
	s.newest.etag, s.newest.modified = s.answer.header["Etag"], s.answer.header["Last-Modified"]
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

func (s *gateway) close() {
	if s.engine != nil {
		_ = s.engine.Close() // the store in memory does not fail
	}
}

// serve answers the request into the recorder. If that has started a poll, serve waits for
// its end, so that the clock does not advance during the poll.
func (s *gateway) serve(ctx context.Context) error {
	s.answer.reset()
	s.feed.Ask(0, false)
	_, err := s.feed.Serve(&s.answer, s.request, cache.ServeOptions{})
	for s.origin.started() > s.polls {
		select {
		case <-s.ended:
			s.polls++
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if u, ok := errors.AsType[*cache.Unavailable](err); ok {
		s.answer.refuse(s.request.Method, u.Status, u.Reason, int64((u.RetryAfter+time.Second-1)/time.Second))
		return nil
	}
	return err
}

func (s *gateway) replay(ctx context.Context, l *Line) error {
	if l.path() != s.found.path {
		s.report.OtherPaths++
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
		s.report.OutOfOrder++
	}
	now := s.now()
	s.countLogged(l, now)
	if !l.asks() || redirected(l.Status) {
		s.report.PassedThrough++
		s.countServed(l.Status, l.Bytes)
		return nil
	}
	v := s.readers.reader(l)
	if v.etag == nil {
		// A new reader whose request is conditional already has the feed.
		v.etag, v.modified = s.newest.etag, s.newest.modified
	}
	s.request.Header = v.header(l, s.sizes)
	if s.namesFeed(l.Header.Get("Referer")) {
		s.request.Header["Referer"] = []string{"https://" + s.request.Host + s.found.path} // a log does not have the host of its server
	}
	s.request.Method = l.Method
	s.request.RemoteAddr = v.address
	r := readers.FromHTTP(s.request, feedName, v.client, now)
	r.SkipHours = s.origin.skipHours
	r.Validators = s.validators(l)
	if !l.HasHeader {
		r.Person = r.Person || v.browser // the log does not have the fields that persons are recognized by
	}
	limits := s.options.Limits(s.request)
	if verdict := s.limiter.Check(limits, r); verdict.Status != 0 {
		var wait int64
		if verdict.Status == http.StatusTooManyRequests {
			wait = verdict.RetryAfter(now)
		}
		s.answer.refuse(r.Method, verdict.Status, verdict.Reason, wait)
	} else {
		if err := s.serve(ctx); err != nil {
			return err
		}
		r.Status = s.answer.status
		s.limiter.Answered(limits, r)
	}
	s.checkFleet(limits, v, r)
	if s.answer.status == http.StatusOK {
		v.etag, v.modified = s.answer.header["Etag"], s.answer.header["Last-Modified"]
		s.newest.etag, s.newest.modified = v.etag, v.modified
	}
	s.record(l, v, &r)
	return nil
}

// checkFleet counts what would be refused if the reader's program were a fleet.
func (s *gateway) checkFleet(limits readers.Limits, v *reader, r readers.Request) {
	if v.got == nil {
		return
	}
	verdict := s.fleets.Check(readers.Limits{Fleet: v.got.family, Unconditional: limits.Unconditional}, r)
	if verdict.Status == http.StatusTooManyRequests && s.answer.status == http.StatusOK {
		v.got.asFleet.Refused++
		v.got.asFleet.Bytes += s.sent()
	}
}

// sent returns the bytes of the answer that count as in the log.
func (s *gateway) sent() int64 {
	if s.found.headers {
		return s.answer.body + s.answer.size()
	}
	return s.answer.body
}

// namesFeed reports whether a Referer is that of the feed itself.
func (s *gateway) namesFeed(referer string) bool {
	u, err := url.Parse(referer)
	return err == nil && referer != "" && strings.TrimRight(u.Path, "/") == strings.TrimRight(s.found.path, "/")
}

// validators compares the request's validators with those that the replay has served.
// Validators taken from the log are not compared, because the log's origin made them.
func (s *gateway) validators(l *Line) version.Standing {
	if l.HasHeader && l.Status != http.StatusNotModified {
		return version.Unconditional
	}
	return s.feed.Standing(s.request.Header, s.now())
}

func (s *gateway) countLogged(l *Line, now time.Time) {
	if s.report.Requests == 0 {
		s.report.From = now
	}
	s.report.To = now
	s.report.Requests++
	s.report.Bytes += l.Bytes
	s.report.Logged[strconv.Itoa(l.Status)]++
	if s.origin.skipHours.Contains(now) {
		s.report.RequestsInSkipHours++
	}
}

func (s *gateway) countServed(status int, bytes int64) {
	s.report.Served[strconv.Itoa(status)]++
	s.report.ServedBytes += bytes
}

// record counts the result of a line. The statistics record the answer of the log, because
// scores describe the log.
func (s *gateway) record(l *Line, v *reader, r *readers.Request) {
	sent := s.sent()
	s.countServed(s.answer.status, sent)
	tls := s.handshake(l)
	s.report.HandshakeBytes += tls
	if ok := l.Method == http.MethodGet && l.Status == http.StatusOK && s.answer.status == http.StatusOK; ok &&
		l.Bytes > s.sizes.packed/2 && (l.Bytes >= s.sizes.plainFrom) == (sent >= s.sizes.plainFrom) {
		s.report.WholeBytes += l.Bytes - tls
		s.report.ServedWholeBytes += sent
	}
	if v.got != nil {
		v.got.bytes += sent
		if s.answer.status/100 == 4 {
			v.got.refused++
		}
	}
	r.Status, r.Bytes = l.Status, l.Bytes
	s.statistics.Record(*r)
}

const (
	usualHead = 400  // bytes of status line and header fields
	leastTLS  = 2000 // bytes of a TLS handshake with a certificate (RFC 8446): from about leastTLS to mostTLS
	mostTLS   = 8000
)

// handshake estimates the bytes of a TLS handshake in a line, if the server counts them.
// A gateway does not save them, and the bytes of the replay do not include them. Only
// answers whose size is known well enough are considered.
func (s *gateway) handshake(l *Line) int64 {
	surplus := l.Bytes - usualHead
	if l.Status == http.StatusOK && !l.noBody() {
		surplus -= s.sizes.packed
	}
	known := l.noBody() || l.Status/100 == 4 || l.Status == http.StatusOK && l.Bytes < s.sizes.plainFrom
	if !s.found.headers || l.HasHeader || !known || surplus < leastTLS || surplus > mostTLS {
		return 0
	}
	return surplus
}

// redirected reports whether the line was answered by a redirect, which a gateway would
// not change.
func redirected(status int) bool { return status/100 == 3 && status != http.StatusNotModified }
