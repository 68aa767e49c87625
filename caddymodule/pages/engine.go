// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/feedpollard/pollard/cache"
	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/caddymodule/poller"
	"github.com/feedpollard/pollard/internal/feedurl"
	"github.com/feedpollard/pollard/internal/readers"
	"github.com/feedpollard/pollard/internal/status"
	"github.com/feedpollard/pollard/policy"
	"github.com/feedpollard/pollard/upstream"
)

// source is the running engine as a [Source].
type source struct {
	engine  *poller.Engine
	shield  string
	readers bool // readers of a feed are shown
	poller  Poller

	searches chan struct{} // holds a value for each search that is running

	mu      sync.Mutex // guards all below
	counts  map[status.State]int64
	counted time.Time // when counts are too old
}

const (
	// maxSearches bounds the searches at a time: with a million feeds, each takes some
	// seconds of CPU time.
	maxSearches = 2
	// Counting all feeds is repeated after countFor, and not before it has been idle
	// for countFactor times as long as it took.
	countFor    = 2 * time.Second
	countFactor = 20
	// manyFeeds is the number of feeds above which the totals of the store, which are
	// nearly as good, replace counting.
	manyFeeds = 50_000
)

// NewSource returns the running engine as a source: the feeds of a shield or, if shield
// is empty, those of the gateways. With readers, the page of a feed shows its readers. The
// rules are those of most feeds.
func NewSource(e *poller.Engine, shield string, readers bool, u upstream.Settings, rules policy.Rules) Source {
	spacing, concurrency := u.Pace("")
	return &source{engine: e, shield: shield, readers: readers, searches: make(chan struct{}, maxSearches), poller: Poller{
		Contact: u.Contact, UserAgent: u.Agent(0),
		MinInterval: rules.MinInterval, MaxInterval: rules.MaxInterval,
		Spacing: spacing, Concurrency: concurrency,
	}}
}

// prefix is the prefix of the keys of all feeds shown.
func (e *source) prefix() string {
	if e.shield == "" {
		return "http"
	}
	return poller.ShieldPrefix(e.shield)
}

// covers reports whether the feed with a key is shown.
func (e *source) covers(key string) bool { return strings.HasPrefix(key, e.prefix()) }

// Summary implements [Source].
func (e *source) Summary(ctx context.Context) (status.Summary, error) {
	c, err := e.engine.Opened(ctx)
	if err != nil {
		return status.Summary{}, err
	}
	s := c.Summary(ctx)
	var total int64
	for _, n := range s.Feeds {
		total += n
	}
	if total > manyFeeds && e.shield == "" {
		return s, nil
	}
	s.Feeds, err = e.count(ctx, c)
	return s, err
}

func (e *source) count(ctx context.Context, c *cache.Cache) (map[status.State]int64, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	began := time.Now()
	if e.counts != nil && began.Before(e.counted) {
		return e.counts, nil
	}
	counts := make(map[status.State]int64)
	for f, err := range c.Feeds(context.WithoutCancel(ctx), e.prefix()) {
		if err != nil {
			return nil, err
		}
		counts[f.State]++
	}
	e.counts, e.counted = counts, time.Now().Add(max(countFor, countFactor*time.Since(began)))
	return counts, nil
}

// Feeds implements [Source].
func (e *source) Feeds(ctx context.Context, q Query) (FeedList, error) {
	c, err := e.engine.Opened(ctx)
	if err != nil {
		return FeedList{}, err
	}
	list, err := e.search(ctx, c, q)
	if err != nil {
		return FeedList{}, err
	}
	ids := make([]store.ID, 0, len(list.Feeds))
	places := make(map[string]int, len(list.Feeds))
	for i, f := range list.Feeds {
		if id, ok := parseID(f.ID); ok {
			ids = append(ids, id)
			places[f.ID] = i
		}
	}
	feeds, err := c.StatusesOf(ctx, ids)
	if err != nil {
		return FeedList{}, err
	}
	for _, f := range feeds {
		list.Feeds[places[f.ID]] = poller.Told(f)
	}
	return list, nil
}

func (e *source) search(ctx context.Context, c *cache.Cache, q Query) (FeedList, error) {
	select {
	case e.searches <- struct{}{}:
		defer func() { <-e.searches }()
	case <-ctx.Done():
		return FeedList{}, ctx.Err()
	}
	return Select(e.all(ctx, c), q)
}

// all returns all feeds that are shown, as [cache.Cache.Feeds] has them.
func (e *source) all(ctx context.Context, c *cache.Cache) iter.Seq2[status.Feed, error] {
	return func(yield func(status.Feed, error) bool) {
		for f, err := range c.Feeds(ctx, e.prefix()) {
			f.URL = feedurl.Shown(poller.ReadersURL(string(f.URL)))
			if !yield(f, err) || err != nil {
				return
			}
		}
	}
}

