// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package readers

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"time"

	"golang.org/x/time/rate"

	"github.com/feedpollard/pollard/internal/status"
)

// Limits selects the requests that a publisher refuses. The zero Limits refuses none.
// [Limiter.Check] says which requests are never refused.
type Limits struct {
	// MaxRate bounds the requests of a reader, not counting those answered by a 304.
	// The zero Rate sets no bound.
	MaxRate Rate
	// Unconditional is the time in which a reader gets the whole feed at most twice, if
	// its requests are unconditional or have validators that the feed never had. 0 sets
	// no bound.
	Unconditional time.Duration
	// Fleet names the machines, at a page, that together get the whole feed at most four
	// times in the time of Unconditional, and those of one network once. Unconditional
	// does not apply to them. Empty: the reader is of no fleet.
	Fleet string
	// SkipHours refuses unconditional requests in the feed's skip hours.
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

const (
	// DefaultUnconditional is the interval of Limits that set none.
	DefaultUnconditional = 4 * time.Hour
	// wholeFeeds is how many whole feeds a reader gets in an interval: two, because two
	// people may share an address and a program.
	wholeFeeds = 2
	// wholeFeedsOfPersons is how many whole feeds the persons at an address get in an
	// interval. A program that pretends to be a person gets no more.
	wholeFeedsOfPersons = 12
	// promisedFor is how long after the end of its wait a reader cannot get another wait,
	// because Retry-After promised it an answer.
	promisedFor = 10 * time.Minute
)

func (d Limits) interval() time.Duration { return cmp.Or(d.Unconditional, DefaultUnconditional) }

// The rules by which requests are refused, as lines of defend are called.
const (
	RuleMaxRate       = "max_rate"
	RuleUnconditional = "unconditional"
	RuleFleet         = "fleet"
	RuleSkipHours     = "skip_hours"
	RuleCompression   = "require_compression"
	RuleUserAgent     = "require_user_agent"
)

// Rules are all of them.
var Rules = []string{RuleMaxRate, RuleUnconditional, RuleFleet, RuleSkipHours, RuleCompression, RuleUserAgent}

// Verdict is the decision on a request.
type Verdict struct {
	Status int       // 403, 406 or 429 to refuse the request; 0 to serve it
	Until  time.Time // with 429: when the reader may ask again
	Reason string    // for the reader and the log; empty if the request is served
	Rule   string    // the line of defend that refuses the request; empty if it is served
	Early  bool      // with 429: the reader did not wait as an earlier 429 demanded
}

// RetryAfter returns the wait of a 429 in whole seconds, rounded up, so that a reader
// that waits so long is served (RFC 9110 section 10.2.3).
func (v Verdict) RetryAfter(now time.Time) int64 {
	return int64((v.Until.Sub(now) + time.Second - 1) / time.Second)
}

// state is what is known of a reader of a feed. The zero state is that of a new reader.
type state struct {
	whole recent        // the last whole feeds, or refusals with 406 in their place
	wait  time.Time     // the end of the wait that it last received; zero if it was served since
	rate  *rate.Limiter // nil if no MaxRate is set
}

// recent are the times of the last events, oldest first.
type recent []time.Time

// add adds an event and keeps the last most.
func (e *recent) add(at time.Time, most int) {
	if len(*e) >= most {
		*e = append((*e)[:0], (*e)[len(*e)-most+1:]...)
	}
	*e = append(*e, at)
}

// next returns when one more event makes no more than most in an interval.
func (e recent) next(now time.Time, most int, interval time.Duration) time.Time {
	if len(e) < most {
		return time.Time{}
	}
	first := e[len(e)-most]
	if first.After(now) {
		first = now // the clock was set back: never wait for longer than the interval
	}
	return first.Add(interval)
}

// check decides on a request of a reader that is not a person.
func (d Limits) check(s *state, r *Request) Verdict {
	if d.RequireUserAgent && slices.Contains([]string{"", nameless}, printable(shortened(r.UserAgent))) {
		// RFC 9110 section 15.5.4: the same request should not be repeated.
		return Verdict{Status: http.StatusForbidden, Rule: RuleUserAgent, Reason: "a User-Agent that says who is asking is required"}
	}
	until, rule, reason := d.wait(s, r)
	kept := !s.wait.IsZero() && !r.Time.Before(s.wait) && r.Time.Sub(s.wait) <= promisedFor
	if until.After(r.Time) && !kept {
		early := s.wait.After(r.Time)
		if early && until.After(s.wait) {
			until = s.wait
		}
		return Verdict{Status: http.StatusTooManyRequests, Until: until, Rule: rule, Reason: reason, Early: early}
	}
	// After 429, which makes some readers ask less often. A 406 does not.
	if d.RequireCompression && r.Method == http.MethodGet && !r.Compression {
		return Verdict{Status: http.StatusNotAcceptable, Rule: RuleCompression, Reason: "this feed is sent compressed only: send Accept-Encoding: gzip"}
	}
	return Verdict{}
}

// tooMany says how many whole feeds are sent in an interval, and what gets more.
func tooMany(most int, interval time.Duration, to string) string {
	return fmt.Sprintf("too many unconditional requests (%d whole feeds in %s%s): send If-None-Match or If-Modified-Since", most, status.Length(interval), to)
}

// wait returns until when a request has to wait, by which rule, and why. The zero time means that it
// does not have to wait.
func (d Limits) wait(s *state, r *Request) (until time.Time, rule, reason string) {
	if !d.MaxRate.zero() && s.rate != nil {
		if missing := 1 - s.rate.TokensAt(r.Time); missing > 0 {
			wait := time.Duration(missing * float64(d.MaxRate.Per) / float64(d.MaxRate.Requests))
			until, rule, reason = r.Time.Add(wait), RuleMaxRate, "too many requests"
		}
	}
	if len(s.whole) == 0 || !r.whole() {
		return until, rule, reason
	}
	if d.Unconditional > 0 {
		if end := s.whole.next(r.Time, wholeFeeds, d.Unconditional); end.After(r.Time) && end.After(until) {
			until, rule, reason = end, RuleUnconditional, tooMany(wholeFeeds, d.Unconditional, "")
		}
	}
	if d.SkipHours {
		// A wait does not end in skip hours.
		from := until
		if from.Before(r.Time) {
			from = r.Time
		}
		if end := r.SkipHours.After(from); end.After(from) {
			until, rule, reason = end, RuleSkipHours, "the feed's skipHours rule out this hour: send If-None-Match or If-Modified-Since"
		}
	}
	return until, rule, reason
}

// answered counts a request that was served with r.Status.
func (d Limits) answered(s *state, r *Request) {
	if r.Status == http.StatusOK && r.Method == http.MethodGet {
		s.whole.add(r.Time, wholeFeeds)
		s.wait = time.Time{}
	}
	if d.MaxRate.zero() {
		return
	}
	limit := rate.Limit(float64(d.MaxRate.Requests) / d.MaxRate.Per.Seconds())
	if s.rate == nil || s.rate.Limit() != limit || s.rate.Burst() != d.MaxRate.Requests {
		s.rate = rate.NewLimiter(limit, d.MaxRate.Requests)
	}
	s.rate.AllowN(r.Time, 1)
}
