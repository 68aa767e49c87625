// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/feedpollard/pollard/cache"
	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/caddymodule/poller"
	"github.com/feedpollard/pollard/internal/feedurl"
	"github.com/feedpollard/pollard/internal/readers"
	"github.com/feedpollard/pollard/internal/status"
)

// engineSource is the running engine as a [Source].
type engineSource struct {
	engine *poller.Engine
	shield string // its identity; empty: the pages are those of a gateway

	searches chan struct{} // holds a value for each search that is running
}

// maxSearches bounds the searches at a time: with a million feeds, each takes some seconds of CPU time.
const maxSearches = 2

// NewSource returns the running engine as a source, of a shield or, if shield is empty, of a gateway.
func NewSource(e *poller.Engine, shield string) Source {
	return &engineSource{engine: e, shield: shield, searches: make(chan struct{}, maxSearches)}
}

func (e *engineSource) Trouble(v *Viewer) status.Trouble {
	var shown status.Trouble
	if _, c := poller.Running(); c != nil {
		all := c.Trouble()
		shown = status.Trouble{Offline: all.Offline, StoreAway: all.StoreAway, OfflineSince: all.OfflineSince, StoreAwaySince: all.StoreAwaySince}
		shown.StoreDamaged = e.engine.StoreDamaged()
	}
	if e.shield != "" {
		shown.Proxies = e.engine.Limiter.Proxies(v.shownKey)
	}
	return shown
}

// Feeds lists feeds that are shown, and says nothing about the rest of the process.
func (e *engineSource) Feeds(ctx context.Context, v *Viewer, q status.Query) (status.FeedList, error) {
	c, err := e.engine.Opened(ctx)
	if err != nil {
		return status.FeedList{}, err
	}
	list, err := e.search(ctx, c, v, q)
	if err != nil {
		return status.FeedList{}, err
	}
	list.Summary.Trouble = e.Trouble(v)
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
		return status.FeedList{}, err
	}
	for _, f := range feeds {
		list.Feeds[places[f.ID]] = complete(f, v)
	}
	return list, nil
}

// complete completes the status of a feed from the cache, and leaves out what the viewer is not shown.
func complete(f status.Feed, v *Viewer) status.Feed {
	if f.Pause != nil {
		if u := string(f.Pause.URL); u != string(f.URL) && !v.shownKey(u) { // a feed that the viewer may not know
			f.Pause.URL = ""
		}
	}
	if v.Address != nil {
		f.Address = v.Address(string(f.URL))
	}
	if v.Named != nil && !v.Named(string(f.URL)) {
		f.Subscribers, f.LastAsked = 0, time.Time{}
	}
	redirected := f.Validators.URL != feedurl.Redact(string(f.URL))
	key := string(f.URL)
	f.Alias = feedurl.Redacted(v.reachable(key, string(f.Alias))) // before the reason, which names it
	f.SiteFeeds = slices.DeleteFunc(f.SiteFeeds, func(u feedurl.Redacted) bool { return v.reachable(key, string(u)) != string(u) })
	f = poller.Complete(f)
	if redirected {
		f.Validators.URL = v.reachable(key, f.Validators.URL)
	}
	return f
}

// reachable returns a URL to which the feed of a key has led, or its host alone if the viewer may not reach it.
func (v *Viewer) reachable(key, raw string) string {
	if raw == "" || v.MayReach == nil {
		return raw
	}
	u, err := feedurl.Parse(raw)
	switch {
	case err != nil:
		return ""
	case !v.MayReach(key, u):
		return u.Name()
	}
	return raw
}

func (e *engineSource) search(ctx context.Context, c *cache.Cache, v *Viewer, q status.Query) (status.FeedList, error) {
	select {
	case e.searches <- struct{}{}:
		defer func() { <-e.searches }()
	case <-ctx.Done():
		return status.FeedList{}, ctx.Err()
	}
	return status.Select(all(ctx, c, v), q)
}

// all returns all feeds that are shown, as [cache.Cache.Feeds] has them.
func all(ctx context.Context, c *cache.Cache, v *Viewer) iter.Seq2[status.Feed, error] {
	return func(yield func(status.Feed, error) bool) {
		for f, err := range c.Feeds(ctx, v.shown) {
			if v.Address != nil {
				f.Address = v.Address(string(f.URL))
			}
			f.Pause = nil
			f.URL = feedurl.Redacted(poller.ReadersURL(string(f.URL)))
			if !yield(f, err) || err != nil {
				return
			}
		}
	}
}

