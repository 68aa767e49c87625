// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"net/http"
	"strings"
	"time"

	"github.com/feedpollard/pollard/cache/feedstate"
	"github.com/feedpollard/pollard/internal/status"
	"github.com/feedpollard/pollard/policy"
	"github.com/feedpollard/pollard/policy/document/site"
)

// Unavailable reports that a feed has no version to serve.
type Unavailable struct {
	Status     int           // for the reader: 403, 404, 410, 502, 503 or 504
	Reason     string        // one line, for people
	RetryAfter time.Duration // when to come back; 0: never mind
	// Moved is the URL of the feed to which this one redirects: [Feed.Resolve] leads there.
	Moved string
	// Site is set if the feed's URL is that of a web page that links to feeds (502).
	Site *site.Page
	// Answered says that the site has answered the last poll, and has neither the feed nor asked to be
	// left alone: other addresses there may do better.
	Answered bool
	// Queued says that the feed's first poll waits for its turn behind others of its
	// host, and that nothing has failed.
	Queued bool
	// Busy says that there is a version, but too many readers are being sent large ones.
	Busy bool
}

func (u *Unavailable) Error() string { return u.Reason }

// Unavailable returns why the feed has no version to serve; nil if it has one.
func (f *Feed) Unavailable() *Unavailable {
	s, p := f.latest()
	if s.Version != 0 {
		return nil
	}
	return f.unavailable(s, p)
}

// unavailable returns why a feed has no version, by what [Feed.latest] returns.
func (f *Feed) unavailable(s *feedstate.State, p *inFlight) *Unavailable {
	now := f.cache.elapsed()
	s = f.held(s, now)
	u := &Unavailable{Status: statusCode(s.Last.Failure), Reason: reasonFor(s.Last.Failure, s.Last.Error), RetryAfter: max(s.Left(now, f.rules), time.Second), Site: s.Last.Site}
	switch {
	case s.Points != "":
		u.Status, u.Moved, u.Reason = http.StatusBadGateway, s.Points, "the feed redirects in a circle"
	case p != nil && s.Last.At.IsZero():
		u.Status, u.RetryAfter = http.StatusServiceUnavailable, max(queueTimeout, f.cache.schedule.open(f.host().Site)-now)
		u.Queued = true // it may have come to its turn in this moment
		u.Reason = "the feed's first poll is under way: try again in a moment"
		if !p.left() {
			u.Reason = "the feed's first poll waits for its turn: feeds of one host are polled one after the other"
		}
	case s.Last.At.IsZero() && s.Last.Winner != "":
		u.Status = http.StatusServiceUnavailable
		u.Reason = "the feed's first poll has to wait: " + status.HintMeaning(s.Last.Winner)
	case s.Last.At.IsZero() && s.Due > now && !f.polledByOtherNode(s):
		u.Status, u.Reason = http.StatusServiceUnavailable, "the feed cannot be polled yet: its site was asked for it not long ago"
	case s.Last.At.IsZero() && f.mayPoll(s, now):
		u.Status, u.Queued, u.Reason = http.StatusServiceUnavailable, true, "the feed's first poll waits for its turn: try again in a moment"
		u.RetryAfter = max(u.RetryAfter, f.cache.schedule.open(f.host().Site)-now)
	case s.Last.At.IsZero():
		u.Status, u.Reason = http.StatusServiceUnavailable, "the feed's first poll has not been answered yet"
	case s.Last.Failure == policy.FailureNone:
		u.Status, u.Reason = http.StatusServiceUnavailable, "no version of the feed is stored; its next poll fetches it again"
	case u.Reason == "":
		u.Reason = "the feed's last poll failed: " + string(s.Last.Failure)
	}
	switch u.Status {
	case http.StatusNotFound, http.StatusGone, http.StatusBadGateway:
		u.Answered = s.Last.Status != 0
	}
	if ago := f.cache.now().Sub(s.Last.At); u.Status == http.StatusBadGateway && s.Last.Result == status.ResultUnsent && ago >= tellAfter {
		u.Reason += "; tried " + status.Ago(s.Last.At, f.cache.now())
	}
	if u.Status == http.StatusGone || u.Status == http.StatusForbidden && s.Last.Failure != policy.FailureAddress {
		u.RetryAfter = 0
	}
	return u
}

// tellAfter is how long a poll cannot be sent before errors say when it was tried.
const tellAfter = 5 * time.Second

// reasonFor returns the text for readers about a failure. It may be public: a response that is not
// a feed is not quoted, as it may be a page for someone else, and errors of the store are not, as
// they name files of this machine.
func reasonFor(failure policy.Failure, text string) string {
	switch failure {
	case policy.FailureNotFeed:
		if strings.Contains(text, "an HTML page") {
			return "the URL gives an HTML page, not a feed"
		}
		if _, limit, ok := strings.Cut(text, "too complex a document: "); ok {
			return "what the URL gives is too complex a document: " + limit
		}
		return "what the URL gives is not a feed"
	case policy.FailureTruncated:
		return "the feed breaks off before its end"
	case policy.FailureStore:
		return "the gateway's store cannot be written"
	}
	return text
}

// statusCode is the status for a reader while a feed has no version. An origin's own 404 and
// 410 are passed on: they are what a reader that asks for a wrong URL has to know.
func statusCode(failure policy.Failure) int {
	switch failure {
	case policy.FailureGone:
		return http.StatusGone
	case policy.FailureNotFound:
		return http.StatusNotFound
	case policy.FailureAddress:
		return http.StatusForbidden
	case policy.FailureTimeout:
		return http.StatusGatewayTimeout
	case policy.FailureNone, policy.FailureNotStarted, policy.FailureRateLimited, policy.FailureHeld, policy.FailureStore:
		return http.StatusServiceUnavailable
	}
	return http.StatusBadGateway
}
