// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/feedpollard/pollard/cache/feedstate"
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
	return f.describe(), nil
}

// Statuses returns up to limit feeds in the order of their IDs, beginning after an ID.
// next is the last ID; more reports whether there may be others.
func (c *Cache) Statuses(ctx context.Context, after store.ID, limit int) (list []status.Feed, next store.ID, more bool, err error) {
	c.awaitConfigured(ctx)
	records, err := c.store.Records(ctx, after, limit, false)
	if err != nil {
		return nil, after, false, err
	}
	if next = after; len(records) > 0 {
		next = records[len(records)-1].ID
	}
	return c.describeAll(records), next, len(records) == limit, nil
}

// StatusesOf returns those of the feeds with these IDs that exist, in no particular order.
func (c *Cache) StatusesOf(ctx context.Context, ids []store.ID) ([]status.Feed, error) {
	c.awaitConfigured(ctx)
	records, err := c.store.Lookup(ctx, ids)
	return c.describeAll(records), err
}

// describeAll returns the status of feeds from their records, or from memory if they are there.
func (c *Cache) describeAll(records []store.Record) []status.Feed {
	now, pauses := c.elapsed(), c.pauses()
	list := make([]status.Feed, 0, len(records))
	for _, r := range records {
		if f := c.InMemory(r.URL); f != nil {
			list = append(list, c.describe(f.key, f.forStatus(), f.sinceAsked(now), pauses))
		} else {
			f := newFeed(c, r.URL, feedstate.FromRecord(r, now))
			list = append(list, c.describe(f.key, f.held(f.state.Load(), now), r.Asked, pauses))
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
	s, out := f.state.Load(), f.describe()
	if early, ok := errors.AsType[*TooEarly](f.tooEarly(s, f.rules().MinInterval)); ok && !f.key.Shielded() {
		out.Refreshable = early.Until
	}
	if out.Version != 0 {
		out.Versions = append(out.Versions, status.Version{Since: out.VersionSince, ETag: out.ETag, Entries: out.Entries, Size: out.Size})
	}
	for _, p := range s.Feed.Past {
		out.Versions = append(out.Versions, status.Version{Since: p.LastModified, ETag: `"` + p.Tag + `"`})
	}
	if s.Version == 0 || s.Feed.Version.Length > most {
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

func (f *Feed) describe() status.Feed {
	c, s := f.cache, f.forStatus()
	out := c.describe(f.key, s, f.sinceAsked(c.elapsed()), c.pauses())
	if out.Site {
		out.SiteFeeds = s.Last.Site.Redacted()
	}
	return out
}

// forStatus returns the state that people see: with the reason why the feed is not polled although it is due.
func (f *Feed) forStatus() *feedstate.State {
	s, p := f.latest()
	now := f.cache.elapsed()
	s = f.held(s, now)
	if _, offline := f.cache.offline.is(); offline && s.Last.Winner == policy.HintUnsent {
		none := *s
		none.Last.Winner = policy.HintOffline // it is not this site
		s = &none
	}
	if s.Last.Winner != "" || p == nil || p.left() {
		return s
	}
	queued := *s
	queued.Override(f.cache.moment(), 0, policy.HintHostSlot)
	return &queued
}

// describe returns the status of a feed that a reader has asked for so long ago; negative: never.
func (c *Cache) describe(k feedstate.Key, s *feedstate.State, asked time.Duration, pauses func() []policy.Pause) status.Feed {
	now := c.elapsed()
	state := c.stateOf(k.String(), s)
	if s.Poked && !s.Ended {
		poked := *s
		poked.Override(c.moment(), s.Due-now, policy.HintPoke)
		s = &poked
	}
	var pause *status.Pause
	if !s.Ended && !k.Shielded() {
		if p := s.SitePause(c.origin.Host(k.URL()), pauses()); p.For > 0 {
			if now+p.For > s.Due {
				overridden := *s
				overridden.Override(c.moment(), p.For, p.Why)
				s = &overridden
			}
			if s.Last.Winner == p.Why {
				pause = &status.Pause{New: p.New, URL: feedurl.Redacted(p.URL)}
			}
		}
	}
	m, f, id, decision := &s.Feed, &s.Last, store.IDOf(k.String()), s.Decision()
	out := status.Feed{
		ID: hex.EncodeToString(id[:]), URL: feedurl.Redacted(k.String()), Alias: feedurl.Redacted(s.Points), State: state, Configured: c.settings.Load().configured[k.String()],
		Winner: f.Winner, Considered: decision.Considered, Hints: redacted(m.History.Hints),
		LastPoll: f.At, LastStatus: f.Status, LastResult: f.Result, LastFailure: f.Failure, LastError: feedurl.RedactText(f.Error),
		Failures: m.History.Failures, Site: f.Site != nil && s.Version == 0 && f.Failure == policy.FailureNotFeed, Polls: f.Polls.All(),
		Validated: f.Validated, Pause: pause,
	}
	if m.Incident.Kind != "" && m.Incident.Visible(c.now()) {
		out.Incident = &m.Incident
	}
	if out.Considered == nil {
		out.Considered = []policy.Term{}
	}
	if !k.Shielded() {
		out.Spacing = status.Seconds(c.origin.Host(k.URL()).Spacing)
	}
	if !s.Ended {
		out.NextPoll = c.now().Add(s.Due - now).UTC()
		if d := decision.Next; d.Sub(out.NextPoll).Abs() < time.Second {
			out.NextPoll = d // the same moment, as it was decided
		}
		if out.Winner == "" && s.Due > now {
			out.Winner = policy.HintPause // it was forgotten, or the outcome of its first poll was lost
		}
	}
	if asked >= 0 {
		out.LastAsked = c.now().Add(-asked).UTC()
	}
	out.Push = c.pushStatus(id, s)
	if from, err := feedurl.Parse(m.Version.From); err == nil && from.Scheme() == "http" && k.URL().Scheme() == "https" && s.Points == "" {
		out.OverHTTP = true
	}
	if v := m.Version; s.Version != 0 {
		out.Version, out.VersionSince, out.ETag, out.ContentType = s.Version, v.Since, `"`+v.Tag+`"`, v.ContentType
		out.Title, out.Entries, out.Size, out.Validators = v.Title, v.Entries, v.Size, m.Validators
		out.Validators.URL = feedurl.Redact(m.Validators.URL)
		out.Vary = v.Vary
	}
	return out
}

// stateOf returns the state that people see of a feed: that of the feed to which it points, if it points to one. If
// that one never gave a version, readers get the feed's own, and it has its own state.
func (c *Cache) stateOf(key string, s *feedstate.State) status.State {
	own := s.StatusState(c.isConfigured(key), c.elapsed())
	served := s.Version != 0
	for range maxPointers {
		if s.Points == "" {
			break
		}
		target := s.Points
		if f := c.InMemory(target); f != nil {
			key, s = target, f.state.Load()
			continue
		}
		records, err := c.store.Lookup(c.life, []store.ID{store.IDOf(target)})
		if err != nil || len(records) == 0 {
			break
		}
		key, s = target, feedstate.FromRecord(records[0], c.elapsed())
	}
	if state := s.StatusState(c.isConfigured(key), c.elapsed()); state != status.StateUnread || !served {
		return state
	}
	return own
}

// isConfigured reports whether a feed is the operator's: configured or listed.
func (c *Cache) isConfigured(key string) bool {
	s := c.settings.Load()
	return s.configured[key] || (*s.listed.Load())[key]
}

// Changes is the usual time between two entries of a feed; 0: not known.
func (c *Cache) Changes(key string) time.Duration {
	if f := c.InMemory(key); f != nil {
		return f.state.Load().Feed.History.Rhythm.Median
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

// CheckStore reports why the store cannot be used: what is known, or else what asking it brings to light.
func (c *Cache) CheckStore(ctx context.Context) error {
	text := c.storeAway.text()
	if text == "" {
		_, err := c.store.Pauses(ctx) // which takes a moment, however many feeds there are
		if err == nil {
			return nil
		}
		text = feedurl.Message(err.Error())
	}
	return fmt.Errorf("the store is away: %s", feedurl.RedactText(text))
}

// summaryTimeout is how long a summary waits for the store.
const summaryTimeout = 5 * time.Second

// Summary describes all feeds by the totals of the store, without counting.
func (c *Cache) Summary(ctx context.Context) status.Summary {
	c.awaitConfigured(ctx)
	s := status.Summary{
		Feeds: map[status.State]int64{}, Memory: c.memory.used() + c.table.size.Load(), Polls: int(c.inFlight.inUse()),
		Trouble: c.Trouble(),
	}
	ctx, cancel := context.WithTimeout(ctx, summaryTimeout)
	defer cancel()
	totals, err := c.store.Totals(ctx)
	if err != nil && !errors.Is(err, context.DeadlineExceeded) && !s.StoreAway { // to count a million feeds may take longer
		s.StoreAway, s.Outage, s.StoreAwaySince = true, feedurl.RedactText(feedurl.Message(err.Error())), c.now().UTC()
	}
	for state, n := range totals.Feeds {
		s.Feeds[feedstate.StatusStateOf(state, false, false, false)] += n
	}
	move := func(from status.State, n int64) {
		if n > 0 {
			s.Feeds[from] -= n
			s.Feeds[status.StateDue] += n
		}
	}
	move(status.StateUnread, totals.Feeds[store.StateCold]-totals.Unread) // configured and never polled
	move(status.StateFresh, totals.Due)
	s.Overdue, s.Disk, s.DiskShort = totals.Overdue, totals.Used, totals.Short
	s.Slow = *c.slow.Load()
	s.DiskOver = max(0, totals.Operator-c.settings.Load().Disk)
	return s
}

// pauses returns a function that reads the pauses of sites when it is first called.
func (c *Cache) pauses() func() []policy.Pause {
	return sync.OnceValue(func() []policy.Pause {
		list, _ := c.store.Pauses(c.life) // none if it fails
		return list
	})
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