func (e *engineSource) Feed(ctx context.Context, v *Viewer, which Which) (status.Feed, []byte, error) {
	c, key, err := e.find(ctx, v, which)
	if err != nil {
		return status.Feed{}, nil, err
	}
	f, body, err := e.engine.Status(ctx, c, key, maxParsed)
	return complete(f, v), body, unknown(err)
}

func (e *engineSource) Refresh(ctx context.Context, v *Viewer, which Which) (status.Result, error) {
	c, key, err := e.find(ctx, v, which)
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

// find returns the key of a feed that these pages show, or [ErrUnknown].
func (e *engineSource) find(ctx context.Context, v *Viewer, which Which) (c *cache.Cache, key string, err error) {
	if c, err = e.engine.Opened(ctx); err != nil {
		return nil, "", err
	}
	if id, ok := parseID(which.ID); ok {
		key, err = c.KeyOf(ctx, id)
	} else if u, invalid := feedurl.ParseWritten(which.URL); invalid != nil || which.ID != "" {
		err = ErrUnknown
	} else if key = u.String(); e.shield != "" {
		key, err = shieldKey(ctx, c, v, key)
	}
	if err == nil && !c.Shows(ctx, key, v.shown) {
		err = ErrUnknown
	}
	return c, key, unknown(err)
}

// shieldKey returns the key of a shield's feed. The URL that readers know is only a part of it.
func shieldKey(ctx context.Context, c *cache.Cache, v *Viewer, url string) (string, error) {
	for f, err := range c.Feeds(ctx, v.shown) {
		if err != nil {
			return "", err
		}
		if known, err := feedurl.Parse(poller.ReadersURL(string(f.URL))); err == nil && known.String() == url {
			return string(f.URL), nil
		}
	}
	return "", ErrUnknown
}

func parseID(text string) (id store.ID, ok bool) {
	if len(text) != 2*len(id) {
		return id, false
	}
	_, err := hex.Decode(id[:], []byte(text))
	return id, err == nil
}

// Readers returns the readers by User-Agent family.
func (e *engineSource) Readers(ctx context.Context, v *Viewer) (status.Readers, error) {
	report := e.engine.Readers(ctx, readers.ReportOptions{Of: v.shownKey, Changes: e.engine.Changes})
	return report.Summary(), nil
}

// maxDays is how many days of traffic are shown.
const maxDays = 400

// Savings returns what origins were spared. Of a gateway, it is the sum over all gateways, or of the feeds that the
// configuration names.
func (e *engineSource) Savings(ctx context.Context, v *Viewer, limit int) (status.Savings, error) {
	counted, named := v.shownKey, v.shownKey
	if e.shield == "" {
		counted, named = func(key string) bool { return !poller.IsShielded(key) }, v.Named
	}
	if v.OnlyNamed {
		counted = named
	}
	traffic := e.engine.Traffic(ctx, counted, named)
	saved := status.Savings{Total: traffic.Total, Days: []status.DayTraffic{}, Origins: []status.OriginTraffic{}}
	for origin, t := range traffic.Origins {
		saved.Origins = append(saved.Origins, status.OriginTraffic{Origin: feedurl.Redacted(origin), Traffic: t})
	}
	slices.SortFunc(saved.Origins, byWhatWasSpared)
	saved.Origins = saved.Origins[:min(len(saved.Origins), limit)]
	var err error
	saved.Days, err = inOrder(traffic.Days)
	saved.Earlier = summed(saved.Days) != saved.Total
	return saved, err
}

// byWhatWasSpared puts origins first that were spared the most requests and bytes.
func byWhatWasSpared(a, b status.OriginTraffic) int {
	return cmp.Or(cmp.Compare(b.Spared(), a.Spared()), cmp.Compare(b.SparedBytes(), a.SparedBytes()), cmp.Compare(a.Origin, b.Origin))
}

func summed(days []status.DayTraffic) (sum status.Traffic) {
	for _, day := range days {
		sum.Add(day.Traffic)
	}
	return sum
}

// inOrder returns traffic by day without gaps, the oldest first.
func inOrder(counts map[string]status.Traffic) ([]status.DayTraffic, error) {
	list, days := []status.DayTraffic{}, slices.Sorted(maps.Keys(counts))
	if len(days) == 0 {
		return list, nil
	}
	first, err := time.Parse(time.DateOnly, days[0])
	last, err2 := time.Parse(time.DateOnly, days[len(days)-1])
	if err := errors.Join(err, err2); err != nil {
		return list, err
	}
	if oldest := last.AddDate(0, 0, -maxDays); first.Before(oldest) {
		first = oldest
	}
	for at := first; !at.After(last); at = at.AddDate(0, 0, 1) {
		list = append(list, status.DayTraffic{Day: at, Traffic: counts[at.Format(time.DateOnly)]})
	}
	return list, nil
}
