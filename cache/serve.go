// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/feedpollard/pollard/cache/feedstate"
	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/cache/version"
)

const (
	// pollTimeout is how long a reader waits for a poll that is under way, counted
	// from its start, before it gets the last good version.
	pollTimeout = 3 * time.Second
	// queueTimeout is how long a reader of a feed without a version waits for its
	// host's slot, and coldTimeout for all of the poll, unless that may take longer.
	queueTimeout = 15 * time.Second
	coldTimeout  = time.Minute
)

// Sent is what a reader was sent.
type Sent struct {
	Status  int    // 200 or 304
	Bytes   int64  // of body
	Forward string // the poll that the reader has waited for: stale or miss, as in Cache-Status; empty: a hit
}

// Serve answers a GET or HEAD with the feed. If a poll is due, it waits for the poll for up to
// 3 s and then serves the last good version. If there is none, it waits longer, and fails with
// an [Unavailable] without having written anything. If the header of w has Cache-Control: private,
// the response has that too.
func (f *Feed) Serve(w http.ResponseWriter, r *http.Request, o ServeOptions) (Sent, error) {
	f = f.use()
	defer f.leave()
	sent, unread, err := f.serveOnce(w, r, o)
	if unread != 0 && f.readAgain(r.Context(), unread, err) {
		sent, unread, err = f.serveOnce(w, r, o)
	}
	if unread != 0 {
		err = f.storeError(err)
	}
	return sent, err
}

// ServeOptions are what a handler decides about a request.
type ServeOptions struct {
	// May returns an error if the version may not be served that came from a URL to which redirects
	// have led. Nil: it may come from anywhere.
	May func(from string) error
	// Waited is the poll for which the reader has waited, as [Feed.Await] returned it; empty if it has not
	// waited.
	Waited version.CacheStatus
	// Spent is how long the reader has waited already, for a feed that points to this one.
	Spent time.Duration
	// Pointed says that the request is for another feed, which points to this one: see [version.Response.Undated].
	Pointed bool
}

// From returns the URL from which the feed's version came, if redirects have led there.
func (f *Feed) From() string { return f.state.Load().Feed.Version.From }

// errPrecondition refuses a request for another version than the current one.
var errPrecondition = &Unavailable{Status: http.StatusPreconditionFailed, Reason: "the feed has another version: the request's If-Match or If-Unmodified-Since does not hold"}

// Await waits for the first poll of a feed if it is due. It returns how the poll is described to the
// reader, for [ServeOptions], and whether there is a version then.
func (f *Feed) Await(ctx context.Context) (how version.CacheStatus, some bool) {
	f = f.use()
	defer f.leave()
	s := f.state.Load()
	if s.Version == 0 {
		if now := f.cache.elapsed(); f.worthWaiting(s, now) {
			s, how = f.refreshed(ctx, s, now, 0)
		}
	}
	return how, s.Version != 0
}

// serveOnce serves what the feed's state has. unread is the version if that could not be read.
func (f *Feed) serveOnce(w http.ResponseWriter, r *http.Request, o ServeOptions) (sent Sent, unread uint64, err error) {
	s, wall, how := f.state.Load(), f.cache.now(), o.Waited
	if now := f.cache.elapsedAt(wall); f.worthWaiting(s, now) {
		s, how = f.refreshed(r.Context(), s, now, o.Spent)
		wall = f.cache.now()
	}
	if s.Version == 0 {
		// The poll may have ended in the moment in which the reader stopped waiting.
		var p *inFlight
		if s, p = f.latest(); s.Version == 0 {
			return Sent{}, 0, f.unavailable(s, p)
		}
	}
	if from := s.Feed.Version.From; from != "" && o.May != nil {
		if err := o.May(from); err != nil {
			return Sent{}, 0, err
		}
	}
	if s.Feed.Version.PreconditionFailed(r.Header) {
		return Sent{}, 0, errPrecondition
	}
	response := s.Response
	if o.Pointed || s.Points != "" {
		response = response.Undated() // at any time another feed may have answered
	}
	if response.NotModified(r.Header, wall) {
		response.WriteNotModified(w, r.Header, wall, f.timed(w.Header(), s, how, wall)...)
		return Sent{Status: http.StatusNotModified, Forward: how.Forward}, 0, nil
	}
	rep, err := f.representation(r, s)
	if err != nil {
		return Sent{}, s.Version, err
	}
	if rep.release != nil {
		defer rep.release()
	}
	n := response.Write(w, r, rep.Representation, wall, f.timed(w.Header(), s, how, wall)...)
	if rep.stream != nil && r.Method != http.MethodHead {
		n = rep.stream.send(w, r)
	}
	return Sent{Status: http.StatusOK, Bytes: n, Forward: how.Forward}, 0, nil
}

