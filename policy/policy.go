// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

// Package policy decides when a feed may be polled next.
//
// It is arithmetic without I/O and without a clock. [Decide] takes an operator's
// [Rules], the [History] of a feed and the [Answer] of its origin, and returns a
// [Decision], which records every hint considered and the one that won. HTTP hints are
// read here (RFC 9110, RFC 9111, the RateLimit drafts), those of the document by the
// package document below this one. The tokens that a decision may contain are in term.go.
//
// It does not fetch, store or schedule anything.
package policy

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/feedpollard/pollard/internal/feedurl"
)

// Rules are the operator's settings for one feed. A zero field is a setting of zero;
// defaults come from [DefaultRules].
type Rules struct {
	// MinInterval is the floor: no hint makes polls more frequent than this.
	MinInterval time.Duration
	// DefaultInterval applies if there is neither a hint nor a posting rhythm.
	DefaultInterval time.Duration
	// UnvalidatedInterval is the longest floor for a feed whose origin gives neither
	// validators nor an explicit hint. The floor is shorter if its entries come more often.
	UnvalidatedInterval time.Duration
	// MaxInterval caps what hints and back-off can ask for. Retry-After, RateLimit,
	// skip windows, completed shows and a 410 may exceed it.
	MaxInterval time.Duration
	// Jitter is the largest fraction added to an interval, upward only; 0 adds nothing.
	Jitter float64
	// OwnSite says that the origin is a site of this process. Only HTTP freshness, Retry-After and
	// rate limits decide when it is polled; the hints of its documents are for readers, see
	// [History.ReadersUntil]. After failures it is polled every 10 minutes at least, unless
	// MinInterval is longer.
	OwnSite bool
	// Timeout bounds one poll, its redirects included.
	Timeout time.Duration
	// MaxBody is the largest body accepted, in bytes after decoding.
	MaxBody int64
}

// DefaultRules returns the rules of a gateway without configuration.
func DefaultRules() Rules {
	return Rules{
		MinInterval:         time.Hour,
		DefaultInterval:     time.Hour,
		UnvalidatedInterval: 24 * time.Hour,
		MaxInterval:         24 * time.Hour,
		Jitter:              0.10,
		Timeout:             30 * time.Second,
		MaxBody:             15 << 20,
	}
}

// Hints are the valid hints of a document, normalised, whether or not a decision uses
// them. An absent hint is zero and is left out of the JSON form.
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
	Self            string           `json:"self,omitempty"`             // the feed's URL as it gives it
}

// Document describes the document in one body.
type Document struct {
	Format      string // rss, atom or json
	Version     string // 0.91, 0.92, 1.0, 2.0, 0.3, 1.1, ...; empty if the document does not say
	Title       string // one short line; empty if it has none
	Hints       Hints
	Malformed   []Term // malformed hints: Hint, Raw and the reason in Note
	Rhythm      Rhythm
	Fingerprint Fingerprint
	IDs         []uint64 // hashes of what identifies its entries, in order; 0: nothing does
	Lenient     bool     // the document is not well-formed
	Unclosed    bool     // its end is missing, and entries may be missing with it
}

// UpdateFrequency is the Podcasting 2.0 tag of that name.
type UpdateFrequency struct {
	Text     string `json:"text,omitempty"`
	RRule    string `json:"rrule,omitempty"`   // RFC 5545, as written
	DTStart  string `json:"dtstart,omitempty"` // ISO 8601, as written
	Complete bool   `json:"complete,omitempty"`
}

// Validators are the ETag and Last-Modified of one 200 response: one set, kept byte for
// byte and bound to the URL of the response.
type Validators struct {
	URL          string `json:"url,omitempty"`
	ETag         string `json:"etag,omitempty"`
	LastModified string `json:"last_modified,omitempty"`
}

// Empty reports whether there is neither an ETag nor a Last-Modified.
func (v Validators) Empty() bool { return v.ETag == "" && v.LastModified == "" }

// ValidatorsOf returns the validators of a 200 response for the next request. A validator
// that is too long to be kept counts as absent.
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

