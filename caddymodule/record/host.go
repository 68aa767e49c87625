// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package record

import (
	"context"
	"strings"

	"github.com/feedpollard/pollard/cache"
	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/caddymodule/pages"
	"github.com/feedpollard/pollard/internal/feedurl"
)

const (
	maxHostFeeds = 500    // feeds of a host whose polls are added up
	maxHosts     = 20_000 // hosts that can be asked for
)

// hostFeeds are the feeds of hosts, by name.
type hostFeeds map[string]*feedsOfHost

type feedsOfHost struct {
	count int64
	ids   []store.ID // of the first ones
}

// Host implements [pages.Source]. Anybody may ask, so all feeds are visited for many
// questions at a time. What is in a private network is nobody's business.
func (s *Source) Host(ctx context.Context, host string) (pages.Host, error) {
	c, err := s.Engine.Opened(ctx)
	if err != nil {
		return pages.Host{}, err
	}
	u, err := feedurl.Parse("https://" + host + "/")
	if err != nil || u.IsPrivate() {
		return pages.Host{}, pages.ErrUnknown
	}
	found, err := s.hosts.do(func() (any, error) { return s.byHost(context.WithoutCancel(ctx), c) })
	if err != nil {
		return pages.Host{}, err
	}
	feeds := found.(hostFeeds)[strings.ToLower(host)]
	if feeds == nil {
		return pages.Host{}, pages.ErrUnknown
	}
	accounts, err := c.AccountsOf(ctx, feeds.ids)
	if err != nil {
		return pages.Host{}, err
	}
	record := pages.Host{Name: host, Feeds: feeds.count}
	for i := range accounts {
		addTo(&record, &accounts[i])
	}
	if len(accounts) > 0 {
		if _, held := c.Polling(accounts[0].URL); held != nil {
			record.Paused = held.Until
		}
	}
	return record, nil
}

// byHost visits all feeds.
func (s *Source) byHost(ctx context.Context, c *cache.Cache) (hostFeeds, error) {
	all := make(hostFeeds)
	for g, err := range c.Glances(ctx, s.prefix) {
		if err != nil {
			return nil, err
		}
		name := hostOf(string(address(g.URL)))
		feeds := all[name]
		if feeds == nil {
			if len(all) == maxHosts {
				continue
			}
			feeds = new(feedsOfHost)
			all[name] = feeds
		}
		if feeds.count++; len(feeds.ids) < maxHostFeeds {
			feeds.ids = append(feeds.ids, g.ID)
		}
	}
	return all, nil
}

// hostOf is the host in a canonical URL, without its port.
func hostOf(url string) string {
	_, rest, _ := strings.Cut(url, "://")
	if end := strings.IndexAny(rest, "/?"); end >= 0 {
		rest = rest[:end]
	}
	rest = rest[strings.LastIndexByte(rest, '@')+1:]
	if i := strings.LastIndexByte(rest, ':'); i > strings.LastIndexByte(rest, ']') {
		rest = rest[:i]
	}
	return strings.Clone(rest)
}

// addTo adds what is known of one feed to the record of its host.
func addTo(h *pages.Host, a *cache.Account) {
	for _, p := range a.Polls {
		if h.Since.IsZero() || p.At.Before(h.Since) {
			h.Since = p.At
		}
		h.Polls++
		h.Bytes += p.Bytes
		switch p.Result {
		case cache.ResultUnchanged:
			h.Unchanged++
		case cache.ResultFailed, cache.ResultGone:
			h.Failed++
		}
	}
	if a.LastPoll.After(h.LastPoll) && len(a.Polls) > 0 {
		h.LastPoll, h.Status = a.LastPoll, a.LastStatus
	}
	if !a.NextPoll.IsZero() && (h.NextPoll.IsZero() || a.NextPoll.Before(h.NextPoll)) {
		h.NextPoll = a.NextPoll
	}
}
