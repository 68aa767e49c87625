// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"encoding/hex"
	"iter"
	"strings"

	"github.com/feedpollard/pollard/cache/feedstate"
	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/internal/feedurl"
	"github.com/feedpollard/pollard/internal/status"
)

// recordsAtOnce is how many records are read at a time.
const recordsAtOnce = 1000

// Shown reports whether a feed is shown, by its key, the URL to which redirects lead (empty: there
// are none), and the owners that asked for it in the last 30 days.
type Shown func(key, from string, askers []store.Owner) bool

// Shows reports whether a feed is shown. One that is not known has no askers.
func (c *Cache) Shows(ctx context.Context, key string, shown Shown) bool {
	f, err := c.existing(ctx, key)
	if err != nil {
		return shown(key, "", nil)
	}
	s := f.state.Load()
	return shown(key, s.From(), f.allAskers(s))
}

// Feeds returns all feeds that are shown, in the order of their IDs, with
// ID, URL, Title, State, Configured, Failures, Incident and NextPoll alone. It ends with the first error.
func (c *Cache) Feeds(ctx context.Context, shown Shown) iter.Seq2[status.Feed, error] {
	return func(yield func(status.Feed, error) bool) {
		c.awaitConfigured(ctx)
		for records, err := range store.Pages(ctx, c.store, recordsAtOnce, false) {
			if err != nil {
				yield(status.Feed{}, err)
				return
			}
			for i := range records {
				if out, ok := c.listed(&records[i], shown); ok && !yield(out, nil) {
					return
				}
			}
		}
	}
}

// listed returns the feed of a record for a list, if it is shown. It decodes no more than the list
// needs: there may be very many feeds.
func (c *Cache) listed(r *store.Record, shown Shown) (out status.Feed, ok bool) {
	var some feedstate.Summary
	now, in, ended := c.elapsed(), r.In, r.In == store.Ended
	out = status.Feed{ID: hex.EncodeToString(r.ID[:]), URL: feedurl.Redacted(r.URL), Configured: c.settings.Load().configured[r.URL]}
	var askers []store.Owner
	if f := c.InMemory(r.URL); f != nil {
		s := f.state.Load()
		askers = f.allAskers(s)
		some = feedstate.Summary{Title: s.Feed.Version.Title, From: s.From(), Failures: s.Feed.History.Failures, Incident: s.Feed.Incident}
		in, ended = s.Due-now, s.Ended
		out.State = c.stateOf(r.URL, s)
	} else {
		some = feedstate.SummaryOf(r, c.now())
		askers = some.Askers
		out.State = feedstate.StatusStateOf(r.State, c.isConfigured(r.URL), !ended && in <= 0, some.Failures > 0)
		if r.Points != "" {
			out.State = c.stateOf(r.URL, &feedstate.State{Points: r.Points, Version: r.Version, Due: now + in, Ended: ended})
		}
	}
	if out.Failures = some.Failures; r.Version != 0 {
		out.Title = some.Title
	}
	if some.Incident.Visible(c.now()) {
		out.Incident = &some.Incident
	}
	if !ended {
		out.NextPoll = c.now().Add(in).UTC()
	}
	return out, shown(r.URL, some.From, askers)
}

// Keys returns the keys of feeds that have the prefix, in no particular order. It reads
// all records.
func (c *Cache) Keys(ctx context.Context, prefix string) (keys []string) {
	for records := range store.Pages(ctx, c.store, recordsAtOnce, false) {
		for _, r := range records {
			if strings.HasPrefix(r.URL, prefix) {
				keys = append(keys, r.URL)
			}
		}
	}
	return keys
}

// KeyOf returns the key of the feed with an ID, or [ErrUnknownFeed].
func (c *Cache) KeyOf(ctx context.Context, id store.ID) (string, error) {
	if f, ok := c.table.ids.Load(id); ok {
		return f.(*Feed).key.String(), nil
	}
	records, err := c.store.Lookup(ctx, []store.ID{id})
	if err != nil {
		return "", err
	}
	if len(records) == 0 {
		return "", ErrUnknownFeed
	}
	return records[0].URL, nil
}

// Has returns [ErrUnknownFeed] if there is no feed with this key, and an error if the store cannot be read.
func (c *Cache) Has(ctx context.Context, key string) error {
	_, err := c.existing(ctx, key)
	return err
}
