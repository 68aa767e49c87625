// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package readers

import (
	"net/http"
	"time"
)

// Defence selects the requests that a publisher refuses. The zero Defence refuses none.
// [Defence.Judge] says which requests are never refused.
type Defence struct {
	// MaxRate bounds the requests of a reader, not counting those answered by a 304.
	// The zero Rate sets no bound.
	MaxRate Rate
	// Unconditional is the least time between two full answers to a reader whose requests
	// are unconditional or have validators that the feed never had. 0 sets no bound.
	Unconditional time.Duration
	// SkipHours refuses unconditional requests in the feed's skip hours, except those
	// with a Referer, which come from a link.
	SkipHours bool
	// RequireCompression refuses readers that do not accept compression.
	RequireCompression bool
	// RequireUserAgent refuses requests without a User-Agent.
	RequireUserAgent bool
}

// Rate is a number of requests per time. They may come in a burst.
type Rate struct {
	Requests int
	Per      time.Duration
}

func (r Rate) zero() bool { return r.Requests <= 0 || r.Per <= 0 }

// spacing returns the time after which one more request is allowed.
func (r Rate) spacing() time.Duration { return r.Per / time.Duration(r.Requests) }

// State is the state of a reader of a feed. The zero State is that of a reader that has
// not been served yet.
type State struct {
	Full  time.Time // when the whole feed was last sent to it; zero if that is not known
	Spent time.Time // when none of its requests count towards MaxRate any more
	Told  time.Time // the end of the wait that it last received; zero if it was served since
	Shown int       // whole feeds sent to a reader that is a browser by its User-Agent only
}

// asPerson bounds the whole feeds sent to a reader that is a person's browser by its
// User-Agent only. Real browsers have other header fields too, and send conditional
// requests when they return. A reader that does neither is another program.
const asPerson = 12

// person reports whether a request seems to come from a person's browser.
func (s State) person(a Agent, r *Request) bool {
	return r.Browser || a.Kind == KindBrowser && s.Shown < asPerson
}

// Verdict is the decision on a request.
type Verdict struct {
	Status int       // 403, 406 or 429 to refuse the request; 0 to serve it
	Until  time.Time // with 429: when the reader may ask again
	Reason string    // for the reader and the log; empty if the request is served
	Early  bool      // with 429: the reader did not wait as an earlier 429 demanded
}

// RetryAfter returns the wait of a 429 in whole seconds, rounded up, so that a reader
// that waits so long is served (RFC 9110 section 10.2.3).
func (v Verdict) RetryAfter(now time.Time) int64 {
	return int64((v.Until.Sub(now) + time.Second - 1) / time.Second)
}

// asTold is how long after the end of its wait a reader cannot get another wait, because
// Retry-After promised it an answer.
const asTold = 10 * time.Minute

// Judge decides on a request before it is answered. It is pure.
//
// A person's browser is never refused, nor is a request that is answered by a 304, which
// costs no more than a refusal. A reader that has not been served before never has to
// wait. Asking again does not extend a wait: it counts from the last full answer.
func (d Defence) Judge(a Agent, s State, r *Request) Verdict {
	switch {
	case s.person(a, r), r.Validators == ValidatorsCurrent:
		return Verdict{}
	case d.RequireUserAgent && a.Kind == KindNone:
		// RFC 9110 section 15.5.4: the same request should not be repeated.
		return Verdict{Status: http.StatusForbidden, Reason: "a User-Agent that says who is asking is required"}
	case d.RequireCompression && r.Method == http.MethodGet && !r.Compressible:
		return Verdict{Status: http.StatusNotAcceptable, Reason: "this feed is sent compressed only: send Accept-Encoding: gzip"}
	}
	until, reason := d.wait(s, r)
	if !until.After(r.Time) || s.keptWaiting(r.Time) {
		return Verdict{}
	}
	early := s.Told.After(r.Time)
	if early && until.After(s.Told) {
		until = s.Told
	}
	return Verdict{Status: http.StatusTooManyRequests, Until: until, Reason: reason, Early: early}
}

// keptWaiting reports whether a reader asks within asTold after the end of its wait.
func (s State) keptWaiting(now time.Time) bool {
	return !s.Told.IsZero() && !now.Before(s.Told) && now.Sub(s.Told) <= asTold
}

// wait returns until when a request has to wait, and why. The zero time means that it
// does not have to wait.
func (d Defence) wait(s State, r *Request) (until time.Time, reason string) {
	if !d.MaxRate.zero() && !s.Spent.IsZero() {
		// The generic cell rate algorithm. Refused requests do not count.
		spent := s.Spent
		if furthest := r.Time.Add(d.MaxRate.Per); spent.After(furthest) {
			spent = furthest // the clock was set back
		}
		until, reason = spent.Add(d.MaxRate.spacing()-d.MaxRate.Per), "too many requests"
	}
	if s.Full.IsZero() || !r.whole() {
		return until, reason
	}
	full := s.Full
	if full.After(r.Time) {
		full = r.Time // the clock was set back: never wait for longer than the interval
	}
	if end := full.Add(d.Unconditional); d.Unconditional > 0 && end.After(r.Time) && end.After(until) {
		until, reason = end, "too many unconditional requests: send If-None-Match or If-Modified-Since"
	}
	if d.SkipHours && !r.Referer {
		// A wait does not end in skip hours.
		from := until
		if from.Before(r.Time) {
			from = r.Time
		}
		if end := r.SkipHours.After(from); end.After(from) {
			until, reason = end, "the feed's skipHours rule out this hour: send If-None-Match or If-Modified-Since"
		}
	}
	return until, reason
}

// Answered returns the state after a request that was served with r.Status.
func (d Defence) Answered(s State, r *Request) State {
	if r.Status == http.StatusOK && r.Method == http.MethodGet {
		s.Full, s.Told = r.Time, time.Time{}
	}
	if !d.MaxRate.zero() && r.Status != http.StatusNotModified {
		if s.Spent.Before(r.Time) {
			s.Spent = r.Time
		}
		s.Spent = s.Spent.Add(d.MaxRate.spacing())
	}
	return s
}