// Feed implements [Source].
func (e *source) Feed(ctx context.Context, which Which) (status.Feed, []byte, error) {
	c, err := e.engine.Opened(ctx)
	if err != nil {
		return status.Feed{}, nil, err
	}
	key, err := e.key(ctx, c, which)
	if err != nil {
		return status.Feed{}, nil, err
	}
	f, body, err := e.engine.Status(ctx, c, key, maxParsed)
	if !e.readers {
		f.Readers = nil
	}
	return f, body, unknown(err)
}

// Refresh implements [Source].
func (e *source) Refresh(ctx context.Context, which Which) (status.Result, error) {
	c, err := e.engine.Opened(ctx)
	if err != nil {
		return "", err
	}
	key, err := e.key(ctx, c, which)
	if err != nil {
		return "", err
	}
	f, err := c.Refresh(ctx, key)
	return f.LastResult, unknown(err)
}

func unknown(err error) error {
	if errors.Is(err, cache.ErrUnknownFeed) {
		return ErrUnknown
	}
	return err
}

// key returns the key of a feed that these pages show, or [ErrUnknown].
func (e *source) key(ctx context.Context, c *cache.Cache, which Which) (string, error) {
	if which.ID != "" {
		id, ok := parseID(which.ID)
		if !ok {
			return "", ErrUnknown
		}
		key, err := c.KeyOf(ctx, id)
		if err == nil && !e.covers(key) {
			err = ErrUnknown
		}
		return key, unknown(err)
	}
	u, err := feedurl.Parse(which.URL)
	if err != nil {
		return "", ErrUnknown
	}
	if e.shield == "" {
		return u.String(), nil
	}
	// The URL that readers know is only a part of the key.
	found := ""
	for f, err := range c.Feeds(ctx, e.prefix()) {
		if err != nil {
			return "", err
		}
		k, ok := poller.ParseShieldKey(string(f.URL))
		if ok && k.URL() == u.String() && (found == "" || k.Variant == "") {
			found = string(f.URL)
		}
	}
	if found == "" {
		return "", ErrUnknown
	}
	return found, nil
}

func parseID(text string) (id store.ID, ok bool) {
	if len(text) != 2*len(id) {
		return id, false
	}
	_, err := hex.Decode(id[:], []byte(text))
	return id, err == nil
}

// Poller implements [Source].
func (e *source) Poller() Poller { return e.poller }

// Readers implements [Source]. They are grouped by User-Agent family.
func (e *source) Readers(ctx context.Context, limit int) (status.Readers, error) {
	report := e.engine.Readers(ctx, readers.ReportOptions{Of: e.covers, About: e.engine.About})
	r := status.Readers{
		Since: report.Total.First, Readers: int64(len(report.Readers)),
		Requests: report.Total.Requests, Bytes: report.Total.Bytes, Hours: report.Hours,
	}
	for i := range report.Readers {
		row := &report.Readers[i]
		if row.Score == "-" {
			continue
		}
		r.Judged++
		if row.Methods.Get > 0 && row.ShareConditional == 0 {
			r.Unconditional++
			r.UnconditionalBytes += row.Bytes
		}
	}
	families := report.Families
	r.ByRequests = slices.Clone(families[:min(len(families), limit)])
	slices.SortStableFunc(families, func(a, b status.Reader) int { return cmp.Compare(b.Bytes, a.Bytes) })
	r.ByBytes = families[:min(len(families), limit)]
	return r, nil
}

// maxDays is how many days of traffic are shown.
const maxDays = 400

// Savings implements [Source].
func (e *source) Savings(ctx context.Context, limit int) (status.Savings, error) {
	traffic := e.engine.Traffic(ctx, e.shield)
	saved := status.Savings{Total: traffic.Total}
	for origin, t := range traffic.Origins {
		saved.Origins = append(saved.Origins, status.OriginTraffic{Origin: feedurl.Shown(origin), Traffic: t})
	}
	slices.SortFunc(saved.Origins, func(a, b status.OriginTraffic) int {
		return cmp.Or(cmp.Compare(b.Spared(), a.Spared()), cmp.Compare(a.Origin, b.Origin))
	})
	saved.Origins = saved.Origins[:min(len(saved.Origins), limit)]
	var first, last time.Time
	for date := range traffic.Days {
		day, err := time.Parse(time.DateOnly, date)
		if err != nil {
			continue
		}
		if first.IsZero() || day.Before(first) {
			first = day
		}
		if day.After(last) {
			last = day
		}
	}
	if oldest := last.AddDate(0, 0, -maxDays); first.Before(oldest) {
		first = oldest
	}
	for day := first; !last.IsZero() && !day.After(last); day = day.AddDate(0, 0, 1) {
		saved.Days = append(saved.Days, status.DayTraffic{Day: day, Traffic: traffic.Days[day.Format(time.DateOnly)]})
	}
	return saved, nil
}

// Interface guard.
var _ Source = (*source)(nil)
