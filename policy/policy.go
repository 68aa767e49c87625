// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

// Package policy decides when a feed may be polled next.
//
// It is arithmetic without I/O and without a clock of its own: an operator's
// [Rules], the [History] of a feed and the [Answer] of its origin go in, a
// [Decision] comes out that records every hint considered and the one that won.
// HTTP hints are read here (RFC 9110, RFC 9111, the RateLimit drafts); what the
// document itself says is read by the package document below this one.
//
// A newcomer starts at [Decide]; every token that a decision may name is in term.go.
//
// It does not fetch, store or schedule anything.
package policy

import (
	"context"
	"net/http"
	"time"

	"github.com/feedpollard/pollard/internal/feedurl"
)

// Rules are the operator's settings for one feed. Every field is meant as
// written: defaults are filled in by [DefaultRules], not by a zero value.
type Rules struct {
	// MinInterval is the floor: no hint makes polls more frequent than this.
	MinInterval time.Duration
	// DefaultInterval holds where neither a hint nor the posting rhythm says anything.
	DefaultInterval time.Duration
	// UnvalidatedInterval is the floor for a feed whose origin gives neither
	// validators nor an explicit hint.
	UnvalidatedInterval time.Duration
	// MaxInterval caps what hints and back-off can ask for. Retry-After, RateLimit,
	// skip windows, completed shows and a 410 may exceed it.
	MaxInterval time.Duration
	// Jitter is the largest fraction added to an interval, upward only; 0 adds nothing.
	Jitter float64
	// NoRhythm leaves the posting rhythm out: where no hint says anything, the
	// default interval holds. For a publisher's own site.
	NoRhythm bool
	// MaxBackOff caps the back-off after failures; 0: MaxInterval does.
	MaxBackOff time.Duration
	// Timeout bounds one poll, its redirects included.
	Timeout time.Duration
	// MaxBody is the largest body accepted, in bytes after decoding.
	MaxBody int64
}

// DefaultRules are the rules of a gateway in which nothing was configured.
func DefaultRules() Rules {
	return Rules{
		MinInterval:         time.Hour,
		DefaultInterval:     time.Hour,
		UnvalidatedInterval: 24 * time.Hour,
		MaxInterval:         24 * time.Hour,
		Jitter:              0.10,
		Timeout:             30 * time.Second,
		MaxBody:             10 << 20,
	}
}

// Hints are what a document says about when to poll it: validly read and
// normalised, whether or not a decision uses them. An absent hint is zero and
// is left out of the JSON form.
type Hints struct {
	TTL             *int64           `json:"ttl_minutes,omitempty"`      // RSS ttl, minutes
	SkipHours       []int            `json:"skip_hours,omitempty"`       // 0 to 23 GMT, ascending, without duplicates
	SkipDays        []string         `json:"skip_days,omitempty"`        // "Monday" to "Sunday" in the week's order, GMT
	SyPeriod        string           `json:"sy_period,omitempty"`        // hourly, daily, weekly, monthly or yearly
	SyFrequency     *int64           `json:"sy_frequency,omitempty"`     // polls per period, positive
	SyBase          string           `json:"sy_base,omitempty"`          // W3CDTF, as written
	UpdateFrequency *UpdateFrequency `json:"update_frequency,omitempty"` // podcast:updateFrequency
	Complete        bool             `json:"complete,omitempty"`         // itunes:complete
	NewFeedURL      string           `json:"new_feed_url,omitempty"`     // itunes:new-feed-url, http or https
	Expired         bool             `json:"expired,omitempty"`          // JSON Feed
	Hubs            []string         `json:"hubs,omitempty"`             // WebSub hubs, http or https
	Self            string           `json:"self,omitempty"`             // the feed's own idea of its URL
}

// Document is what was read of one body.
type Document struct {
	Format      string // rss, atom or json
	Version     string // 0.91, 0.92, 1.0, 2.0, 0.3, 1.1, ...; empty where the document does not say
	Title       string // one short line; empty where the document has none
	Hints       Hints
	Malformed   []Term // hints that were no use: Hint, Raw and Note say which and why
	Rhythm      Rhythm
	Fingerprint Fingerprint
	Lenient     bool // only a lenient parse accepts the document: it may have lost entries
}

// UpdateFrequency is the Podcasting 2.0 tag of that name.
type UpdateFrequency struct {
	Text     string `json:"text,omitempty"`
	RRule    string `json:"rrule,omitempty"`   // RFC 5545, as written
	DTStart  string `json:"dtstart,omitempty"` // ISO 8601, as written
	Complete bool   `json:"complete,omitempty"`
}