// readAgain reads the record of a feed whose version could not be read: the store may have another one
// by now, or has lost the body. It reports whether the feed may be served now.
func (f *Feed) readAgain(ctx context.Context, unread uint64, err error) bool {
	lost := errors.Is(err, store.ErrNoBody)
	if !lost && !errors.Is(err, errOtherVersion) || f.reload(ctx) != nil {
		return false
	}
	if lost {
		f.bodyLost(unread, err)
	}
	return true
}

// worthWaiting reports whether a reader should wait for a poll: it is due or under way, or another node makes the first one.
func (f *Feed) worthWaiting(s *feedstate.State, now time.Duration) bool {
	return f.mayPoll(s, now) || f.pingWaits(s, now) || f.underWay() != nil || f.polledByOtherNode(s)
}

// pingWaits reports whether a ping has the feed polled for a reader, before it is due.
func (f *Feed) pingWaits(s *feedstate.State, now time.Duration) bool {
	return f.pinged.Load() && !s.Ended && s.Feed.History.Failures == 0 && s.NotBefore <= now && now-s.Granted >= f.rules().MinInterval
}

// refreshed waits for the poll that is due or under way, within bounds. The reader has waited before.
func (f *Feed) refreshed(ctx context.Context, s *feedstate.State, now, waited time.Duration) (*feedstate.State, version.CacheStatus) {
	after, how := s, version.CacheStatus{}
	if !f.polledByOtherNode(s) {
		after, how = f.refresh(ctx, s, now, waited)
	}
	if f.polledByOtherNode(after) {
		after = f.awaitOtherNode(ctx, after)
		how = statusAfterPoll(s, after, true, true)
	}
	return after, how
}

// refresh waits for the poll of this node.
func (f *Feed) refresh(ctx context.Context, s *feedstate.State, now, waited time.Duration) (*feedstate.State, version.CacheStatus) {
	p, joined := f.start(f.requestFor(s))
	if p == nil {
		return f.state.Load(), version.CacheStatus{}
	}
	var done bool
	free := f.cache.schedule.open(f.host().Site) - now // when the site may be asked
	switch {
	case s.Version != 0 && (free > pollTimeout || f.cache.storeAway.text() != ""):
		// The poll waits for its site, or finds out whether the store is back. Readers do not wait for that.
	case s.Version != 0:
		done = p.wait(ctx, pollTimeout, now)
	case free <= queueTimeout:
		most := max(coldTimeout, f.rules().Timeout+feedstate.Grace) - waited
		done = await(ctx, p.sent, min(queueTimeout, most)) && await(ctx, p.done, most)
	}
	after := f.state.Load()
	return after, statusAfterPoll(s, after, joined, done)
}

// requestFor returns the poll that a reader causes. If the version was damaged, it only waits for
// MinInterval, and not for the time that was planned.
func (f *Feed) requestFor(s *feedstate.State) (req pollRequest) {
	if f.pinged.Load() {
		req.floor = f.rules().MinInterval
	}
	if s.Version == 0 && f.missing.Load() != 0 {
		req.floor = f.rules().MinInterval
	}
	return req
}

