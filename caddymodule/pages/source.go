// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/feedpollard/pollard/internal/feedurl"
	"github.com/feedpollard/pollard/policy"
)

// Source is what pages show. Its methods may be called concurrently. What they
// return is not changed any more. An error that is none of those below is logged,
// not shown.
type Source interface {
	// Summary says how many feeds there are, at once: it is asked for by each page.
	Summary(ctx context.Context) (Summary, error)

	// Feeds lists feeds; see [Select] for what a query means.
	Feeds(ctx context.Context, q Query) (FeedList, error)

	// Feed tells all that is known of a feed, or fails with [ErrUnknown].
	Feed(ctx context.Context, which Which) (Account, error)

	// Refresh polls a feed now, if its rules allow a poll by hand. It waits for the
	// outcome. It fails with [ErrUnknown] or [*TooEarly].
	Refresh(ctx context.Context, which Which) (Result, error)

	// Readers tells who polls, at most so many readers by requests and by bytes.
	Readers(ctx context.Context, limit int) (Readers, error)

	// Savings tells what origins were spared, with at most so many of them.
	Savings(ctx context.Context, limit int) (Savings, error)

	// Poller says who polls and how often, for publishers.
	Poller(ctx context.Context) (Poller, error)

	// Host tells how a host is polled, or fails with [ErrUnknown]. It is shown to
	// anyone who names the host: no feed, no reader and no error text is in it.
	Host(ctx context.Context, host string) (Host, error)
}

// ErrUnknown reports that there is no record of what was asked for.
var ErrUnknown = errors.New("pages: no record")

// TooEarly reports that a feed may not be polled yet, not even by hand.
type TooEarly struct{ Until time.Time }

// Error implements error.
func (e *TooEarly) Error() string {
	return fmt.Sprintf("not to be polled before %s", e.Until.UTC().Format(time.RFC3339))
}

// Address is a URL. Shown or encoded it hides what may be a credential: a page and
// its JSON cannot tell a secret by oversight.
type Address string

// String returns the URL without credentials.
func (a Address) String() string { return feedurl.Redact(string(a)) }

// MarshalText implements [encoding.TextMarshaler].
func (a Address) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// Open reports whether the URL has nothing to hide.
func (a Address) Open() bool { return a.String() == string(a) }

// Which names a feed: by its URL or, where that must not be shown, by its ID.
type Which struct{ URL, ID string }

// State is the condition that a feed is in.
type State string

// The states of a feed.
const (
	StateFresh   State = "fresh"   // the last poll was good, and the next is not due
	StateDue     State = "due"     // it may be polled when somebody asks
	StateWaiting State = "waiting" // its site has asked for a pause
	StateFailing State = "failing" // the last poll failed
	StateGone    State = "gone"    // the site has said 410: it is not polled any more
	StateCold    State = "cold"    // there is no version yet
	StateNoFeed  State = "no-feed" // an address that never gave a feed: a web page, a 404
)

// states in the order in which they are told.
var states = []State{StateFresh, StateDue, StateWaiting, StateFailing, StateGone, StateCold, StateNoFeed}

// Word is the state as people read it.
func (s State) Word() string { return strings.ReplaceAll(string(s), "-", " ") }

// Result is what came of a poll.
type Result string

// The results of a poll. Others are shown as they are.
const (
	ResultNew       Result = "new"
	ResultUnchanged Result = "unchanged"
	ResultMoved     Result = "moved"
	ResultGone      Result = "gone"
	ResultFailed    Result = "failed"
	ResultUnsent    Result = "unsent" // nothing left this host
)

// Summary is figures of the whole.
type Summary struct {
	Feeds   map[State]int64 `json:"feeds"`
	Offline bool            `json:"offline,omitempty"` // no site can be reached
	Outage  string          `json:"outage,omitempty"`  // what is wrong with the store; shown to members
}

// Feed is what a list says of a feed.
type Feed struct {
	ID       string    `json:"id"`
	URL      Address   `json:"url"`
	Title    string    `json:"title,omitempty"` // empty: the URL stands for it
	State    State     `json:"state"`
	Failures int       `json:"failures,omitempty"`
	NextPoll time.Time `json:"next_poll,omitzero"` // zero: never
	Winner   string    `json:"winner,omitempty"`   // the hint that set NextPoll
	Reason   Reason    `json:"reason,omitempty"`   // why it waits until then
	Status   int       `json:"last_status,omitempty"`
	Since    time.Time `json:"version_since,omitzero"` // when the version appeared; zero: there is none
	Polls    []Poll    `json:"polls,omitempty"`        // the last 32 at most, the oldest first
}

// Reason is what [policy.Reason] says of a feed, in JSON as one text.
type Reason []policy.Part

// String returns the whole text.
func (r Reason) String() string {
	var b strings.Builder
	for _, part := range r {
		b.WriteString(part.Text)
	}
	return b.String()
}

// MarshalText implements [encoding.TextMarshaler].
func (r Reason) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// Poll is one of a feed's last polls.
type Poll struct {
	At     time.Time     `json:"at"`
	Status int           `json:"status,omitempty"`
	Result Result        `json:"result"`
	Bytes  int64         `json:"bytes"`
	Took   time.Duration `json:"took"` // nanoseconds
}

