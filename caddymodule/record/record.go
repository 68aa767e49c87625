// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

// Package record shows the running engine as a [pages.Source]: the feeds of a
// gateway, which are those of all gateways, or of one shield.
//
// What is shown hides credentials: URLs by their type ([pages.Address]), and errors
// here, as they quote URLs.
package record

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/feedpollard/pollard/cache"
	"github.com/feedpollard/pollard/caddymodule/pages"
	"github.com/feedpollard/pollard/caddymodule/poller"
	"github.com/feedpollard/pollard/internal/feedurl"
	"github.com/feedpollard/pollard/policy"
	"github.com/feedpollard/pollard/upstream"
)

// Options say whose feeds are shown.
type Options struct {
	Engine *poller.Engine
	// Shield is the name of a shield. Empty: a gateway's feeds.
	Shield string
	// Upstream is who polls, and how hosts are paced.
	Upstream upstream.Settings
	// Rules are those for all feeds of which nobody says otherwise.
	Rules policy.Rules
}

// Source is the record behind pages.
type Source struct {
	Options
	prefix   string        // of the keys of the feeds
	searches chan struct{} // a place for each

	summaries, hosts walk
}

// New returns the source of a gateway or shield.
func New(o Options) *Source {
	s := &Source{Options: o, prefix: "http", searches: make(chan struct{}, maxSearches)}
	if o.Shield != "" {
		s.prefix = poller.ShieldPrefix(o.Shield)
	}
	return s
}

// covers reports whether the feed of a key is shown.
func (s *Source) covers(key string) bool { return strings.HasPrefix(key, s.prefix) }

// walk bounds how often all feeds are visited: what was found out is good for some
// seconds, and for longer where it took long.
type walk struct {
	mu     sync.Mutex
	result any
	until  time.Time
}

const (
	walkFor    = 2 * time.Second
	walkFactor = 20 // times as long as it took
)

func (w *walk) do(visit func() (any, error)) (any, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	began := time.Now()
	if w.result != nil && began.Before(w.until) {
		return w.result, nil
	}
	result, err := visit()
	if err != nil {
		return nil, err
	}
	w.result, w.until = result, time.Now().Add(max(walkFor, walkFactor*time.Since(began)))
	return result, nil
}

// many is from how many feeds on they are not visited to be counted by state: what the
// store counts itself is nearly as good.
const many = 50_000

// Summary implements [pages.Source].
func (s *Source) Summary(ctx context.Context) (pages.Summary, error) {
	c, err := s.Engine.Opened(ctx)
	if err != nil {
		return pages.Summary{}, err
	}
	whole := c.Summary(ctx)
	summary := pages.Summary{Offline: whole.Offline, Outage: redact(whole.Outage), Feeds: make(map[pages.State]int64)}
	var total int64
	for state, n := range whole.Feeds {
		summary.Feeds[pages.State(state)] = n
		total += n
	}
	if total > many && s.Shield == "" {
		return summary, nil
	}
	counts, err := s.summaries.do(func() (any, error) {
		counts := make(map[pages.State]int64)
		for g, err := range c.Glances(context.WithoutCancel(ctx), s.prefix) {
			if err != nil {
				return nil, err
			}
			counts[pages.State(g.Condition)]++
		}
		return counts, nil
	})
	if err != nil {
		return pages.Summary{}, err
	}
	summary.Feeds = counts.(map[pages.State]int64)
	return summary, nil
}

// Poller implements [pages.Source].
func (s *Source) Poller(context.Context) (pages.Poller, error) {
	spacing, concurrency := s.Upstream.Pace("")
	return pages.Poller{
		Contact: s.Upstream.Contact, UserAgent: s.Upstream.Agent(0),
		MinInterval: s.Rules.MinInterval, MaxInterval: s.Rules.MaxInterval,
		Spacing: spacing, Concurrency: concurrency,
	}, nil
}

// key finds the feed that is meant: [pages.ErrUnknown] where it is none of these.
func (s *Source) key(ctx context.Context, c *cache.Cache, which pages.Which) (string, error) {
	if which.ID != "" {
		id, ok := parseID(which.ID)
		if !ok {
			return "", pages.ErrUnknown
		}
		key, err := c.KeyOf(ctx, id)
		if errors.Is(err, cache.ErrUnknownFeed) || err == nil && !s.covers(key) {
			return "", pages.ErrUnknown
		}
		return key, err
	}
	u, err := feedurl.Parse(which.URL)
	if err != nil {
		return "", pages.ErrUnknown
	}
	if s.Shield == "" {
		return u.String(), nil
	}
	// Readers know a feed of a shield by a URL that is not all of its key.
	found := ""
	for g, err := range c.Glances(ctx, s.prefix) {
		if err != nil {
			return "", err
		}
		k, ok := poller.ParseShieldKey(g.URL)
		if ok && k.URL() == u.String() && (found == "" || k.Variant == "") {
			found = g.URL
		}
	}
	if found == "" {
		return "", pages.ErrUnknown
	}
	return found, nil
}

// inText finds URLs in a text.
var inText = regexp.MustCompile(`https?://[^\s"'<>]+`)

// redact hides credentials in the URLs of a text.
func redact(text string) string {
	return inText.ReplaceAllStringFunc(feedurl.OneLine(text), feedurl.Redact)
}

// Interface guard.
var _ pages.Source = (*Source)(nil)