// Validators are the ETag and Last-Modified of one 200 answer: one set, kept
// byte for byte and bound to the URL that gave them.
type Validators struct {
	URL          string `json:"url,omitempty"`
	ETag         string `json:"etag,omitempty"`
	LastModified string `json:"last_modified,omitempty"`
}

// Empty reports whether the set validates nothing.
func (v Validators) Empty() bool { return v.ETag == "" && v.LastModified == "" }

// ValidatorsOf are the validators of a 200 answer that the next request can carry. One
// that is empty or too long to be kept is as good as absent; the other one counts.
func ValidatorsOf(a Answer) Validators {
	v := Validators{URL: a.URL, ETag: a.Header.Get("ETag"), LastModified: a.Header.Get("Last-Modified")}
	if len(v.LastModified) > MaxValidators {
		v.LastModified = ""
	}
	if len(v.ETag)+len(v.LastModified) > MaxValidators {
		v.ETag = ""
	}
	if v.Empty() {
		return Validators{}
	}
	return v
}

// Ask is one poll to be made: a conditional GET with all that may be said to an
// origin. Nothing of a reader is in it.
type Ask struct {
	URL         feedurl.URL
	Validators  Validators    // sent only to the URL that they are bound to
	StartBy     time.Time     // the request leaves by then or not at all; zero: no bound
	Timeout     time.Duration // for the whole poll, waiting for slots and for Hop excluded; 0: none
	MaxBody     int64         // bytes after decoding; 0: no limit
	Subscribers int           // readers behind this poll, told in the User-Agent; 0: not told

	// Allow tells why a redirect may not lead to a URL. It is asked before anything
	// else: an error ends the poll there, and the answer carries it in Err, with
	// FailureAddress. Nil: it may lead anywhere.
	Allow func(u feedurl.URL) error
	// Hop is asked before a redirect is followed to another URL, when nothing that
	// can be told from the URL speaks against it, and before the poll waits for the
	// slot of its host. It may take its time. An error ends the poll there: the answer
	// carries it in Err, with FailureHeld. Nil: every hop may be followed.
	Hop func(ctx context.Context, u feedurl.URL, host Host) error
	// Large waits for room for a body of more than [SmallBody] bytes, of which size
	// bytes are to be held. It is asked once, when so many have arrived; the poll's
	// clock stands meanwhile. An error ends the poll there. Nil: there is always room.
	Large func(ctx context.Context, size int64) error
}

// HopPatience is how long a poll waits for the hosts of its redirects, in all: it is
// claimed for no longer.
const HopPatience = 2 * time.Minute

// SmallBody is up to how many bytes a body needs no room of its own.
const SmallBody = 512 << 10

// Answer is what came of a poll.
type Answer struct {
	Asked time.Time // when the first request left, or a TLS handshake failed; zero: nothing reached the origin
	At    time.Time // when the poll ended: intervals count from here

	URL    string      // the URL that answered last
	Moves  []Move      // the redirects that were followed, in order
	Status int         // of the last answer; 0 when none came
	Header http.Header // of the last answer
	Body   []byte      // decoded, complete, only with status 200
	Wire   int64       // bytes of body received before decoding, over all hops

	// Failure is empty for a 200 with a complete body and for a 304 that was asked for.
	Failure Failure
	Err     error // says more of a failure, for readers: which host and what happened, no URL and no secret

	// Detail says of a failure what Err leaves out, for the log: one line, with redacted
	// URLs. Empty: nothing.
	Detail string

	// NotBefore is when the hosts concerned may be asked again, as far as one of them
	// has asked for a pause; Holder says which. Zero: none has.
	NotBefore time.Time
	Holder    string

	Pauses []Pause // that hosts have asked for in this poll, from its end
}

// Unsent reports whether nothing reached the origin: no address, no connection, or
// the poll was kept back here. Then the feed has not failed, and its origin need not
// be spared.
func (a Answer) Unsent() bool {
	if !a.Asked.IsZero() {
		return false
	}
	switch a.Failure {
	case FailureNotStarted, FailureDNS, FailureConnect, FailureTimeout, FailureAddress:
		return true
	}
	return false
}

// Move is one redirect.
type Move struct {
	From   string `json:"from"`
	To     string `json:"to"`
	Status int    `json:"status"`
}

// Failure is the class of an answer that does not count as one.
type Failure string

