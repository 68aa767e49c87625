// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

// Package status has the facts about feeds that people and programs are shown. Each
// fact has one type, one JSON form and one wording: pages and the admin API encode
// these types, and commands decode them.
//
// Times are RFC 3339, in UTC. Lengths of time are numbers of seconds, in fields whose
// names end in _seconds. URLs are [feedurl.Redacted], so they never show credentials.
package status

import (
	"encoding/json"
	"time"

	"github.com/feedpollard/pollard/internal/feedurl"
	"github.com/feedpollard/pollard/policy"
)

// Feed is the status of one feed. A list of feeds leaves out Versions, Subscribers,
// Readers and Refreshable.
type Feed struct {
	ID         string           `json:"id"`                  // of its record: 32 hexadecimal digits
	URL        feedurl.Redacted `json:"url"`                 // as readers know it
	Address    string           `json:"address,omitempty"`   // at a gateway, if its operator has chosen one
	Alias      feedurl.Redacted `json:"alias,omitempty"`     // the URL of the feed that answers for this one, as this one redirects there for good
	OverHTTP   bool             `json:"over_http,omitempty"` // its https URL redirects to http: others can read and change it on its way
	Title      string           `json:"title,omitempty"`     // from the document, on one short line
	State      State            `json:"state"`
	Configured bool             `json:"configured,omitempty"`
	Shield     bool             `json:"shield,omitempty"` // it is served by a shield

	NextPoll   time.Time     `json:"next_poll,omitzero"` // zero: never
	Winner     string        `json:"winner,omitempty"`   // the hint that set NextPoll
	Reason     Reason        `json:"reason,omitempty"`   // why NextPoll is not earlier
	Considered []policy.Term `json:"considered"`         // all terms of the decision
	Hints      policy.Hints  `json:"hints"`              // of the document
	Spacing    Seconds       `json:"spacing_seconds,omitempty"`
	Pause      *Pause        `json:"pause,omitempty"` // of the host, if that set NextPoll
	Push       *Push         `json:"push,omitempty"`  // nil: no hub was asked for pushes

	LastPoll    time.Time          `json:"last_poll,omitzero"`    // its end
	LastStatus  int                `json:"last_status,omitempty"` // 0: there was no response
	LastResult  Result             `json:"last_result,omitempty"`
	LastFailure policy.Failure     `json:"last_failure,omitempty"`
	LastError   string             `json:"last_error,omitempty"`
	Failures    int                `json:"failures,omitempty"`   // failed polls in a row
	Site        bool               `json:"site,omitempty"`       // the last response was a web page that names feeds
	SiteFeeds   []feedurl.Redacted `json:"site_feeds,omitempty"` // that the page names; a list of feeds leaves them out
	Polls       []Poll             `json:"polls,omitempty"`      // the last 32 at most, the oldest first
	Incident    *Incident          `json:"incident,omitempty"`   // the current or the last one, until 30 days after its end

	Version      uint64            `json:"version,omitempty"` // its number; 0: the feed has no version
	VersionSince time.Time         `json:"version_since,omitzero"`
	Validated    time.Time         `json:"validated,omitzero"` // when the origin last confirmed the version
	ETag         string            `json:"etag,omitempty"`     // of the identity representation, as readers see it
	ContentType  string            `json:"content_type,omitempty"`
	Vary         []string          `json:"vary,omitempty"` // request fields, in lower case, by which a shielded site says it varies the feed
	Entries      int               `json:"entries,omitempty"`
	Size         int               `json:"size,omitempty"`      // bytes, not compressed
	Validators   policy.Validators `json:"validators,omitzero"` // from the origin, byte for byte
	Versions     []Version         `json:"versions,omitempty"`  // the newest first

	LastAsked   time.Time `json:"last_asked,omitzero"` // by a reader
	Subscribers int64     `json:"subscribers,omitempty"`
	Readers     []Reader  `json:"readers,omitempty"`    // those with the most requests
	Refreshable time.Time `json:"refreshable,omitzero"` // when a poll by hand is allowed; zero: now
}

// Pause is a time in which feeds of a site are not polled, as it has refused a poll of one.
type Pause struct {
	New bool             `json:"new,omitempty"` // it holds for feeds alone that never gave a version
	URL feedurl.Redacted `json:"url,omitempty"` // of the feed whose poll was refused, for the operator; empty if it is not known
}

// Version is one content of a feed.
type Version struct {
	Since   time.Time `json:"since"`
	ETag    string    `json:"etag,omitempty"` // as readers see it
	Entries int       `json:"entries,omitempty"`
	Size    int       `json:"size,omitempty"` // bytes
}

// Poll is one of a feed's last polls.
type Poll struct {
	At     time.Time `json:"at"`               // its end, to the second
	Status int       `json:"status,omitempty"` // 0: there was no response
	Result Result    `json:"result"`
	Bytes  int64     `json:"bytes"`        // of body received
	Took   Seconds   `json:"took_seconds"` // to the millisecond, up to a minute
}

// Result is the outcome of a poll.
type Result string

// The results of a poll.
const (
	ResultNew       Result = "new"       // a new version
	ResultUnchanged Result = "unchanged" // a 304, or the content that is stored
	ResultMoved     Result = "moved"     // a permanent redirect: another feed answers for this one
	ResultHeld      Result = "held"      // a redirect that could not be followed yet
	ResultGone      Result = "gone"      // a 410
	ResultFailed    Result = "failed"
	ResultUnsent    Result = "unsent" // nothing was sent
)

// Results are all results.
var Results = []Result{ResultNew, ResultUnchanged, ResultMoved, ResultHeld, ResultGone, ResultFailed, ResultUnsent}

// Seconds is a length of time. Its JSON form is a number of seconds.
type Seconds time.Duration

func (s Seconds) MarshalJSON() ([]byte, error) { return json.Marshal(time.Duration(s).Seconds()) }

func (s *Seconds) UnmarshalJSON(text []byte) error {
	var seconds float64
	if err := json.Unmarshal(text, &seconds); err != nil {
		return err
	}
	*s = Seconds(seconds * float64(time.Second))
	return nil
}
