// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/policy"
)

// Glance is what can be told of a feed at little cost, so that a list of a million
// feeds can be searched.
type Glance struct {
	ID        store.ID
	URL       string // key
	Title     string // as in [Account]
	Condition string // as in [Account]
	Failures  int
	NextPoll  time.Time // zero: never
}

// glances is how many records are read at a time.
const glances = 1000

// Glances describes all feeds whose keys begin so, in the order of their IDs. It ends
// with the first error.
func (c *Cache) Glances(ctx context.Context, prefix string) iter.Seq2[Glance, error] {
	return func(yield func(Glance, error) bool) {
		for records, err := range store.Pages(ctx, c.store, glances) {
			if err != nil {
				yield(Glance{}, err)
				return
			}
			now, wall := c.elapsed(), c.now()
			for i := range records {
				if r := &records[i]; strings.HasPrefix(r.URL, prefix) && !yield(c.glance(r, now, wall), nil) {
					return
				}
			}
		}
	}
}

// glance reads as little as possible of a record: of one in good order no facts.
func (c *Cache) glance(r *store.Record, now time.Duration, wall time.Time) Glance {
	g := Glance{ID: r.ID, URL: r.URL}
	if r.Version != 0 {
		g.Title = titleIn(r.Memo)
	}
	var f struct {
		Failures int            `json:"failures"`
		Winner   string         `json:"winner"`
		Status   int            `json:"status"`
		Site     any            `json:"site"`
		Failure  policy.Failure `json:"failure"`
	}
	state, in, ended, version := string(r.State), r.In, r.In == store.Ended, r.Version
	if known := c.table.known(r.URL); known != nil {
		s := known.state.Load()
		state, in, ended, version = s.describe(now), s.due-now, s.ended, s.version
		f.Failures, f.Winner, f.Status, f.Failure = s.memo.History.Failures, s.facts.Winner, s.facts.Status, s.facts.Failure
		if s.facts.Site != nil {
			f.Site = s.facts.Site
		}
	} else if r.State != store.StateFresh {
		_ = json.Unmarshal(r.Facts, &f) // what is damaged says nothing
	} else if r.In <= 0 {
		state = "due"
	}
	if !ended {
		g.NextPoll = wall.Add(in).UTC()
	}
	g.Failures = f.Failures
	g.Condition = conditionOf(state, f.Winner, f.Status, c.noFeed(r.URL, version, f.Failure, f.Site != nil), in <= 0 || ended)
	return g
}

// titleIn finds the title in a memo without decoding all of it. In JSON a quotation mark
// within a string is escaped, so this is the beginning of a member and never foreign text.
func titleIn(memo []byte) (title string) {
	from := bytes.Index(memo, []byte(`,"title":"`))
	if from < 0 {
		return ""
	}
	text := memo[from+len(`,"title":`):]
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			_ = json.Unmarshal(text[:i+1], &title) // what is damaged is none
			return title
		}
	}
	return ""
}

// KeyOf is the key of the feed of an ID, or fails with [ErrUnknownFeed].
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

// Details is an account with what takes more than a look at the record.
type Details struct {
	Account
	Refreshable time.Time     // when a poll by hand is allowed; zero: now
	Earlier     []PastVersion // the versions before the present one, the newest first
	Body        []byte        // of the version, in the identity coding; nil: there is none, or it is too large
}

// PastVersion is a version that is not served any more.
type PastVersion struct {
	ETag         string // of the identity representation
	LastModified time.Time
}

// Details describes one feed, with its body where that has at most so many bytes, or
// fails with [ErrUnknownFeed].
func (c *Cache) Details(ctx context.Context, key string, most int) (Details, error) {
	f, err := c.existing(ctx, key)
	if err != nil {
		return Details{}, err
	}
	s := f.state.Load()
	d := Details{Account: f.account()}
	if early, ok := errors.AsType[*TooEarly](f.tooEarly(s, f.rules().MinInterval)); ok && !shielded(key) {
		d.Refreshable = early.Until
	}
	for _, p := range s.memo.Past {
		d.Earlier = append(d.Earlier, PastVersion{`"` + p.Tag + `"`, p.LastModified})
	}
	if s.version == 0 || s.memo.Version.Length > most {
		return d, nil
	}
	r, err := f.representation(ctx, s, nil)
	if err != nil {
		if errors.Is(err, store.ErrNoBody) || errors.Is(err, errOtherVersion) {
			return d, nil // the rest is worth telling
		}
		return d, fmt.Errorf("reading the version of a feed: %w", err)
	}
	defer r.release()
	d.Body = r.Body
	return d, nil
}

// Polling tells who is asked in a poll of a feed, and until when that host is left
// alone; nil: it is not.
func (c *Cache) Polling(key string) (policy.Host, *policy.Held) {
	if shielded(key) {
		return policy.Host{}, nil
	}
	u := ParseKey(key).url
	return c.origin.Host(u), c.origin.Held(u)
}
