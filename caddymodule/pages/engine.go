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
	"sync"
	"time"

	"github.com/feedpollard/pollard/cache"
	"github.com/feedpollard/pollard/cache/feedstate"
	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/caddymodule/poller"
	"github.com/feedpollard/pollard/internal/feedurl"
	"github.com/feedpollard/pollard/internal/readers"
	"github.com/feedpollard/pollard/internal/status"
)

// EngineSource is the running engine as a [Source], as one viewer sees it.
type EngineSource struct {
	*shared
	viewer Viewer
}

// Viewer is who looks at pages, as far as it decides what is shown.
type Viewer struct {
	// Name is the same for viewers that are shown the same feeds.
	Name string
	// Shown decides which feeds are shown.
	Shown cache.Shown
	// Named reports whether the configuration of the gateway names a feed: only of these it is shown
	// how many ask. Nil: of all.
	Named func(key string) bool
	// MayRequest reports whether the viewer may request a URL. Of others that feeds have
	// moved to, only the host is shown. Nil: it may request all.
	MayRequest func(feedurl.URL) bool
	// Address returns the address at the gateway that its operator has chosen for the feed of
	// a key, or "". Nil: there are none.
	Address func(key string) string
}

// shared is what all viewers have in common.
type shared struct {
	engine *poller.Engine
	shield string

	searches chan struct{} // holds a value for each search that is running

	mu      sync.Mutex // guards all below
	counted map[string]*counts
}

type counts struct {
	status.Summary
	until time.Time // when they are too old
}

const (
	// maxSearches bounds the searches at a time: with a million feeds, each takes some
	// seconds of CPU time.
	maxSearches = 2
	// Counting all feeds is repeated after countFor, and not before it has been idle
	// for countFactor times as long as it took.
	countFor    = 2 * time.Second
	countFactor = 20
)

// NewSource returns the running engine as a source, of a shield or, if shield is empty, of a gateway. It
// shows no feed before [EngineSource.For] gives it a viewer.
func NewSource(e *poller.Engine, shield string) *EngineSource {
	return &EngineSource{
		&shared{engine: e, shield: shield, counted: make(map[string]*counts), searches: make(chan struct{}, maxSearches)},
		Viewer{Shown: func(string, string, []feedstate.Group) bool { return false }},
	}
}

// For returns the source as a viewer sees it.
func (e *EngineSource) For(v Viewer) *EngineSource { return &EngineSource{e.shared, v} }

// Summary implements [Source]. It counts the feeds that are shown, and says nothing about the rest
// of the process.
func (e *EngineSource) Summary(ctx context.Context) (status.Summary, error) {
	c, err := e.engine.Opened(ctx)
	if err != nil {
		return status.Summary{}, err
	}
	n, err := e.count(ctx, c)
	if err != nil {
		return status.Summary{}, err
	}
	n.Trouble = e.Trouble()
	return n, nil
}

func (e *EngineSource) Trouble() status.Trouble {
	var shown status.Trouble
	if _, c := poller.Running(); c != nil {
		all := c.Trouble()
		shown = status.Trouble{Offline: all.Offline, StoreAway: all.StoreAway, OfflineSince: all.OfflineSince, StoreAwaySince: all.StoreAwaySince}
	}
	if e.shield != "" {
		shown.Proxies = e.engine.Limiter.Proxies(func(feed string) bool { return e.viewer.Shown(feed, "", nil) })
	}
	return shown
}

func (e *EngineSource) count(ctx context.Context, c *cache.Cache) (status.Summary, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	began := time.Now()
	if known := e.counted[e.viewer.Name]; known != nil && began.Before(known.until) {
		return known.Summary, nil
	}
	n := &counts{Summary: status.Summary{Feeds: make(map[status.State]int64)}}
	for f, err := range c.Feeds(context.WithoutCancel(ctx), e.viewer.Shown) {
		if err != nil {
			return status.Summary{}, err
		}
		n.Feeds[f.State]++
		if !f.NextPoll.IsZero() && !f.NextPoll.After(began) {
			n.Overdue++
		}
	}
	n.until = time.Now().Add(max(countFor, countFactor*time.Since(began)))
	e.counted[e.viewer.Name] = n
	return n.Summary, nil
}

func (e *EngineSource) Feeds(ctx context.Context, q status.Query) (status.FeedList, error) {
	c, err := e.engine.Opened(ctx)
	if err != nil {
		return status.FeedList{}, err
	}
	list, err := e.search(ctx, c, q)
	if err != nil {
		return status.FeedList{}, err
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
		return status.FeedList{}, err
	}
	for _, f := range feeds {
		list.Feeds[places[f.ID]] = e.complete(f)
	}
	return list, nil
}