// storeError returns the error of a request that could not read from the store.
func (f *Feed) storeError(err error) error {
	if errors.Is(err, context.Canceled) {
		return err
	}
	if errors.Is(err, errBusy) {
		return &Unavailable{Status: http.StatusServiceUnavailable, Reason: err.Error(), RetryAfter: busyRetry, Busy: true}
	}
	f.cache.logUnreadable("stored version cannot be read", f.key.String(), err)
	return &Unavailable{Status: http.StatusServiceUnavailable, Reason: "the store cannot be read", RetryAfter: storeRetry}
}

// bodyLost drops the version of a feed whose body cannot be read any more.
func (f *Feed) bodyLost(version uint64, err error) {
	if f.withdraw(version) {
		f.cache.log().Error("stored body is lost, the next poll fetches it again", f.cache.urlField(f.key.String()), errField(err))
	}
}

// withdraw stops serving a version, whatever the store has. It reports whether it was the
// feed's.
func (f *Feed) withdraw(version uint64) bool {
	f.missing.Store(version)
	f.mu.Lock()
	defer f.mu.Unlock()
	last := f.state.Load()
	if last.Version != version {
		return false
	}
	next := *last
	f.dropVersion(&next)
	return f.setState(last, &next)
}

// statusAfterPoll describes a response that waited for a poll.
func statusAfterPoll(before, after *feedstate.State, joined, done bool) version.CacheStatus {
	if !done || after.Last.At.Equal(before.Last.At) {
		return version.CacheStatus{} // served from the store without an answer
	}
	how := version.CacheStatus{Forward: "stale", Status: after.Last.Status, Collapsed: joined}
	if how.Stored = after.Version != before.Version && after.Unstored == nil; before.Version == 0 {
		how.Forward = "miss"
	}
	return how
}

// timedFields are the header fields that change with time, made at most once a second.
type timedFields struct {
	state  *feedstate.State
	second int64
	how    version.CacheStatus

	public, private []version.Field // what a response has that is for everyone, and one that is for its reader
}

// timed returns the fields that change with time, which a 200 and a 304 have in common. There is
// no Age: max-age is the time left until the next poll, and a cache that subtracted an Age from
// it (RFC 9111 section 4.2) would take the feed for stale.
func (f *Feed) timed(h http.Header, s *feedstate.State, how version.CacheStatus, wall time.Time) []version.Field {
	now := f.cache.elapsedAt(wall)
	m := f.timedFields.Load()
	if second := int64(now / time.Second); m == nil || m.second != second || m.state != s || m.how != how {
		m = f.newTimedFields(s, how, now)
		f.timedFields.Store(m)
	}
	if before := h["Cache-Control"]; len(before) == 1 && before[0] == "private" {
		return m.private
	}
	return m.public
}

// mayServeStale lets other caches serve a feed for a minute while they ask for it again, and for a day while this server is
// away (RFC 5861).
const mayServeStale = ", stale-while-revalidate=60, stale-if-error=86400"

func (f *Feed) newTimedFields(s *feedstate.State, how version.CacheStatus, now time.Duration) *timedFields {
	m := &timedFields{state: s, second: int64(now / time.Second), how: how}
	s = f.held(s, now)
	same := []version.Field{{Name: "Cache-Status", Values: []string{how.Text(s.Due-now, !s.Ended, s.Last.Winner)}}}
	age, stale := s.MaxAge(now, f.rules), mayServeStale
	if f.key.Shielded() {
		if s.Feed.History.Freshness.Revalidate {
			stale = ""
		}
		next := age
		if age = s.MaxAgeOfReaders(now, f.cache.now(), f.rules); next < age {
			// A CDN in front may ask as soon as there may be news (RFC 9213). s-maxage would forbid it to
			// serve a stale feed while this server is down (RFC 9111 section 5.2.2.10).
			same = append(same, version.Field{Name: "Cdn-Cache-Control", Values: []string{"max-age=" + strconv.FormatInt(next, 10) + stale}})
		}
	}
	maxAge := "max-age=" + strconv.FormatInt(age, 10)
	m.public = append([]version.Field{{Name: "Cache-Control", Values: []string{maxAge + stale}}}, same...)
	m.private = append([]version.Field{{Name: "Cache-Control", Values: []string{"private, " + maxAge}}}, same...)
	return m
}
