// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/internal/feedurl"
	"github.com/feedpollard/pollard/internal/status"
	"github.com/feedpollard/pollard/policy"
)

// Status returns the status of a feed, or [ErrUnknownFeed]. Its URL is the feed's key,
// and it has no reason.
func (c *Cache) Status(ctx context.Context, key string) (status.Feed, error) {
	f, err := c.existing(ctx, key)
	if err != nil {
		return status.Feed{}, err
	}
	return f.status(), nil
}

// Statuses returns up to limit feeds in the order of their IDs, beginning after an ID.
// next is the last ID; more reports whether there may be others.
func (c *Cache) Statuses(ctx context.Context, after store.ID, limit int) (list []status.Feed, next store.ID, more bool, err error) {
	records, err := c.store.Records(ctx, after, limit)
	if err != nil {
		return nil, after, false, err
	}
	if next = after; len(records) > 0 {
		next = records[len(records)-1].ID
	}
	return c.statusesOf(records), next, len(records) == limit, nil
}

// StatusesOf returns those of the feeds with these IDs that exist, in no particular order.
func (c *Cache) StatusesOf(ctx context.Context, ids []store.ID) ([]status.Feed, error) {
	records, err := c.store.Lookup(ctx, ids)
	return c.statusesOf(records), err
}

// statusesOf returns the status of feeds from their records, or from memory if they are there.
func (c *Cache) statusesOf(records []store.Record) []status.Feed {
	now, pauses := c.elapsed(), c.pauses()
	list := make([]status.Feed, 0, len(records))
	for _, r := range records {
		if f := c.table.known(r.URL); f != nil {
			list = append(list, c.status(f.key, f.state.Load(), f.sinceAsked(now), pauses))
		} else {
			list = append(list, c.status(ParseKey(r.URL), stateOf(r, now), r.Asked, pauses))
		}
	}
	return list
}

// Details returns the status of a feed with its versions, and the body of the current
// version in the identity coding, or [ErrUnknownFeed]. The body is nil if the feed has no
// version, or if it is larger than most bytes.
func (c *Cache) Details(ctx context.Context, key string, most int) (status.Feed, []byte, error) {
	f, err := c.existing(ctx, key)
	if err != nil {
		return status.Feed{}, nil, err
	}
	s, out := f.state.Load(), f.status()
	if early, ok := errors.AsType[*TooEarly](f.tooEarly(s, f.rules().MinInterval)); ok && !f.key.shielded() {
		out.Refreshable = early.Until
	}
	if out.Version != 0 {
		out.Versions = append(out.Versions, status.Version{Since: out.VersionSince, ETag: out.ETag, Entries: out.Entries, Size: out.Size})
	}
	for _, p := range s.feed.Past {
		out.Versions = append(out.Versions, status.Version{Since: p.LastModified, ETag: `"` + p.Tag + `"`})
	}
	if s.version == 0 || s.feed.Version.Length > most {
		return out, nil, nil
	}
	content, err := f.content(ctx, s)
	switch {
	case errors.Is(err, store.ErrNoBody), errors.Is(err, errOtherVersion):
		return out, nil, nil
	case err != nil:
		return out, nil, fmt.Errorf("reading the version of a feed: %w", err)
	}
	return out, content, nil
}

func (f *Feed) status() status.Feed {
	c := f.cache
	return c.status(f.key, f.state.Load(), f.sinceAsked(c.elapsed()), c.pauses())
}

// status returns the status of a feed that a reader has asked for so long ago; negative: never.
func (c *Cache) status(k Key, s *state, asked time.Duration, pauses func() map[string]policy.Pause) status.Feed {
	now := c.elapsed()
	configured := c.isConfigured(k.text)
	state := s.shown(configured, now)
	if !s.ended && s.due <= now && !k.shielded() {
		// It would be polled now, but its host must wait.
		if left, why := s.hostPause(c.origin.Host(k.url), pauses()); left > 0 {
			overridden := *s
			overridden.override(c, left, why)
			s = &overridden
		}
	}
	m, f, id, decision := &s.feed, &s.last, IDOf(k.text), s.decision()
	out := status.Feed{
		ID: hex.EncodeToString(id[:]), URL: feedurl.Shown(k.text), Alias: feedurl.Shown(m.Alias), State: state, Configured: configured,
		Winner: f.Winner, Considered: decision.Considered, Hints: redacted(m.History.Hints),
		LastPoll: f.At, LastStatus: f.Status, LastResult: f.Result, LastFailure: f.Failure, LastError: feedurl.RedactText(f.Error),
		Failures: m.History.Failures, Site: f.Site != nil && s.version == 0, Polls: f.Polls.all(),
		Validated: f.Validated,
	}
	if out.Considered == nil {
		out.Considered = []policy.Term{}
	}
	if !k.shielded() {
		out.Spacing = status.Seconds(c.origin.Host(k.url).Spacing)
	}
	if !s.ended {
		out.NextPoll = c.now().Add(s.due - now).UTC()
		if d := decision.Next; d.Sub(out.NextPoll).Abs() < time.Second {
			out.NextPoll = d // the same moment, as it was decided
		}
	}
	if asked >= 0 {
		out.LastAsked = c.now().Add(-asked).UTC()
	}
	out.Push = c.pushStatus(id, s)
	if v := m.Version; s.version != 0 {
		out.Version, out.VersionSince, out.ETag, out.ContentType = s.version, v.Since, `"`+v.Tag+`"`, v.ContentType
		out.Title, out.Entries, out.Size, out.Validators = v.Title, v.Entries, v.Size, m.Validators
		out.Validators.URL = feedurl.Redact(m.Validators.URL)
		out.Vary = v.Vary
	}
	return out
}

