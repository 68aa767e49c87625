// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package record

import (
	"context"
	"encoding/hex"
	"errors"
	"iter"
	"time"

	"github.com/feedpollard/pollard/cache"
	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/caddymodule/pages"
	"github.com/feedpollard/pollard/caddymodule/poller"
	"github.com/feedpollard/pollard/internal/feedurl"
	"github.com/feedpollard/pollard/policy"
)

const (
	// maxBody is how large a version may be whose entries are shown, in bytes.
	maxBody = 4 << 20
	// maxReaders is how many readers of a feed are named.
	maxReaders = 20
	// maxSearches bounds how much CPU time lists of feeds take: with a million feeds one
	// takes some seconds of it.
	maxSearches = 2
)

func parseID(text string) (id store.ID, ok bool) {
	n, err := hex.Decode(id[:], []byte(text[:min(len(text), 2*len(id))]))
	return id, err == nil && n == len(id) && len(text) == 2*len(id)
}

// Feeds implements [pages.Source].
func (s *Source) Feeds(ctx context.Context, q pages.Query) (pages.FeedList, error) {
	c, err := s.Engine.Opened(ctx)
	if err != nil {
		return pages.FeedList{}, err
	}
	list, err := s.search(ctx, c, q)
	if err != nil {
		return pages.FeedList{}, err
	}
	ids := make([]store.ID, 0, len(list.Feeds))
	places := make(map[store.ID]int, len(list.Feeds))
	for i, f := range list.Feeds {
		if id, ok := parseID(f.ID); ok {
			ids = append(ids, id)
			places[id] = i
		}
	}
	accounts, err := c.AccountsOf(ctx, ids)
	if err != nil {
		return pages.FeedList{}, err
	}
	for i := range accounts {
		if place, ok := places[cache.IDOf(accounts[i].URL)]; ok {
			list.Feeds[place] = s.feed(&accounts[i])
		}
	}
	return list, nil
}

// search looks at all feeds. There are maxSearches at a time, and others wait.
func (s *Source) search(ctx context.Context, c *cache.Cache, q pages.Query) (pages.FeedList, error) {
	select {
	case s.searches <- struct{}{}:
		defer func() { <-s.searches }()
	case <-ctx.Done():
		return pages.FeedList{}, ctx.Err()
	}
	return pages.Select(s.all(ctx, c), q)
}

// all is what a query looks at.
func (s *Source) all(ctx context.Context, c *cache.Cache) iter.Seq2[pages.Feed, error] {
	return func(yield func(pages.Feed, error) bool) {
		for g, err := range c.Glances(ctx, s.prefix) {
			f := pages.Feed{
				ID: hex.EncodeToString(g.ID[:]), URL: address(g.URL), Title: g.Title, State: pages.State(g.Condition),
				Failures: g.Failures, NextPoll: g.NextPoll,
			}
			if !yield(f, err) || err != nil {
				return
			}
		}
	}
}

func address(key string) pages.Address { return pages.Address(poller.ReadersURL(key)) }

// feed is what a list says of a feed.
func (s *Source) feed(a *cache.Account) pages.Feed {
	id := cache.IDOf(a.URL)
	f := pages.Feed{
		ID: hex.EncodeToString(id[:]), URL: address(a.URL), Title: a.Title, State: pages.State(a.Condition),
		Failures: a.Failures, NextPoll: a.NextPoll, Winner: a.Winner, Reason: s.reason(a),
		Status: a.LastStatus, Since: a.VersionSince,
	}
	for _, p := range a.Polls {
		f.Polls = append(f.Polls, pages.Poll{At: p.At, Status: p.Status, Result: pages.Result(p.Result), Bytes: p.Bytes, Took: p.Took})
	}
	return f
}

// reason tells why the next poll is when it is.
func (s *Source) reason(a *cache.Account) pages.Reason {
	if a.Winner == "" {
		return nil // it has not been decided yet
	}
	d := a.Decision
	if d.Next = a.NextPoll; d.Next.IsZero() {
		d.Next = policy.Never
	}
	f := policy.Facts{
		Now: time.Now(), Status: a.LastStatus, Error: redact(a.LastError),
		Failures: a.Failures, Served: a.VersionSince, Target: feedurl.Redact(a.Alias), Site: a.Site, NoFeed: pages.State(a.Condition) == pages.StateNoFeed,
	}
	if u, err := feedurl.Parse(string(address(a.URL))); err == nil {
		f.Host = u.Name()
		f.Spacing, _ = s.Upstream.Pace(f.Host)
	}
	return policy.Reason(d, f)
}

// Feed implements [pages.Source].
func (s *Source) Feed(ctx context.Context, which pages.Which) (pages.Account, error) {
	c, err := s.Engine.Opened(ctx)
	if err != nil {
		return pages.Account{}, err
	}
	key, err := s.key(ctx, c, which)
	if err != nil {
		return pages.Account{}, err
	}
	d, err := c.Details(ctx, key, maxBody)
	if err != nil {
		return pages.Account{}, unknown(err)
	}
	a := pages.Account{
		Feed: s.feed(&d.Account), Alias: pages.Address(d.Alias), Configured: d.Configured,
		LastPoll: d.LastPoll, LastResult: pages.Result(d.LastResult), LastError: redact(d.LastError),
		LastAsked: d.LastAsked, Validated: d.Validated, Considered: d.Considered,
		Self: pages.Address(d.Hints.Self), NewFeedURL: pages.Address(d.Hints.NewFeedURL),
		ContentType: d.ContentType, OriginETag: d.Validators.ETag, OriginDate: d.Validators.LastModified,
		Refreshable: d.Refreshable, Body: d.Body,
	}
	for _, hub := range d.Hints.Hubs {
		a.Hubs = append(a.Hubs, pages.Address(hub))
	}
	if d.Version != 0 {
		a.Versions = append(a.Versions, pages.Version{Since: d.VersionSince, ETag: d.ETag, Entries: d.Entries, Size: int64(d.Size)})
	}
	for _, v := range d.Earlier {
		a.Versions = append(a.Versions, pages.Version{Since: v.LastModified, ETag: v.ETag})
	}
	a.Readers = s.readersOf(ctx, key)
	a.Subscribers = int64(s.Engine.Subscribers(ctx, key))
	return a, nil
}

func unknown(err error) error {
	if errors.Is(err, cache.ErrUnknownFeed) {
		return pages.ErrUnknown
	}
	return err
}

// Refresh implements [pages.Source].
func (s *Source) Refresh(ctx context.Context, which pages.Which) (pages.Result, error) {
	c, err := s.Engine.Opened(ctx)
	if err != nil {
		return "", err
	}
	key, err := s.key(ctx, c, which)
	if err != nil {
		return "", err
	}
	account, err := c.Refresh(ctx, key)
	if early, ok := errors.AsType[*cache.TooEarly](err); ok {
		return "", &pages.TooEarly{Until: early.Until}
	}
	if err != nil {
		return "", unknown(err)
	}
	return pages.Result(account.LastResult), nil
}