// Ask describes one poll: a conditional GET. It contains nothing of a reader's request.
type Ask struct {
	URL         feedurl.URL
	Validators  Validators    // sent only to the URL that they are bound to
	StartBy     time.Time     // the request leaves by then or not at all; zero: no bound
	Timeout     time.Duration // for the whole poll, waiting for slots and for Hop excluded
	MaxBody     int64         // bytes after decoding
	Subscribers int           // number of readers, for the User-Agent; 0: left out
	Stranger    bool          // the feed counts for strangers: what is remembered of it is small

	// EndAtMove says that the poll ends at a permanent redirect of its URL, with FailureMoved:
	// what is there is another feed.
	EndAtMove bool
	// Hop is called before another redirect is followed, and waits until the URL and its host may be asked. An
	// error ends the poll, with FailureHeld and the wait. Nil: it may be asked at any time.
	Hop func(ctx context.Context, to feedurl.URL, host Host) (wait time.Duration, err error)
	// Large waits for room for a body of more than [SmallBody] bytes, of which size
	// bytes are to be held. It is asked once, when so many have arrived; the poll's
	// clock stands meanwhile. An error ends the poll there. Nil: there is always room.
	Large func(ctx context.Context, size int64) error
}

// MaxHopWait is how long a poll waits for the sites of its redirects in total. A claim lasts as long.
const MaxHopWait = 2 * time.Minute

// SmallBody is up to how many bytes a body needs no room of its own.
const SmallBody = 512 << 10

// Answer is the result of a poll.
type Answer struct {
	Asked time.Time // when the first request was sent, or a TLS handshake failed; zero: nothing reached the origin
	At    time.Time // when the poll ended: intervals count from here

	URL    string      // the URL that answered last
	Moves  []Move      // the redirects that were followed, in order
	Status int         // of the last response, 200 for a 203; 0: there was none
	Header http.Header // of the last response
	Body   []byte      // decoded, only with status 200; with FailureTruncated as much as has arrived
	Page   []byte      // decoded beginning of the body of a status that is a failure; nil: it was not read
	Wire   int64       // bytes of body received before decoding, over all hops

	// Failure is empty for a 200 with a complete body and for a 304 to a conditional request.
	Failure Failure
	Err     error // describes a failure for readers: the host and what happened, without URLs and secrets

	// Detail is what Err leaves out, for the log: one line, with redacted URLs, or empty.
	Detail string

	// NotBefore is the end of the longest pause that a host asked for, and Holder the token
	// of that pause. Zero: no host asked for a pause with an end.
	NotBefore time.Time
	Holder    string

	Private bool // a host of this poll is at a private address

	HeldFor time.Duration // with FailureHeld: until the redirect may be followed; 0 if it is not known

	Pauses []Pause                  // that sites asked for in this poll
	Good   []string                 // sites that answered well in it
	Hops   map[string]time.Duration // URLs that redirects led to, with how long they asked not to be asked again

	// Pointing says that another feed, which works, answers for this one from now on.
	Pointing bool
}

// Unsent reports whether nothing reached the origin: there was no address, no connection,
// or the poll was not started. Then the feed has not failed.
func (a Answer) Unsent() bool {
	return a.Asked.IsZero() && slices.Contains(unsent, a.Failure)
}

// unsent are the failures before a request is sent.
var unsent = []Failure{FailureNotStarted, FailureDNS, FailureConnect, FailureProxy, FailureTimeout, FailureAddress}

// Move is one redirect.
type Move struct {
	From   string `json:"from"`
	To     string `json:"to"`
	Status int    `json:"status"`
}

// Failure is the class of a failed poll; empty: it did not fail.
type Failure string

// The classes of failure. Their texts appear in logs, records and explanations.
const (
	FailureNone        Failure = ""
	FailureNotStarted  Failure = "not-started"  // nothing was sent: the slot came too late, the gateway is closing, or a certificate is not yet valid by the clock here
	FailureHeld        Failure = "held"         // a redirect led to a host whose turn came too late
	FailureMoved       Failure = "moved"        // a permanent redirect: the feed is at the URL of the last of Moves
	FailureDNS         Failure = "dns"          // the host has no address, or the lookup took too long
	FailureConnect     Failure = "connect"      // refused, unreachable; with Asked set: closed in the TLS handshake or without an answer
	FailureProxy       Failure = "proxy"        // the operator's proxy is away, or refuses to work
	FailureTLS         Failure = "tls"          // no acceptable certificate
	FailureTimeout     Failure = "timeout"      // no complete answer in time
	FailureAddress     Failure = "address"      // a private or otherwise forbidden address
	FailureRedirect    Failure = "redirect"     // a loop, too many hops, https to http, no Location
	FailureTruncated   Failure = "truncated"    // the body broke off
	FailureOversize    Failure = "oversize"     // larger than max_body
	FailureNotFeed     Failure = "not-feed"     // a 200 with something else than a feed, such as HTML, or with nothing
	FailureUnasked     Failure = "unasked-304"  // a 304 to an unconditional request
	FailureProtocol    Failure = "protocol"     // an answer that cannot be read: not HTTP, an impossible status, a content coding that is unknown or broken
	FailureStatus      Failure = "status"       // any other status: 206, 204, 4xx, 5xx
	FailureRateLimited Failure = "rate-limited" // 429
	FailureChallenge   Failure = "challenge"    // a check for browsers in place of the feed, by Cloudflare, Anubis and the like
	FailureForbidden   Failure = "forbidden"    // 401, 402, 403, 407, 451
	FailureNotFound    Failure = "not-found"    // 404
	FailureGone        Failure = "gone"         // 410: automatic polling ends
	FailureNotShared   Failure = "not-shared"   // a shielded site answers one reader only: private, no-store, a redirect
	FailureStore       Failure = "store"        // the answer could not be made durable
	FailureInternal    Failure = "internal"     // the gateway itself failed
)