// redacted returns hints without the credentials in their URLs.
func redacted(h policy.Hints) policy.Hints {
	h.Self, h.NewFeedURL = feedurl.Redact(h.Self), feedurl.Redact(h.NewFeedURL)
	hubs := h.Hubs
	h.Hubs = nil // the old one belongs to a published state
	for _, hub := range hubs {
		h.Hubs = append(h.Hubs, feedurl.Redact(hub))
	}
	return h
}

// stored is the state as the store counts it.
func (s *state) stored(configured bool) store.State {
	failing := s.feed.History.Failures > 0
	switch {
	case s.version == 0 && !configured:
		return store.StateCold // readers ask for icons and home pages too
	case s.last.Failure == policy.FailureGone:
		return store.StateGone
	case s.version == 0 && !failing:
		return store.StateCold
	case pauseAsked(s.last.Winner), failing && s.last.Status == http.StatusTooManyRequests:
		return store.StateWaiting
	case failing:
		return store.StateFailing
	}
	return store.StateFresh
}

// shown returns the state that people see.
func (s *state) shown(configured bool, now time.Duration) status.State {
	return shownState(s.stored(configured), configured, s.dueAt(now), s.feed.History.Failures > 0)
}

// shownState returns the state that people see for a state in the store.
func shownState(stored store.State, configured, due, failing bool) status.State {
	switch stored {
	case store.StateGone:
		return status.StateGone
	case store.StateFailing:
		return status.StateFailing
	case store.StateWaiting:
		switch {
		case !due:
			return status.StateWaiting
		case failing:
			return status.StateFailing
		}
		return status.StateDue
	case store.StateFresh:
		if due {
			return status.StateDue
		}
		return status.StateFresh
	}
	if configured {
		return status.StateDue // for its first poll
	}
	return status.StateUnread
}

// pauseAsked reports whether a hint is a pause that an origin has asked for.
func pauseAsked(winner string) bool {
	return winner == policy.HintRetryAfter || winner == policy.HintRateLimit || strings.HasSuffix(winner, "cooldown")
}

// isConfigured reports whether the operator has configured the feed of a key.
func (c *Cache) isConfigured(key string) bool { return c.settings.Load().configured[key] }

// Changes is the usual time between two entries of a feed; 0: not known.
func (c *Cache) Changes(key string) time.Duration {
	if f := c.table.known(key); f != nil {
		return f.state.Load().feed.History.Rhythm.Median
	}
	return 0
}

// Trouble is what keeps the poller from its work, as far as is known without asking the store.
func (c *Cache) Trouble() status.Trouble {
	t := status.Trouble{Outage: feedurl.RedactText(c.storeAway.text())}
	moment := func(since time.Duration) time.Time { return c.now().Add(since - c.elapsed()).UTC() }
	if since, offline := c.offline.is(); offline {
		t.Offline, t.OfflineSince = true, moment(since)
	}
	if t.Outage != "" {
		t.StoreAway, t.StoreAwaySince = true, moment(time.Duration(c.storeAway.since.Load()))
	}
	return t
}

// summaryTimeout is how long a summary waits for the store.
const summaryTimeout = 5 * time.Second

// Summary describes all feeds by the totals of the store, without counting.
func (c *Cache) Summary(ctx context.Context) status.Summary {
	s := status.Summary{
		Feeds: map[status.State]int64{}, Memory: c.memory.used() + c.table.size.Load(), Polls: int(c.polls.Load().inFlight.used.Load()),
		Trouble: c.Trouble(),
	}
	ctx, cancel := context.WithTimeout(ctx, summaryTimeout)
	defer cancel()
	totals, err := c.store.Totals(ctx)
	if err != nil && !s.StoreAway {
		s.StoreAway, s.Outage, s.StoreAwaySince = true, feedurl.RedactText(oneLine(err)), c.now().UTC()
	}
	for state, n := range totals.Feeds {
		s.Feeds[shownState(state, false, false, false)] += n
	}
	move := func(from status.State, n int64) {
		if n = min(n, s.Feeds[from]); n > 0 {
			s.Feeds[from] -= n
			s.Feeds[status.StateDue] += n
		}
	}
	first := totals.Feeds[store.StateCold] - totals.Unread // configured and never polled
	move(status.StateUnread, first)
	move(status.StateFresh, totals.Overdue-first)
	s.Overdue, s.Disk, s.DiskShort = totals.Overdue, totals.Used, totals.Short
	s.DiskOver = max(0, totals.Operator-c.settings.Load().Disk)
	return s
}

// pauses returns a function that reads the pauses of hosts and domains, by scope, when it is first called.
func (c *Cache) pauses() func() map[string]policy.Pause {
	return sync.OnceValue(func() map[string]policy.Pause {
		list, _ := c.store.Pauses(c.life) // none if it fails
		known := make(map[string]policy.Pause, len(list))
		for _, one := range list {
			known[one.Scope] = one
		}
		return known
	})
}

// hostPause returns how long the host of a feed that is due is paused, and why. The pause of a domain
// is left out if the feed's last poll was good: it does not hold for hosts that answer well.
func (s *state) hostPause(h policy.Host, pauses map[string]policy.Pause) (left time.Duration, why string) {
	scopes := []string{policy.ScopeHost + h.Name, policy.ScopeDomain + h.Domain}
	if s.last.Failure == policy.FailureNone && s.version != 0 {
		scopes = scopes[:1]
	}
	for _, scope := range scopes {
		if one := pauses[scope]; one.For > left {
			left, why = one.For, one.Why
		}
	}
	return left, why
}
