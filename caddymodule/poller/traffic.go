// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package poller

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/feedpollard/pollard/cache"
	"github.com/feedpollard/pollard/internal/feedurl"
	"github.com/feedpollard/pollard/internal/readers"
	"github.com/feedpollard/pollard/internal/status"
)

// maxTraffic bounds the counts in memory. If there are more, days of long ago are summed up.
const maxTraffic = 20_000

// trafficKey is what traffic is counted for.
type trafficKey struct {
	Feed string `json:"feed,omitempty"` // its key
	Day  string `json:"day,omitempty"`  // a date, GMT; empty: days of long ago
}

type savedTraffic struct {
	trafficKey
	status.Traffic
}

// traffic counts traffic by feed and day. It is safe for concurrent use.
type traffic struct {
	mu     sync.Mutex
	counts map[trafficKey]status.Traffic
}

func (t *traffic) count(feed string, now time.Time, more status.Traffic) {
	t.mu.Lock()
	defer t.mu.Unlock()
	addTraffic(t.counts, trafficKey{feed, now.UTC().Format(time.DateOnly)}, more)
	if len(t.counts) > maxTraffic {
		short := bounded(t.counts, maxTraffic/2)
		clear(t.counts)
		for _, s := range short {
			t.counts[s.trafficKey] = s.Traffic
		}
	}
}

func (t *traffic) countPoll(p *cache.Poll) {
	if p.Result != status.ResultUnsent {
		t.count(p.URL, time.Now(), status.Traffic{Polls: 1, Fetched: p.Wire})
	}
}

func (t *traffic) countAnswers(s readers.Served) {
	t.count(s.Feed, time.Now(), status.Traffic{Requests: s.Answers, Served: s.Bytes})
}

// resume adds the saved counts of an earlier process.
func (t *traffic) resume(saved []savedTraffic) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, s := range saved {
		addTraffic(t.counts, s.trafficKey, s.Traffic)
	}
}

func (t *traffic) saved(limit int) []savedTraffic {
	t.mu.Lock()
	defer t.mu.Unlock()
	return bounded(t.counts, limit)
}

// bounded returns counts as at most limit counts. As many of the latest days as possible are
// kept; those before are summed up by feed. If that is not enough, the feeds with the
// fewest requests and polls are left out.
func bounded(counts map[trafficKey]status.Traffic, limit int) []savedTraffic {
	list, feeds := make([]savedTraffic, 0, len(counts)), make(map[string]bool)
	for key, sum := range counts {
		list = append(list, savedTraffic{key, sum})
		feeds[key.Feed] = true
	}
	if len(list) <= limit {
		return list
	}
	slices.SortFunc(list, func(a, b savedTraffic) int { return cmp.Compare(b.Day, a.Day) })
	kept := max(0, limit-len(feeds))
	for kept > 0 && list[kept].Day == list[kept-1].Day {
		kept-- // no day is kept in part
	}
	sums := make(map[string]status.Traffic)
	for _, s := range list[kept:] {
		addTraffic(sums, s.Feed, s.Traffic)
	}
	short := slices.Clone(list[:kept])
	for feed, sum := range sums {
		short = append(short, savedTraffic{trafficKey{Feed: feed}, sum})
	}
	slices.SortFunc(short, func(a, b savedTraffic) int { return cmp.Compare(b.Requests+b.Polls, a.Requests+a.Polls) })
	return short[:min(len(short), limit)]
}

// originOfKey returns the origin of a feed as its readers see it.
func originOfKey(key string) string {
	if k, ok := ParseShieldKey(key); ok {
		return k.Scheme + "://" + k.Host
	}
	u, err := feedurl.Parse(key)
	if err != nil {
		return ""
	}
	return u.Origin()
}

// TrafficReport is the traffic of some feeds, on all nodes.
type TrafficReport struct {
	Total   status.Traffic
	Days    map[string]status.Traffic // by date, GMT; days of long ago are in the total only
	Origins map[string]status.Traffic
}

// Traffic returns the traffic of the feeds that are counted, and by origin of those that are
// named too. Feeds with little traffic may be missing.
func (e *Engine) Traffic(ctx context.Context, counted, named func(feed string) bool) TrafficReport {
	c := e.counters
	c.countAnswers()
	c.feeds.Take(c.traffic.countAnswers)
	all := c.traffic.saved(maxTraffic)
	for _, other := range c.merged(ctx) {
		all = append(all, other.Traffic...)
	}
	report := TrafficReport{Days: make(map[string]status.Traffic), Origins: make(map[string]status.Traffic)}
	for _, s := range all {
		if s.Feed == "" || !counted(s.Feed) { // "" is what an earlier version has summed up
			continue
		}
		report.Total.Add(s.Traffic)
		if named(s.Feed) {
			addTraffic(report.Origins, originOfKey(s.Feed), s.Traffic)
		}
		if s.Day != "" {
			addTraffic(report.Days, s.Day, s.Traffic)
		}
	}
	return report
}

func addTraffic[K comparable](sums map[K]status.Traffic, key K, more status.Traffic) {
	sum := sums[key]
	sum.Add(more)
	sums[key] = sum
}
