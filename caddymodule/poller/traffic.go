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

const (
	// maxTrafficDays is for how many days the gateways and each shield have a count of
	// their own. maxTrafficOrigins bounds the origins that have one. The rest is summed up.
	maxTrafficDays    = 400
	maxTrafficOrigins = 20_000
)

// trafficKey is what traffic is counted for: a day or an origin.
type trafficKey struct {
	Shield string `json:"shield,omitempty"` // empty: the gateways
	Day    string `json:"day,omitempty"`    // a date, GMT
	Origin string `json:"origin,omitempty"`
}

const rest = "rest" // the days or origins that are not kept one by one

// savedTraffic is traffic as it is saved.
type savedTraffic struct {
	trafficKey
	status.Traffic
}

// traffic counts traffic by day and by origin. It is safe for concurrent use.
type traffic struct {
	mu      sync.Mutex
	days    map[trafficKey]status.Traffic
	origins map[trafficKey]status.Traffic
}

func newTraffic() *traffic {
	return &traffic{days: make(map[trafficKey]status.Traffic), origins: make(map[trafficKey]status.Traffic)}
}

// count adds to the traffic of a feed on a day.
func (t *traffic) count(feed string, now time.Time, more status.Traffic) {
	origin, shield := originOfKey(feed)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.addDay(trafficKey{Shield: shield, Day: now.UTC().Format(time.DateOnly)}, more)
	t.addOrigin(trafficKey{Shield: shield, Origin: origin}, more)
}

func (t *traffic) addDay(key trafficKey, more status.Traffic) {
	sum := t.days[key]
	sum.Add(more)
	t.days[key] = sum
}

func (t *traffic) addOrigin(key trafficKey, more status.Traffic) {
	if _, known := t.origins[key]; !known && len(t.origins) >= maxTrafficOrigins {
		key.Origin = rest
	}
	sum := t.origins[key]
	sum.Add(more)
	t.origins[key] = sum
}

// countPoll counts a poll.
func (t *traffic) countPoll(p *cache.Poll) {
	if p.Result != status.ResultUnsent {
		t.count(p.URL, time.Now(), status.Traffic{Polls: 1, Fetched: p.Wire})
	}
}

// countAnswers counts the answers to the readers of a feed.
func (t *traffic) countAnswers(s readers.Served) {
	t.count(s.Feed, time.Now(), status.Traffic{Requests: s.Answers, Served: s.Bytes})
}

// resume adds the saved counts of an earlier process.
func (t *traffic) resume(saved []savedTraffic) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, s := range saved {
		if s.Day != "" {
			t.addDay(s.trafficKey, s.Traffic)
		} else {
			t.addOrigin(s.trafficKey, s.Traffic)
		}
	}
}

// saved returns the traffic of up to limit origins, those with the most requests and
// polls, and of the latest limit days. The others are summed up. Days before the last
// maxTrafficDays are summed up in memory too.
func (t *traffic) saved(now time.Time, limit int) []savedTraffic {
	t.mu.Lock()
	defer t.mu.Unlock()
	oldest := now.UTC().AddDate(0, 0, -maxTrafficDays).Format(time.DateOnly)
	for key, sum := range t.days {
		if key.Day < oldest { // "rest" is greater
			delete(t.days, key)
			key.Day = rest
			t.addDay(key, sum)
		}
	}
	days := bounded(t.days, limit, func(k *trafficKey) { k.Day = rest }, func(a, b savedTraffic) int { return cmp.Compare(b.Day, a.Day) })
	origins := bounded(t.origins, limit, func(k *trafficKey) { k.Origin = rest }, func(a, b savedTraffic) int {
		return cmp.Compare(b.Requests+b.Polls, a.Requests+a.Polls)
	})
	return append(days, origins...)
}

// bounded returns the first entries in an order, and the sums of the others.
func bounded(sums map[trafficKey]status.Traffic, limit int, toRest func(*trafficKey), order func(a, b savedTraffic) int) []savedTraffic {
	list := make([]savedTraffic, 0, len(sums))
	for key, sum := range sums {
		list = append(list, savedTraffic{key, sum})
	}
	slices.SortFunc(list, order)
	short := slices.Clone(list[:min(len(list), limit)])
	others := make(map[trafficKey]status.Traffic)
	for _, s := range list[len(short):] {
		toRest(&s.trafficKey)
		sum := others[s.trafficKey]
		sum.Add(s.Traffic)
		others[s.trafficKey] = sum
	}
	for key, sum := range others {
		short = append(short, savedTraffic{key, sum})
	}
	return short
}

// originOfKey returns the origin of a feed as its readers see it, and its shield, if any.
func originOfKey(key string) (origin, shield string) {
	if k, ok := ParseShieldKey(key); ok {
		return k.Scheme + "://" + k.Host, k.Shield
	}
	u, err := feedurl.Parse(key)
	if err != nil {
		return "", ""
	}
	return u.Origin(), ""
}

// TrafficReport is the traffic of the gateways or of a shield, on all nodes.
type TrafficReport struct {
	Total   status.Traffic
	Days    map[string]status.Traffic // by date, GMT; days of long ago are in the total only
	Origins map[string]status.Traffic // those with little traffic may be missing
}

// Traffic returns the traffic of a shield, or of all gateways if that is empty.
func (e *Engine) Traffic(ctx context.Context, shield string) TrafficReport {
	c := e.counters
	c.feeds.Take(c.traffic.countAnswers)
	all := c.traffic.saved(time.Now(), maxTrafficOrigins)
	for _, other := range c.merged(ctx) {
		all = append(all, other.Traffic...)
	}
	report := TrafficReport{Days: make(map[string]status.Traffic), Origins: make(map[string]status.Traffic)}
	for _, s := range all {
		if s.Shield != shield {
			continue
		}
		sums, name := report.Origins, s.Origin
		if s.Day != "" {
			sums, name = report.Days, s.Day
			report.Total.Add(s.Traffic)
		}
		sum := sums[name]
		sum.Add(s.Traffic)
		sums[name] = sum
	}
	delete(report.Days, rest)
	delete(report.Origins, rest)
	return report
}
