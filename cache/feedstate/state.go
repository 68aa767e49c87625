// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

// Package feedstate is what is remembered of a feed: how the answer of a poll changes it
// ([State.ClassifyUnread], [State.ClassifyDocument], [State.Update]), when the feed is polled next
// ([State.Plan]), what people are shown ([State.StatusState]), and how it is written ([State.EncodeFeedState]).
//
// It is pure: no store, no clock, no network. It depends on its arguments alone.
package feedstate

import (
	"math"
	"time"

	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/cache/version"
	"github.com/feedpollard/pollard/internal/status"
	"github.com/feedpollard/pollard/policy"
	"github.com/feedpollard/pollard/policy/document/site"
)

// State is what is known of a feed. It is immutable once it is published: a change makes a new one.
// Its moments are elapsed times, as [Moment] has them.
type State struct {
	Recorded bool        // the store has a record
	Owner    store.Owner // that it counts for
	Askers   []Asker     // that asked in the last 30 days
	// Configured says that a node has the feed in its configuration, or one that points to it.
	Configured bool

	Points  string // URL of the feed that answers for this one; empty if it does itself
	Version uint64
	Due     time.Duration // when the next poll may be made; ended: never
	Poked   bool          // that is because of a poke, and not the last decision
	// First is when a reader first asked for it at its own address; [NeverGranted] if none has.
	First time.Duration
	Ended bool // automatic polling has ended

	// NotBefore is until when the origin asks not to be polled, whatever hint decides; 0: it does
	// not.
	NotBefore     time.Duration
	Granted       time.Duration // when the store granted the last poll
	Leased        bool          // it did so for a node; otherwise the URL was asked as that of a redirect, or may have been asked before a loss
	Gap           time.Duration // of a poll under way: since the one before
	AskedByUser   bool          // of a poll under way: a feed reader whom the operator knows has asked for it
	Unconditional *policy.Term  // of a poll under way: why it is unconditional although there are validators; nil: it is not

	Last  pollState
	Feed  feedState
	saved uint64 // hash of the feedState as it is stored; 0: it is not

	Response *version.Response // to requests for the version; nil: there is none
	// Unstored is the version if the store has no room for it; nil: the store has it.
	Unstored *version.Representation
	Size     int64 // what it takes of the memory's budget, in bytes, roughly
}

// Asker is an owner that asked for the feed, and the last day on which it did, counted from 1970.
type Asker struct {
	Owner store.Owner
	Day   int64
}

// Moment is when an outcome is made, and what it depends on besides the feed and the answer.
type Moment struct {
	Wall    time.Time
	Elapsed time.Duration // as the engine counts: without steps of the wall clock
	Random  float64       // from 0 to 1, for jitter
}

// pollState is what each poll changes. It is stored apart from the rest (store.Record.PollState), so
// that an unchanged feed costs the store little.
type pollState struct {
	At      time.Time      `json:"at,omitzero"` // end of the last poll
	Status  int            `json:"status,omitempty"`
	Result  status.Result  `json:"result,omitempty"`
	Failure policy.Failure `json:"failure,omitempty"`
	Error   string         `json:"error,omitempty"`
	// FailingSince is the first failure since the last good answer.
	FailingSince time.Time `json:"failing_since,omitzero"`

	// Validated is when the origin last confirmed or replaced the version.
	Validated time.Time `json:"validated,omitzero"`
	// Confirmed is for how long the origin has answered 304 alone, as of the last poll.
	Confirmed time.Duration `json:"confirmed_for,omitempty"`
	// Unclosed counts 200s in a row whose document had no end, and Emptied says that the last one was the
	// first without entries: such a document takes the place of the version if it comes twice in a row.
	Unclosed int  `json:"unclosed,omitempty"`
	Emptied  bool `json:"emptied,omitempty"`
	// Errors is for how long all polls were conditional, and failed, since an unconditional one that their errors
	// have caused; 0: they have caused none.
	Errors time.Duration `json:"errors_for,omitempty"`

	// Unserved counts failed polls, since the last good one, that readers asked for whom the operator knows.
	Unserved int `json:"unserved,omitempty"`

	// Of the decision.
	Decided time.Time     `json:"decided,omitzero"`
	Pause   time.Duration `json:"pause,omitempty"`  // to the next poll
	Winner  string        `json:"winner,omitempty"` // the hint that won
	Jitter  policy.Term   `json:"jitter,omitzero"`

	Polls polls `json:"polls,omitempty"`

	// Site is the last 200 that was a web page naming feeds, instead of a feed.
	Site *site.Page `json:"site,omitempty"`
}

