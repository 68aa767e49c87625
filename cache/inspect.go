// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"strings"
	"time"

	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/policy"
)

// Account is all that is known of a feed, for people: why it waits, and what
// its origin said last.
type Account struct {
	URL          string            `json:"url"`
	Alias        string            `json:"alias,omitempty"` // the feed that this one has become by an adopted redirect
	Title        string            `json:"title,omitempty"` // as the feed gives it, one short line
	State        string            `json:"state"`           // fresh, due, failing, gone, cold
	Condition    string            `json:"condition"`       // the state for people, see [conditionOf]
	NextPoll     time.Time         `json:"next_poll,omitzero"`
	Winner       string            `json:"winner,omitempty"`
	Considered   []policy.Term     `json:"considered"`
	Hints        policy.Hints      `json:"hints"`
	LastPoll     time.Time         `json:"last_poll,omitzero"`
	LastStatus   int               `json:"last_status,omitempty"`
	LastResult   Result            `json:"last_result,omitempty"`
	LastFailure  policy.Failure    `json:"last_failure,omitempty"`
	LastError    string            `json:"last_error,omitempty"`
	Failures     int               `json:"failures,omitempty"`
	Site         bool              `json:"site,omitempty"`     // it never was a feed, and is a web page that names some
	Validated    time.Time         `json:"validated,omitzero"` // when the origin last confirmed the version
	Version      uint64            `json:"version,omitempty"`
	VersionSince time.Time         `json:"version_since,omitzero"`
	ETag         string            `json:"etag,omitempty"` // of the identity representation
	ContentType  string            `json:"content_type,omitempty"`
	Entries      int               `json:"entries,omitempty"`
	Size         int               `json:"size,omitempty"`
	Validators   policy.Validators `json:"validators,omitzero"` // the origin's
	LastAsked    time.Time         `json:"last_asked,omitzero"`
	Configured   bool              `json:"configured,omitempty"`
	Polls        []PastPoll        `json:"polls,omitempty"` // the last ones, the oldest first

	Decision policy.Decision `json:"-"` // the last one
}

// Account describes one feed, or fails with [ErrUnknownFeed].
func (c *Cache) Account(ctx context.Context, key string) (Account, error) {
	f, err := c.existing(ctx, key)
	if err != nil {
		return Account{}, err
	}
	return f.account(), nil
}

// Accounts describes feeds in the order of their IDs, up to limit of them, from the
// first behind after. next is where to go on; more says whether there are others.
func (c *Cache) Accounts(ctx context.Context, after store.ID, limit int) (list []Account, next store.ID, more bool, err error) {
	records, err := c.store.Records(ctx, after, limit)
	if err != nil {
		return nil, after, false, err
	}
	now := c.elapsed()
	list = make([]Account, 0, len(records))
	for _, r := range records {
		next = r.ID
		list = append(list, c.accountOf(r, now))
	}
	return list, next, len(records) == limit, nil
}

// AccountsOf describes the feeds of these IDs that are known, in no particular order.
func (c *Cache) AccountsOf(ctx context.Context, ids []store.ID) ([]Account, error) {
	records, err := c.store.Lookup(ctx, ids)
	if err != nil {
		return nil, err
	}
	now := c.elapsed()
	list := make([]Account, 0, len(records))
	for _, r := range records {
		list = append(list, c.accountOf(r, now))
	}
	return list, nil
}

// accountOf describes a feed by its record, unless memory knows better.
func (c *Cache) accountOf(r store.Record, now time.Duration) Account {
	if f := c.table.known(r.URL); f != nil {
		return f.account()
	}
	a := c.account(r.URL, stateOf(r, now), now)
	if r.Asked >= 0 {
		a.LastAsked = c.now().Add(-r.Asked).UTC()
	}
	return a
}

// Keys are the keys of feeds that begin so, in no particular order. It reads all
// records.
func (c *Cache) Keys(ctx context.Context, prefix string) (keys []string) {
	for records := range store.Pages(ctx, c.store, glances) {
		for _, r := range records {
			if strings.HasPrefix(r.URL, prefix) {
				keys = append(keys, r.URL)
			}
		}
	}
	return keys
}

// Knows reports whether there is a feed of this key.
func (c *Cache) Knows(ctx context.Context, key string) bool {
	_, err := c.existing(ctx, key)
	return err == nil
}