// The classes of failure. Their texts appear in logs, records and explanations.
const (
	FailureNone        Failure = ""
	FailureNotStarted  Failure = "not-started"  // nothing was sent: the slot came too late or the gateway is closing
	FailureHeld        Failure = "held"         // a redirect led to where nothing may be asked now
	FailureDNS         Failure = "dns"          // the host has no address, or none was found out in time
	FailureConnect     Failure = "connect"      // refused, unreachable; with a request sent: closed without an answer
	FailureTLS         Failure = "tls"          // no acceptable certificate
	FailureTimeout     Failure = "timeout"      // no complete answer in time
	FailureAddress     Failure = "address"      // a private or otherwise forbidden address
	FailureRedirect    Failure = "redirect"     // a loop, too many hops, https to http, no Location
	FailureTruncated   Failure = "truncated"    // the body broke off
	FailureDecoding    Failure = "decoding"     // the content coding is unknown or broken
	FailureOversize    Failure = "oversize"     // larger than max_body
	FailureEmpty       Failure = "empty"        // a 200 without a body
	FailureNotFeed     Failure = "not-feed"     // a 200 with something that is no feed, HTML for example
	FailureSuspect     Failure = "suspect"      // a feed that is broken or has lost all its entries
	FailureUnasked     Failure = "unasked-304"  // a 304 to an unconditional request
	FailureProtocol    Failure = "protocol"     // not HTTP, or a status that no GET can have
	FailureStatus      Failure = "status"       // any other status: 206, 204, 4xx, 5xx
	FailureRateLimited Failure = "rate-limited" // 429
	FailureForbidden   Failure = "forbidden"    // 401, 402, 403, 407, 451
	FailureNotFound    Failure = "not-found"    // 404
	FailureGone        Failure = "gone"         // 410: automatic polling ends
	FailureNotShared   Failure = "not-shared"   // a shielded site answers one reader only: private, no-store, a redirect
	FailureStore       Failure = "store"        // the answer could not be made durable
	FailureInternal    Failure = "internal"     // the gateway itself failed at the answer
)

// Never is the next poll of a feed whose automatic polling has ended.
var Never = time.Date(9999, time.December, 31, 0, 0, 0, 0, time.UTC)

// Decision is the time of the next poll, with every hint that was considered.
type Decision struct {
	At       time.Time     `json:"at"`       // what the interval counts from: the end of the poll
	Next     time.Time     `json:"next"`     // when the feed may be polled again; Never after a 410
	Interval time.Duration `json:"interval"` // from At to Next; the longest Duration there is where Next is Never
	Winner   string        `json:"winner"`   // the Hint of the term that set Next

	// Base is the interval after a good answer, before jitter, skip windows and
	// holds: what back-off doubles. [History.Decided] keeps it. Zero after a failure.
	Base time.Duration `json:"base,omitempty"`

	Considered []Term `json:"considered"`
}

// Term is one thing that a decision considered.
type Term struct {
	Hint    string `json:"hint"`          // a short token: max-age, ttl, skip-hours, retry-after, back-off, floor, ...
	Raw     string `json:"raw,omitempty"` // the value as given
	Seconds int64  `json:"seconds"`       // what it asks for, from the end of the poll; 0 where it is no length
	Used    bool   `json:"used"`          // whether it shaped the result
	Note    string `json:"note,omitempty"`
}

// History is what is remembered of a feed between polls, for decisions. It is
// stored with the feed: hints outlive a 304, a failure and a restart.
type History struct {
	Hints     Hints         `json:"hints"`
	Malformed []Term        `json:"malformed,omitempty"` // hints of the document that were no use, with the reason
	Freshness Freshness     `json:"freshness"`
	Rhythm    Rhythm        `json:"rhythm"`
	Validated bool          `json:"validated,omitempty"` // the last good 200 carried validators, see ValidatorsOf
	Unheeded  int           `json:"unheeded,omitempty"`  // conditional polls in a row that brought a full 200 with the same meaning
	Answered  bool          `json:"answered,omitempty"`  // there was a good answer once
	Failures  int           `json:"failures,omitempty"`  // failed polls in a row
	Unsent    int           `json:"unsent,omitempty"`    // polls in a row of which nothing was sent: no failures of the feed
	Interval  time.Duration `json:"interval,omitempty"`  // of the last decision after a good answer, before jitter and skip windows
}

// Freshness is the freshness lifetime that an origin's headers gave (RFC 9111 section 4.2).
type Freshness struct {
	Source   string        `json:"source,omitempty"` // s-maxage, max-age or expires; empty: none was given
	Raw      string        `json:"raw,omitempty"`    // the field that said so
	Lifetime time.Duration `json:"lifetime,omitempty"`
	Age      time.Duration `json:"age,omitempty"` // how much of it had passed when the answer arrived
}

// Rhythm is how often a feed's entries appear.
type Rhythm struct {
	Entries int           `json:"entries,omitempty"`
	Newest  time.Time     `json:"newest,omitzero"`
	Median  time.Duration `json:"median,omitempty"` // gap between neighbouring entries; 0: not known
}

// MaxValidators is how long an origin's validators may be together, in bytes. They
// are stored and sent with each poll; real ones have less than a hundred.
const MaxValidators = 2048