// feedState is what seldom changes (store.Record.FeedState).
type feedState struct {
	Groups []groupDay `json:"groups,omitempty"`
	// Alias is what Points was in version 2 of the tables.
	Alias string `json:"alias,omitempty"`
	// Pointing is what is known of Points, and Named the address that the feed's document names.
	Pointing pointing `json:"pointing,omitzero"`
	Named    named    `json:"named,omitzero"`
	// Validators are the origin's, for the next conditional request.
	Validators policy.Validators `json:"validators,omitzero"`

	Version storedVersion `json:"version,omitzero"`
	// Inherited is of the edition before: the version is of an earlier form of the origin block of a shield.
	Inherited bool `json:"inherited,omitempty"`
	// Past are the versions before it that readers may still hold, the newest first.
	Past []past `json:"past,omitempty"`

	Linked HubTopic     `json:"linked,omitzero"` // by Link fields of the last 200
	Push   Subscription `json:"push,omitzero"`

	History    policy.History `json:"history"`
	Considered []policy.Term  `json:"considered,omitempty"` // of the last decision

	// Incident is the current or the last one.
	Incident status.Incident `json:"incident,omitzero"`
}

// past is what is remembered of an earlier version: what readers have of it.
type past struct {
	Tag          string    `json:"tag"`
	LastModified time.Time `json:"last_modified"`
}

// maxPast is how many earlier versions are remembered: those of a day or two of a
// busy feed.
const maxPast = 16

// Decision is the last one, as it was made.
func (s *State) Decision() policy.Decision {
	d := policy.Decision{At: s.Last.Decided, Interval: s.Last.Pause, Winner: s.Last.Winner, Considered: s.Feed.Considered}
	if s.Last.Jitter.Hint != "" {
		d.Considered = append(d.Considered[:len(d.Considered):len(d.Considered)], s.Last.Jitter)
	}
	switch {
	case d.At.IsZero():
	case s.Ended:
		d.Next = policy.Never
	default:
		d.Next = d.At.Add(d.Interval)
	}
	return d
}

// decide records a decision. The jitter stands apart, as it is another one each time.
func (s *State) decide(d policy.Decision) {
	s.Last.Decided, s.Last.Pause, s.Last.Winner, s.Last.Jitter = d.At, d.Interval, d.Winner, policy.Term{}
	s.Feed.Considered = nil
	for _, t := range d.Considered {
		if t.Hint == policy.HintJitter {
			s.Last.Jitter = t
		} else {
			s.Feed.Considered = append(s.Feed.Considered, t)
		}
	}
	s.Ended = d.Next.Equal(policy.Never)
}

// NeverGranted is long before the process began.
const NeverGranted = math.MinInt64 / 2

// DueAt reports whether the feed may be polled.
func (s *State) DueAt(now time.Duration) bool { return !s.Ended && now >= s.Due }

// DropVersion leaves the state without a version.
func (s *State) DropVersion() {
	s.Version, s.Response = 0, nil
	s.KeepUnstored(nil)
}

// KeepUnstored has the state keep the body of the version, as the store has no room for it. Nil: it has.
func (s *State) KeepUnstored(body *version.Representation) {
	if s.Unstored != nil {
		s.Size -= s.Unstored.Size
	}
	if body != nil {
		s.Size += body.Size
	}
	s.Unstored = body
}
