// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"iter"
	"strings"
	"time"

	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/internal/feedurl"
	"github.com/feedpollard/pollard/internal/status"
)

// recordsAtOnce is how many records are read at a time.
const recordsAtOnce = 1000

// Shown reports whether a feed is shown, by its key, the URL from which its version came (empty: its
// own), and the groups that asked for it.
type Shown func(key, from string, groups []Group) bool

// Shows reports whether a feed is shown. One that is not known has no groups.
func (c *Cache) Shows(ctx context.Context, key string, shown Shown) bool {
	f, err := c.existing(ctx, key)
	if err != nil {
		return shown(key, "", nil)
	}
	s := f.state.Load()
	return shown(key, s.feed.Version.From, groupsOf(f.groupDays(s)))
}

// Feeds returns all feeds that are shown, in the order of their IDs, with
// ID, URL, Title, State, Configured, Failures and NextPoll alone: that takes so little time that a
// million feeds can be searched. It ends with the first error.
func (c *Cache) Feeds(ctx context.Context, shown Shown) iter.Seq2[status.Feed, error] {
	return func(yield func(status.Feed, error) bool) {
		for records, err := range store.Pages(ctx, c.store, recordsAtOnce) {
			if err != nil {
				yield(status.Feed{}, err)
				return
			}
			now, wall := c.elapsed(), c.now()
			for i := range records {
				if r := &records[i]; c.shows(r, shown) && !yield(c.summarize(r, now, wall), nil) {
					return
				}
			}
		}
	}
}

// shows is [Cache.Shows] for the feed of a record, which may be in memory too.
func (c *Cache) shows(r *store.Record, shown Shown) bool {
	if known := c.table.known(r.URL); known != nil {
		s := known.state.Load()
		return shown(r.URL, s.feed.Version.From, groupsOf(known.groupDays(s)))
	}
	return shown(r.URL, textIn(r.Memo, "from"), groupsOf(mergeGroups(groupsIn(r.Memo), nil, c.day())))
}

// summarize decodes as little as possible of a record: of a fresh one, no facts.
func (c *Cache) summarize(r *store.Record, now time.Duration, wall time.Time) status.Feed {
	out := status.Feed{ID: hex.EncodeToString(r.ID[:]), URL: feedurl.Shown(r.URL), Configured: c.isConfigured(r.URL)}
	if r.Version != 0 {
		out.Title = textIn(r.Memo, "title")
	}
	in, ended := r.In, r.In == store.Ended
	if known := c.table.known(r.URL); known != nil {
		s := known.state.Load()
		in, ended = s.due-now, s.ended
		out.State, out.Failures = s.shown(out.Configured, now), s.feed.History.Failures
	} else {
		if r.State != store.StateFresh {
			var f struct{ Failures int }
			_ = json.Unmarshal(r.Facts, &f) // damaged facts say nothing
			out.Failures = f.Failures
		}
		out.State = shownState(r.State, out.Configured, !ended && in <= 0, out.Failures > 0)
	}
	if !ended {
		out.NextPoll = wall.Add(in).UTC()
	}
	return out
}

// textIn finds a text of the version in a memo without decoding all of it. In JSON a quotation
// mark within a string is escaped, so this is the beginning of a member and never foreign text.
func textIn(memo []byte, member string) (value string) {
	_, text, found := bytes.Cut(memo, []byte(`,"`+member+`":`))
	if !found || len(text) == 0 || text[0] != '"' {
		return ""
	}
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			_ = json.Unmarshal(text[:i+1], &value) // a damaged text is left out
			return value
		}
	}
	return ""
}

// Keys returns the keys of feeds that have the prefix, in no particular order. It reads
// all records.
func (c *Cache) Keys(ctx context.Context, prefix string) (keys []string) {
	for records := range store.Pages(ctx, c.store, recordsAtOnce) {
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
		return f.(*Feed).key.text, nil
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

// Has reports whether there is a feed with this key.
func (c *Cache) Has(ctx context.Context, key string) bool {
	_, err := c.existing(ctx, key)
	return err == nil
}