// Changes is the usual time between two entries of a feed; 0: not known.
func (c *Cache) Changes(key string) time.Duration {
	if f := c.table.known(key); f != nil {
		return f.state.Load().memo.History.Rhythm.Median
	}
	return 0
}

func (f *Feed) account() Account {
	now := f.cache.elapsed()
	a := f.cache.account(f.key.text, f.state.Load(), now)
	if ago := f.sinceAsked(now); ago >= 0 {
		a.LastAsked = f.cache.now().Add(-ago).UTC()
	}
	return a
}

func (c *Cache) account(key string, s *state, now time.Duration) Account {
	m, f := &s.memo, &s.facts
	a := Account{
		URL: key, Alias: m.Alias, State: s.describe(now), Winner: f.Winner, Hints: m.History.Hints,
		LastPoll: f.At, LastStatus: f.Status, LastResult: f.Result, LastFailure: f.Failure, LastError: f.Error,
		Failures: m.History.Failures, Site: f.Site != nil && s.version == 0, Validated: f.Validated,
		Configured: c.settings.Load().configured[key], Polls: f.Polls.all(), Decision: s.decision(),
	}
	if !s.ended && s.due <= now && !shielded(key) {
		// It would be polled now, were it not for its host.
		if held := c.origin.Held(ParseKey(key).url); held != nil {
			overruled := *s
			overruled.overrule(c, held.Until.Sub(c.now()), held.Why)
			a.Decision, a.Winner = overruled.decision(), held.Why
			s = &overruled
		}
	}
	if a.Considered = a.Decision.Considered; a.Considered == nil {
		a.Considered = []policy.Term{}
	}
	if !s.ended {
		a.NextPoll = c.now().Add(s.due - now).UTC()
		if d := a.Decision.Next; d.Sub(a.NextPoll).Abs() < time.Second {
			a.NextPoll = d // the same moment, as it was decided
		}
	}
	noFeed := c.noFeed(key, s.version, f.Failure, a.Site)
	a.Condition = conditionOf(a.State, a.Winner, a.LastStatus, noFeed, !a.NextPoll.After(c.now()))
	if v := m.Version; s.version != 0 {
		a.Version, a.VersionSince, a.ETag, a.ContentType = s.version, v.Since, `"`+v.Tag+`"`, v.ContentType
		a.Title, a.Entries, a.Size, a.Validators = v.Title, v.Entries, v.Size, m.Validators
	}
	return a
}

// describe is the state for people, who also want to know what is due.
func (s *state) describe(now time.Duration) string {
	if c := s.condition(); c != store.StateFresh || !s.dueAt(now) {
		return string(c)
	}
	return "due"
}

// Summary is figures of the whole cache.
type Summary struct {
	Feeds   map[string]int64 `json:"feeds"` // by state
	Overdue int64            `json:"overdue"`
	Memory  int64            `json:"memory_bytes"` // what is held in memory
	Disk    int64            `json:"disk_bytes"`   // of bodies
	Polls   int              `json:"polls"`        // in flight
	Offline bool             `json:"offline,omitempty"`
	Outage  string           `json:"outage,omitempty"` // of the store
}

// summaryPatience is how long a summary waits for the store: that it does not answer is to
// be seen as well.
const summaryPatience = 5 * time.Second

// Summary returns figures that the store keeps; it counts nothing.
func (c *Cache) Summary(ctx context.Context) Summary {
	s := Summary{
		Feeds: map[string]int64{}, Memory: c.memory.used() + c.table.size.Load(), Polls: int(c.polls.Load().inFlight.Load()),
		Offline: c.network.down(), Outage: c.outage.text(),
	}
	ctx, cancel := context.WithTimeout(ctx, summaryPatience)
	defer cancel()
	totals, err := c.store.Totals(ctx)
	if err != nil && s.Outage == "" {
		s.Outage = line(err)
	}
	for state, n := range totals.Feeds {
		s.Feeds[string(state)] = n
	}
	if due := min(totals.Overdue, totals.Feeds[store.StateFresh]); due > 0 {
		s.Feeds["due"], s.Feeds[string(store.StateFresh)] = due, totals.Feeds[store.StateFresh]-due
	}
	s.Overdue, s.Disk = totals.Overdue, totals.Bytes
	return s
}
