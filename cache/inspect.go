// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"cmp"
	"context"
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
	if s.Next.Year() >= 9999 {
		a.NextPoll = time.Time{}
	}
	if v := m.Version; s.Version != 0 {
		a.Version, a.VersionSince, a.ETag, a.ContentType = v.Number, v.Since, `"`+v.Tag+`"`, v.ContentType
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

// TooEarly says that a feed may not be polled by hand yet.
type TooEarly struct {
	Until time.Time
	Why   string
}

func (e *TooEarly) Error() string {
	return fmt.Sprintf("not before %s: %s", e.Until.UTC().Format(time.RFC3339), e.Why)
}

// Refresh polls a feed now, whatever its hints say, and waits for the outcome.
// Two things a person's wish does not override: the operator's floor, counted
// from the last poll, and what the origin has asked for in so many words. Then
// it fails with a [TooEarly].
func (c *Cache) Refresh(ctx context.Context, url string) (Account, error) {
	f := c.known(url)
	if f == nil {
		return Account{}, fmt.Errorf("%w: %s", ErrUnknownFeed, url)
	}
	s, now := f.state.Load(), c.now()
	if !s.due(now) {
		switch why := s.memo.Decision.Winner; {
		case why == policy.HintRetryAfter, why == policy.HintRateLimit, why == "store", strings.HasSuffix(why, "cooldown"):
			return Account{}, &TooEarly{s.Next, why}
		}
		if s.outstanding() {
			return Account{}, &TooEarly{s.Next, "a poll was reserved and its outcome is not known"}
		}
		floor := f.rules().MinInterval
		if until := s.memo.Last.At.Add(floor); until.After(now) {
			return Account{}, &TooEarly{until, "the last poll is less than min_interval ago"}
		}
	}
	fl, _ := f.board(true)
	if fl == nil {
		return Account{}, errors.New("the cache is closing")
	}
	fl.wait(ctx, coldPatience, now)
	return f.account(c.now()), nil
}

// Expire makes a feed due: the next reader who asks for it causes a poll. It is
// for a publisher who knows that a feed of a site in this process has changed.
func (c *Cache) Expire(key string) (Account, error) {
	f := c.known(key)
	if f == nil {
		return Account{}, fmt.Errorf("%w: %s", ErrUnknownFeed, key)
	}
	now := c.now()
	f.mu.Lock()
	f.expired.Store(true)
	if f.flight == nil { // otherwise when it has landed: it may have seen what was before
		f.postpone(f.state.Load(), now, hintRefresh)
	}
	f.mu.Unlock()
	return f.account(now), nil
}

// hintRefresh is the winner of a decision that [Cache.Expire] has overruled.
const hintRefresh = "refresh"

// Forget removes a feed and all that is known of it, or fails with
// [ErrUnknownFeed]. Its record goes too, so a reader who asks again causes a
// poll. A configured feed stays known, as one that has never been polled.
func (c *Cache) Forget(ctx context.Context, url string) error {
	f := c.known(url)
	if f == nil {
		return fmt.Errorf("%w: %s", ErrUnknownFeed, url)
	}
	// A poll under way would bring back what it knew.
	f.mu.Lock()
	fl := f.flight
	f.mu.Unlock()
	if fl != nil && !fl.wait(ctx, coldPatience, c.now()) {
		return fmt.Errorf("%s is being polled: try again in a minute", url)
	}
	if !f.pinned.Load() {
		return c.forget(ctx, []*Feed{f})
	}
	if err := c.store.Forget(ctx, []ID{f.id}); err != nil {
		return err
	}
	f.publish(&state{memo: memo{Asked: c.now()}}, nil)
	return nil
}
