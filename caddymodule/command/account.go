// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"strconv"
	"time"

	"github.com/feedpollard/pollard/internal/feedurl"
	"github.com/feedpollard/pollard/policy"
)

// account is what the admin API says of a feed, as far as commands show it.
type account struct {
	URL          string            `json:"url"`
	Alias        string            `json:"alias"`
	Title        string            `json:"title"`
	State        string            `json:"state"`
	Condition    string            `json:"condition"` // empty: an older instance tells only the state
	NextPoll     time.Time         `json:"next_poll"` // zero: never
	Winner       string            `json:"winner"`
	Considered   []policy.Term     `json:"considered"`
	Hints        policy.Hints      `json:"hints"`
	LastPoll     time.Time         `json:"last_poll"`
	LastStatus   int               `json:"last_status"`
	LastResult   string            `json:"last_result"`
	LastFailure  string            `json:"last_failure"`
	LastError    string            `json:"last_error"`
	Failures     int               `json:"failures"`
	Site         bool              `json:"site"`
	Version      uint64            `json:"version"`
	VersionSince time.Time         `json:"version_since"`
	ContentType  string            `json:"content_type"`
	Entries      int               `json:"entries"`
	Size         int64             `json:"size"`
	Validators   policy.Validators `json:"validators"`
	LastAsked    time.Time         `json:"last_asked"`
	Polls        []pastPoll        `json:"polls"` // the oldest first
}

// pastPoll is one of a feed's last polls.
type pastPoll struct {
	At     time.Time     `json:"at"`
	Status int           `json:"status"`
	Result string        `json:"result"`
	Bytes  int64         `json:"bytes"`
	Took   time.Duration `json:"took"`
}

// stateNoFeed is the condition of an address that never gave a feed.
const stateNoFeed = "no-feed"

// state is the state for people.
func (a *account) state() string { return cmp.Or(a.Condition, a.State) }

// decision is the last decision, as far as the account has it.
func (a *account) decision() policy.Decision {
	d := policy.Decision{At: a.LastPoll, Next: a.NextPoll, Winner: a.Winner, Considered: a.Considered}
	if d.Next.IsZero() {
		d.Next = policy.Never
	}
	if !d.At.IsZero() {
		d.Interval = d.Next.Sub(d.At)
	}
	return d
}

// reason says why the next poll is when it is.
func (a *account) reason(now time.Time) string {
	f := policy.Facts{
		Now: now, Location: time.Local, Status: a.LastStatus, Error: a.LastError,
		Failures: a.Failures, Served: a.VersionSince, Target: a.Alias, Site: a.Site, NoFeed: a.state() == stateNoFeed,
	}
	if u, err := feedurl.Parse(a.URL); err == nil {
		f.Host = u.Name()
	}
	return plain(policy.Sentence(a.decision(), f))
}

// outcome is what the last poll came to, in a word.
func (a *account) outcome() string {
	switch {
	case a.LastPoll.IsZero():
		return "-"
	case a.LastStatus != 0:
		return strconv.Itoa(a.LastStatus)
	}
	return cmp.Or(a.LastFailure, a.LastResult, "-")
}
