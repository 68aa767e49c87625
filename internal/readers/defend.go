// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package readers

import (
	"net/http"
	"time"
)

// Defence is what a publisher does not put up with. The zero Defence puts up
// with everything. Each option refuses only what it names; [Defence.Judge] says
// what is never refused.
type Defence struct {
	// MaxRate bounds the requests of a reader that are answered other than by a
	// 304. The zero rate: no bound.
	MaxRate Rate
	// Unconditional is the least time between two full answers to a reader that
	// asks unconditionally, or with validators that the feed never gave. 0: no bound.
	Unconditional time.Duration
	// SkipHours refuses unconditional requests in the hours in which the feed does
	// not want to be polled, unless somebody followed a link (Referer).
	SkipHours bool
	// RequireCompression refuses to send the feed uncompressed.
	RequireCompression bool
	// RequireUserAgent refuses readers that do not say who they are.
	RequireUserAgent bool
}

// Rate is a number of requests in a time, which may come at once.
type Rate struct {
	Requests int
	Per      time.Duration
}

func (r Rate) zero() bool { return r.Requests <= 0 || r.Per <= 0 }

// spacing is the time after which one more request is allowed.
func (r Rate) spacing() time.Duration { return r.Per / time.Duration(r.Requests) }

// State is what a defence has to know of a reader of a feed. The zero State is
// that of a reader that has not been served yet.
type State struct {
	Full  time.Time // the last time that it was sent the whole feed; zero: never, as far as known
	Spent time.Time // when the requests that count for MaxRate are all forgotten
	Told  time.Time // the end of the wait that it was told last; zero: none since it was served
	Shown int       // whole feeds sent to a reader whose User-Agent alone says that it is a browser
}

// asPerson is how many whole feeds a reader may have that says by its User-Agent
// alone that it is a person's browser. Real browsers also say it by other headers,
// and ask conditionally when they come again: what goes on without either is a
// program that goes by a browser's name.
const asPerson = 12

// person reports whether a request is taken for that of a person's browser.
func (s State) person(a Agent, r *Request) bool {
	return r.Browser || a.Kind == KindBrowser && s.Shown < asPerson
}

// Verdict is what to do with a request.
type Verdict struct {
	Status int       // to refuse it with: 403, 406 or 429; 0: serve it
	Until  time.Time // with 429: when the reader may come again
	Reason string    // for the reader and the log; empty: served
	Early  bool      // with 429: the reader had been told to wait, and has not
}

// RetryAfter is the wait of a 429 in whole seconds, rounded up: whoever waits so
// long is served (RFC 9110 section 10.2.3).
func (v Verdict) RetryAfter(now time.Time) int64 {
	return int64((v.Until.Sub(now) + time.Second - 1) / time.Second)
}

// asTold is for how long after the end of its wait a reader is served whatever
// has happened since: a wait that was told is a promise.
const asTold = 10 * time.Minute

// Judge decides on a request before it is answered. It is pure.
//
// Never refused are a person's browser, and a request that a 304 answers, which
// costs no more than a refusal and teaches better. Never told to wait is a reader
// that has not been served before. A wait is the true remaining one: it counts from
// the last full answer, so asking again does not lengthen it.
func (d Defence) Judge(a Agent, s State, r *Request) Verdict {
	switch {
	case s.person(a, r), r.Validators == ValidatorsCurrent:
		return Verdict{}
	case d.RequireUserAgent && a.Kind == KindNone:
		// RFC 9110 section 15.5.4: understood and refused; repeating it as it is will not help.
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

// keptWaiting reports whether a reader comes at the end of its wait.
func (s State) keptWaiting(now time.Time) bool {
	return !s.Told.IsZero() && !now.Before(s.Told) && now.Sub(s.Told) <= asTold
}

// wait is until when a request has to wait, and why; the zero time: not at all.
func (d Defence) wait(s State, r *Request) (until time.Time, reason string) {
	if !d.MaxRate.zero() && !s.Spent.IsZero() {
		// RFC 9110 has no rule for this: the generic cell rate algorithm, in which a
		// refused request costs nothing.
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
		// A wait that would end in skip hours does not end there.
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

// Answered is the state after a request that was served, with its Status.
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