// Account is all that is known of a feed.
type Account struct {
	Feed
	Alias       Address       `json:"alias,omitempty"` // what it has become by a permanent redirect
	Configured  bool          `json:"configured,omitempty"`
	LastPoll    time.Time     `json:"last_poll,omitzero"`
	LastResult  Result        `json:"last_result,omitempty"`
	LastError   string        `json:"last_error,omitempty"`
	LastAsked   time.Time     `json:"last_asked,omitzero"` // by a reader
	Validated   time.Time     `json:"validated,omitzero"`  // when the origin last confirmed the version
	Considered  []policy.Term `json:"considered"`
	Self        Address       `json:"self,omitempty"`         // the feed's own idea of its URL
	NewFeedURL  Address       `json:"new_feed_url,omitempty"` // itunes:new-feed-url
	Hubs        []Address     `json:"hubs,omitempty"`
	ContentType string        `json:"content_type,omitempty"`
	OriginETag  string        `json:"origin_etag,omitempty"` // the validators that the origin gave, byte for byte
	OriginDate  string        `json:"origin_last_modified,omitempty"`
	Versions    []Version     `json:"versions,omitempty"` // the newest first
	Readers     []Reader      `json:"readers,omitempty"`  // those with the most requests
	Subscribers int64         `json:"subscribers,omitempty"`
	Refreshable time.Time     `json:"refreshable,omitzero"` // when a poll by hand is allowed; zero: now

	Body []byte `json:"-"` // of the version that is served, identity coding
}

// Version is one content of a feed.
type Version struct {
	Since   time.Time `json:"since"`
	ETag    string    `json:"etag,omitempty"` // as readers see it
	Entries int       `json:"entries,omitempty"`
	Size    int64     `json:"size,omitempty"`
}

// Reader is who polls: a User-Agent family, or one reader of a feed.
type Reader struct {
	Family           string        `json:"family"`
	UserAgent        string        `json:"user_agent"` // of the latest request
	Network          string        `json:"network,omitempty"`
	Token            string        `json:"token,omitempty"` // its name
	Feeds            int64         `json:"feeds,omitempty"`
	Subscribers      int64         `json:"subscribers,omitempty"` // as declared
	Requests         int64         `json:"requests"`
	Bytes            int64         `json:"bytes"`
	ShareConditional float64       `json:"share_conditional"` // 0 to 1, of its requests
	MedianGap        time.Duration `json:"median_gap"`        // nanoseconds; 0: not known
	Score            string        `json:"score"`             // A to F, "-": too few requests
	Reasons          []string      `json:"reasons,omitempty"`
}

// Readers is who polls.
type Readers struct {
	Since    time.Time `json:"since,omitzero"`
	Readers  int64     `json:"readers"`
	Requests int64     `json:"requests"`
	Bytes    int64     `json:"bytes"`

	Judged int64 `json:"judged"` // those with enough requests to judge
	// Of them: who never sends a conditional request.
	Unconditional      int64 `json:"unconditional"`
	UnconditionalBytes int64 `json:"unconditional_bytes"`

	Hours      [24]int64 `json:"hours"` // requests by hour of day, GMT
	ByRequests []Reader  `json:"by_requests"`
	ByBytes    []Reader  `json:"by_bytes"`
}

// Savings is what origins were spared.
type Savings struct {
	Total   Traffic         `json:"total"`
	Days    []DayTraffic    `json:"days"` // the oldest first, without gaps, the last one unfinished
	Origins []OriginTraffic `json:"origins"`
}

// Traffic is what readers asked for, and what of it reached origins.
type Traffic struct {
	Requests int64 `json:"requests"` // of readers
	Polls    int64 `json:"polls"`
	Served   int64 `json:"served_bytes"`  // to readers
	Fetched  int64 `json:"fetched_bytes"` // from origins
}

// Spared is how many requests did not reach an origin.
func (t Traffic) Spared() int64 { return max(t.Requests-t.Polls, 0) }

// SparedBytes is how many bytes origins did not have to send.
func (t Traffic) SparedBytes() int64 { return max(t.Served-t.Fetched, 0) }

// DayTraffic is the traffic of a day.
type DayTraffic struct {
	Day time.Time `json:"day"` // its beginning, GMT
	Traffic
}

// OriginTraffic is the traffic of feeds of one origin.
type OriginTraffic struct {
	Origin Address `json:"origin"` // https://example.com
	Traffic
}

// Poller is who polls, and how often.
type Poller struct {
	Contact     string // a URL or mail address; empty: the operator gave none
	UserAgent   string // as sent
	MinInterval time.Duration
	MaxInterval time.Duration
	Spacing     time.Duration // between two polls of a host
	Concurrency int           // polls of a host at a time
}

// Host is how one host is polled.
type Host struct {
	Name      string
	Feeds     int64
	Since     time.Time // what the figures below count from
	Polls     int64
	Unchanged int64 // of these: answered without a new version
	Failed    int64
	Bytes     int64 // received
	LastPoll  time.Time
	Status    int       // of the last answer
	NextPoll  time.Time // zero: none is planned
	Paused    time.Time // until then, as the host has asked; zero: it is not
}

// Site is a page that is no feed, and the feeds that it names.
type Site struct {
	URL     Address `json:"url"`
	Title   string  `json:"title,omitempty"`
	Feeds   []Found `json:"feeds,omitempty"`
	Problem string  `json:"problem,omitempty"` // why there are none: a sentence
}

func (s Site) name() string {
	if s.Title != "" {
		return s.Title
	}
	return s.URL.String()
}

// Found is a feed that a site names, or that was asked for itself.
type Found struct {
	URL   string `json:"url"` // canonical; its finder has just written it, so it is shown whole
	Title string `json:"title,omitempty"`
	Type  string `json:"type,omitempty"` // media type as the site names it: application/atom+xml
}
