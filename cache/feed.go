// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"encoding/binary"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/feedpollard/pollard/policy"
)

// Feed is one origin URL and all that is known of it. A handle stays valid for
// the life of the cache.
type Feed struct {
	cache  *Cache
	id     ID
	key    uint64 // of the memory
	url    string // canonical
	state  atomic.Pointer[state]
	minted atomic.Pointer[minted]
	asked  atomic.Int64         // when a reader asked last, in Unix seconds
	site   atomic.Pointer[Site] // of a shielded feed, for its next poll; nil: not known
	// expired says that somebody knows the version to be out of date: the next poll
	// waits for nothing.
	expired atomic.Bool
	// forgotten says that the feed has left the table: another one takes its place.
	forgotten atomic.Bool

	mu     sync.Mutex // guards flight
	flight *flight

	place int       // on the agenda, -1: not on it; guarded by the agenda's lock
	when  time.Time // as it stands there; likewise
}

// URL is the feed's canonical URL, as it was asked for or configured.
func (f *Feed) URL() string { return f.url }

// shielded reports whether the feed comes from a site of this process.
func (f *Feed) shielded() bool { return !strings.HasPrefix(f.url, "http") }

// origin is where the feed is polled; nil while nobody has said it.
func (f *Feed) origin() Origin {
	if !f.shielded() {
		return f.cache.origin
	}
	if site := f.site.Load(); site != nil {
		return *site
	}
	return nil
}

// rules are the operator's for this feed.
func (f *Feed) rules() policy.Rules {
	if site := f.site.Load(); site != nil {
		return (*site).Rules()
	}
	return f.cache.settings.Load().Rules(f.url)
}

// pinned reports whether the feed is configured: it is never forgotten then.
func (f *Feed) pinned() bool { return f.cache.settings.Load().pinned[f.url] }

// Due reports whether a reader who asks now causes a poll.
func (f *Feed) Due() bool { return f.state.Load().due(f.cache.now()) }

// Hints are what the feed's document says.
func (f *Feed) Hints() *policy.Hints { return &f.state.Load().memo.History.Hints }

// Vary is the header fields of requests, in lower case, by which the origin of a
// shielded feed tells its readers apart.
func (f *Feed) Vary() []string { return f.state.Load().memo.Version.Vary }

func newFeed(c *Cache, url string, s *state) *Feed {
	f := &Feed{cache: c, id: idOf(url), url: url, place: -1}
	f.key = binary.LittleEndian.Uint64(f.id[:])
	f.state.Store(s)
	f.asked.Store(s.memo.Asked.Unix())
	return f
}

// state is a snapshot of a feed. It is immutable: a poll publishes a new one.
type state struct {
	Schedule
	memo memo
}

// due reports whether the feed may be polled.
func (s *state) due(now time.Time) bool { return !now.Before(s.Next) }

// never reports whether automatic polling has ended.
func (s *state) never() bool { return ended(s.Next) }

// ended reports whether a time stands for [policy.Never].
func ended(next time.Time) bool { return next.Year() >= policy.Never.Year() }

// planned is the pause that was decided after the last poll.
func (s *state) planned() time.Duration {
	if d := s.memo.Decision; !d.At.IsZero() {
		return d.Next.Sub(d.At)
	}
	return policy.DefaultRules().MinInterval // reserved, and nothing known since
}

// outstanding reports whether the schedule comes from a reservation that no
// outcome has followed: a poll may have been made whose end nobody knows.
func (s *state) outstanding() bool {
	return s.Token != 0 && s.Next.Sub(s.memo.Decision.Next).Abs() > time.Second
}

// memo is what the store keeps of a feed besides its schedule and body.
type memo struct {
	// Effective is where polls go since a permanent redirect was adopted; empty: to the feed's URL.
	Effective string `json:"effective,omitempty"`
	// Final is the URL that gave the last good answer.
	Final string `json:"final,omitempty"`
	// Moved is a permanent redirect that has not held long enough to be adopted.
	Moved moved `json:"moved,omitzero"`
	// Validators are the origin's, for the next conditional request.
	Validators policy.Validators `json:"validators,omitzero"`
	// Unmatched counts polls in a row whose If-None-Match named the very ETag that
	// the answer bore, with the same bytes: the origin does not know its own ETag.
	Unmatched int `json:"unmatched,omitempty"`
	// Muted is until when the ETag is left out of conditional requests therefore.
	Muted time.Time `json:"muted,omitzero"`

	Version version `json:"version,omitzero"`
	// Past are the versions before it that readers may still hold, the newest first.
	Past []past `json:"past,omitempty"`

	History  policy.History  `json:"history"`
	Decision policy.Decision `json:"decision"`
	Last     last            `json:"last,omitzero"`
	Pause    pause           `json:"pause,omitzero"`

	// Withdrawn says that the version, which the store still has, is not for
	// everybody any more.
	Withdrawn bool `json:"withdrawn,omitempty"`
	// Suspect is since when answers have been kept back as suspect.
	Suspect time.Time `json:"suspect,omitzero"`
	// Validated is when the origin last confirmed or replaced the version.
	Validated time.Time `json:"validated,omitzero"`
	// Asked is when a reader asked for the feed, as of the last commit.
	Asked time.Time `json:"asked,omitzero"`
}

// past is what is remembered of an earlier version: what readers have of it.
type past struct {
	Tag          string    `json:"tag"`
	LastModified time.Time `json:"last_modified"`
}

// maxPast is how many earlier versions are remembered: those of a day or two of a
// busy feed.
const maxPast = 16

// moved is a permanent redirect and since when it has been seen without a break.
type moved struct {
	To    string    `json:"to"`
	Since time.Time `json:"since"`
}

// last is the last answer, for explanations.
type last struct {
	At      time.Time      `json:"at"`
	Status  int            `json:"status,omitempty"`
	Result  Result         `json:"result"`
	Failure policy.Failure `json:"failure,omitempty"`
	Error   string         `json:"error,omitempty"`
}

// pause is a cool-down of the feed's host that outlives a restart.
type pause struct {
	Until time.Time `json:"until"`
	Why   string    `json:"why"`
}

// target is the URL that a poll asks.
func (f *Feed) target(s *state) string {
	if s.memo.Effective != "" {
		return s.memo.Effective
	}
	return f.url
}

func decodeRecord(r Record) (*state, error) {
	s := &state{Schedule: r.Schedule}
	if len(r.Memo) > 0 {
		if err := s.memo.decode(r.Memo); err != nil {
			return nil, fmt.Errorf("decoding memo: %w", err)
		}
	}
	if s.memo.Withdrawn {
		s.Version = 0
	}
	return s, nil
}

// unreadable is the state of a feed whose memo makes no sense. Its schedule holds
// all the same; its version, of which nothing is known, has to be fetched anew.
func unreadable(r Record, err error) *state {
	s := &state{Schedule: r.Schedule}
	s.memo.Version.Number, s.Version = r.Version, 0
	s.memo.Last = last{Result: ResultFailed, Failure: policy.FailureStore, Error: err.Error()}
	return s
}
