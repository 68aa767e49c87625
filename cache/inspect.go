// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/feedpollard/pollard/policy"
)

// ErrUnknownFeed says that the cache knows no feed of this URL.
var ErrUnknownFeed = errors.New("no such feed")

// Account is all that is known of a feed, for people: why it waits, and what
// its origin said last.
type Account struct {
	URL          string            `json:"url"`
	Effective    string            `json:"effective,omitempty"` // where polls go after an adopted redirect
	State        string            `json:"state"`               // fresh, due, failing, gone, cold
	NextPoll     time.Time         `json:"next_poll,omitzero"`  // absent after a 410
	Winner       string            `json:"winner,omitempty"`
	Considered   []policy.Term     `json:"considered"`
	Hints        policy.Hints      `json:"hints"`
	LastPoll     time.Time         `json:"last_poll,omitzero"`
	LastStatus   int               `json:"last_status,omitempty"`
	LastResult   Result            `json:"last_result,omitempty"`
	LastFailure  policy.Failure    `json:"last_failure,omitempty"`
	LastError    string            `json:"last_error,omitempty"`
	Failures     int               `json:"failures,omitempty"`
	Validated    time.Time         `json:"validated,omitzero"` // when the origin last confirmed the version
	Version      uint64            `json:"version,omitempty"`
	VersionSince time.Time         `json:"version_since,omitzero"`
	ETag         string            `json:"etag,omitempty"` // of the identity representation
	ContentType  string            `json:"content_type,omitempty"`
	Entries      int               `json:"entries,omitempty"`
	Size         int               `json:"size,omitempty"`
	Validators   policy.Validators `json:"validators,omitzero"` // the origin's
	LastAsked    time.Time         `json:"last_asked,omitzero"`
}

// Account describes one feed, or fails with [ErrUnknownFeed].
func (c *Cache) Account(url string) (Account, error) {
	f := c.known(url)
	if f == nil {
		return Account{}, fmt.Errorf("%w: %s", ErrUnknownFeed, url)
	}
	return f.account(c.now()), nil
}

// Accounts describes all feeds, in the order of their URLs.
func (c *Cache) Accounts() []Account {
	all, now := []Account{}, c.now()
	c.feeds.Range(func(_, f any) bool {
		all = append(all, f.(*Feed).account(now))
		return true
	})
	slices.SortFunc(all, func(a, b Account) int { return cmp.Compare(a.URL, b.URL) })
	return all
}

// Keys are the keys of all feeds that begin so, in no particular order.
func (c *Cache) Keys(prefix string) (keys []string) {
	c.feeds.Range(func(key, _ any) bool {
		if strings.HasPrefix(key.(string), prefix) {
			keys = append(keys, key.(string))
		}
		return true
	})
	return keys
}

// Knows reports whether there is a feed of this key.
func (c *Cache) Knows(key string) bool { return c.known(key) != nil }

// Changes is the usual time between two entries of a feed; 0: not known.
func (c *Cache) Changes(key string) time.Duration {
	if f := c.known(key); f != nil {
		return f.state.Load().memo.History.Rhythm.Median
	}
	return 0
}

func (f *Feed) account(now time.Time) Account {
	s := f.state.Load()
	m := &s.memo
	a := Account{
		URL: f.url, Effective: m.Effective, State: s.condition(now), NextPoll: s.Next.UTC(),
		Winner: m.Decision.Winner, Considered: m.Decision.Considered, Hints: m.History.Hints,
		LastPoll: m.Last.At, LastStatus: m.Last.Status, LastResult: m.Last.Result,
		LastFailure: m.Last.Failure, LastError: m.Last.Error, Failures: m.History.Failures,
		Validated: m.Validated, LastAsked: time.Unix(f.asked.Load(), 0).UTC(),
	}
	if a.Considered == nil {
		a.Considered = []policy.Term{}
	}
	if s.never() {
		a.NextPoll = time.Time{}
	}
	if v := m.Version; s.Version != 0 {
		a.Version, a.VersionSince, a.ETag, a.ContentType = s.Version, v.Since, `"`+v.Tag+`"`, v.ContentType
		a.Entries, a.Size, a.Validators = v.Entries, v.Size, m.Validators
	}
	return a
}

func (s *state) condition(now time.Time) string {
	switch {
	case s.memo.Last.Failure == policy.FailureGone:
		return "gone"
	case s.memo.History.Failures > 0:
		return "failing"
	case s.Version == 0:
		return "cold"
	case s.due(now):
		return "due"
	}
	return "fresh"
}

// Totals are figures of the whole cache.
type Totals struct {
	Feeds  map[string]int `json:"feeds"`        // by state
	Memory int64          `json:"memory_bytes"` // cost of the hot representations
	Outage string         `json:"outage,omitempty"`
}

// Totals counts.
func (c *Cache) Totals() Totals {
	t := Totals{Feeds: map[string]int{}, Memory: c.memory.used(), Outage: c.outage.text()}
	now := c.now()
	c.feeds.Range(func(_, f any) bool {
		t.Feeds[f.(*Feed).state.Load().condition(now)]++
		return true
	})
	return t
}