// complete completes the status of a feed from the cache, and leaves out what the viewer is not shown.
func (e *EngineSource) complete(f status.Feed) status.Feed {
	if f.Pause != nil {
		f.Pause.URL = "" // of a feed that the viewer may not know
	}
	if e.viewer.Address != nil {
		f.Address = e.viewer.Address(string(f.URL))
	}
	if e.viewer.Named != nil && !e.viewer.Named(string(f.URL)) {
		f.Subscribers, f.LastAsked = 0, time.Time{}
	}
	f = poller.Complete(f)
	f.Alias = feedurl.Shown(e.reachable(string(f.Alias)))
	f.Validators.URL = e.reachable(f.Validators.URL)
	return f
}

// reachable returns a URL to which a feed has led, or its host alone if the viewer may not request it.
func (e *EngineSource) reachable(raw string) string {
	if raw == "" || e.viewer.MayRequest == nil {
		return raw
	}
	u, err := feedurl.Parse(raw)
	switch {
	case err != nil:
		return ""
	case !e.viewer.MayRequest(u):
		return u.Name()
	}
	return raw
}

func (e *EngineSource) search(ctx context.Context, c *cache.Cache, q status.Query) (status.FeedList, error) {
	select {
	case e.searches <- struct{}{}:
		defer func() { <-e.searches }()
	case <-ctx.Done():
		return status.FeedList{}, ctx.Err()
	}
	return status.Select(e.all(ctx, c), q)
}

// all returns all feeds that are shown, as [cache.Cache.Feeds] has them.
func (e *EngineSource) all(ctx context.Context, c *cache.Cache) iter.Seq2[status.Feed, error] {
	return func(yield func(status.Feed, error) bool) {
		for f, err := range c.Feeds(ctx, e.viewer.Shown) {
			if e.viewer.Address != nil {
				f.Address = e.viewer.Address(string(f.URL))
			}
			f.Pause = nil
			f.URL = feedurl.Shown(poller.ReadersURL(string(f.URL)))
			if !yield(f, err) || err != nil {
				return
			}
		}
	}
}

func (e *EngineSource) Feed(ctx context.Context, which Which) (status.Feed, []byte, error) {
	c, err := e.engine.Opened(ctx)
	if err != nil {
		return status.Feed{}, nil, err
	}
	key, err := e.key(ctx, c, which)
	if err != nil {
		return status.Feed{}, nil, err
	}
	f, body, err := e.engine.Status(ctx, c, key, maxParsed)
	return e.complete(f), body, unknown(err)
}

func (e *EngineSource) Refresh(ctx context.Context, which Which) (status.Result, error) {
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
func (e *EngineSource) key(ctx context.Context, c *cache.Cache, which Which) (string, error) {
	if which.ID != "" {
		id, ok := parseID(which.ID)
		if !ok {
			return "", ErrUnknown
		}
		key, err := c.KeyOf(ctx, id)
		if err == nil && !c.Shows(ctx, key, e.viewer.Shown) {
			err = ErrUnknown
		}
		return key, unknown(err)
	}
	u, err := feedurl.Parse(which.URL)
	if err != nil {
		return "", ErrUnknown
	}
	if key := u.String(); e.shield == "" {
		if !c.Shows(ctx, key, e.viewer.Shown) {
			return "", ErrUnknown
		}
		return key, nil
	}
	// The URL that readers know is only a part of the key.
	found := ""
	for f, err := range c.Feeds(ctx, e.viewer.Shown) {
		if err != nil {
			return "", err
		}
		k, ok := poller.ParseShieldKey(string(f.URL))
		if ok && k.URL() == u.String() {
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

// Readers implements [Source]. They are grouped by User-Agent family.
func (e *EngineSource) Readers(ctx context.Context) (status.Readers, error) {
	report := e.engine.Readers(ctx, readers.ReportOptions{Of: e.ofShield, Changes: e.engine.Changes})
	return report.Summary(), nil
}

// ofShield reports whether the key of a shield's feed is shown.
func (e *EngineSource) ofShield(key string) bool { return e.viewer.Shown(key, "", nil) }

// maxDays is how many days of traffic are shown.
const maxDays = 400

// Savings implements [Source]. Of a gateway, they are those of all gateways, so that they do not say
// what one person reads.
func (e *EngineSource) Savings(ctx context.Context, limit int) (status.Savings, error) {
	counted, named := e.ofShield, e.ofShield
	if e.shield == "" {
		counted, named = func(key string) bool { return !poller.IsShielded(key) }, e.viewer.Named
	}
	traffic := e.engine.Traffic(ctx, counted, named)
	saved := status.Savings{Total: traffic.Total, Days: []status.DayTraffic{}, Origins: []status.OriginTraffic{}}
	for origin, t := range traffic.Origins {
		saved.Origins = append(saved.Origins, status.OriginTraffic{Origin: feedurl.Shown(origin), Traffic: t})
	}
	slices.SortFunc(saved.Origins, func(a, b status.OriginTraffic) int {
		return cmp.Or(cmp.Compare(b.Spared(), a.Spared()), cmp.Compare(a.Origin, b.Origin))
	})
	saved.Origins = saved.Origins[:min(len(saved.Origins), limit)]
	var err error
	saved.Days, err = inOrder(traffic.Days)
	return saved, err
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

// Interface guard.
var _ Source = (*EngineSource)(nil)