// Never is the next poll of a feed whose automatic polling has ended.
var Never = time.Date(9999, time.December, 31, 0, 0, 0, 0, time.UTC)

// Decision is the time of the next poll, with every hint that was considered.
type Decision struct {
	At       time.Time     `json:"at"`       // what the interval counts from: the end of the poll
	Next     time.Time     `json:"next"`     // when the feed may be polled again; Never after a 410
	Interval time.Duration `json:"interval"` // from At to Next; the longest Duration if Next is Never
	Winner   string        `json:"winner"`   // the Hint of the term that set Next

	// Base is the interval after a good answer, before jitter, skip windows and
	// holds: what back-off doubles. [History.Decided] keeps it. Zero after a failure.
	Base time.Duration `json:"base,omitempty"`

	// NotBefore is the end of the longest pause that the origin has asked for, whatever
	// decided; zero if it has asked for none.
	NotBefore time.Time `json:"not_before,omitzero"`

	Considered []Term `json:"considered"`
}

// Term is one hint or setting that a decision considered.
type Term struct {
	Hint    string `json:"hint"`          // a short token: max-age, ttl, skip-hours, retry-after, back-off, floor, ...
	Raw     string `json:"raw,omitempty"` // the value as given
	Seconds int64  `json:"seconds"`       // the interval from the end of the poll; 0: it is not an interval
	Used    bool   `json:"used"`          // whether it had an effect on the result
	Note    string `json:"note,omitempty"`
}

// History is the part of a feed's record that decisions need. Hints outlive a 304, a
// failure and a restart.
type History struct {
	Hints     Hints         `json:"hints"`
	Malformed []Term        `json:"malformed,omitempty"` // malformed hints of the document, with the reason
	Freshness Freshness     `json:"freshness"`
	Rhythm    Rhythm        `json:"rhythm"`
	Validated bool          `json:"validated,omitempty"` // the last good 200 carried validators, see ValidatorsOf
	Unheeded  int           `json:"unheeded,omitempty"`  // conditional polls in a row with a full 200 and the same fingerprint
	Answered  bool          `json:"answered,omitempty"`  // there was a good answer
	Failures  int           `json:"failures,omitempty"`  // failed polls in a row
	Refusals  int           `json:"refusals,omitempty"`  // of them, refusals: 429 and the like
	Unsent    int           `json:"unsent,omitempty"`    // polls in a row that sent nothing: they are not failures of the feed
	Interval  time.Duration `json:"interval,omitempty"`  // of the last decision after a good answer, before jitter and skip windows
	News      time.Time     `json:"news,omitzero"`       // of the last poll, after the first, that brought other entries
}

// Freshness is the freshness lifetime that an origin's headers gave (RFC 9111 section 4.2).
type Freshness struct {
	Source   string        `json:"source,omitempty"` // s-maxage, max-age or expires; empty: none
	Raw      string        `json:"raw,omitempty"`    // the field
	Lifetime time.Duration `json:"lifetime,omitempty"`
	Age      time.Duration `json:"age,omitempty"` // when the response was received
	// Revalidate says that Cache-Control forbids caches to serve the response stale (RFC 9111 section 4.2.4).
	Revalidate bool `json:"revalidate,omitempty"`
}

// Rhythm is how often a feed's entries appear.
type Rhythm struct {
	Entries int           `json:"entries,omitempty"`
	Newest  time.Time     `json:"newest,omitzero"`  // when the newest entry was published
	Changed time.Time     `json:"-"`                // the latest date of an entry, of a change too
	Dated   int           `json:"dated,omitempty"`  // how many entries have a date
	Median  time.Duration `json:"median,omitempty"` // gap between neighbouring entries, of the newest 20; 0: not known
	IDs     uint32        `json:"ids,omitempty"`    // a sum over the IDs of the entries; 0: they have none
}

// MaxValidators is the longest total length of an origin's validators, in bytes. They
// are stored and sent with each poll; real ones have less than a hundred.
const MaxValidators = 2048
