// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package poller

import (
	"maps"
	"sync"
	"time"

	"github.com/feedpollard/pollard/cache"
	"github.com/feedpollard/pollard/caddymodule/shieldkey"
	"github.com/feedpollard/pollard/feedurl"
)

// Traffic is what readers of gateways asked for, and what of it reached origins.
type Traffic struct {
	Requests int64 // that were answered with a feed or a 304
	Polls    int64
	Served   int64 // bytes, to readers
	Fetched  int64 // bytes, from origins
}

const (
	trafficDays    = 400
	trafficOrigins = 20_000
)

// traffic counts since the start of the process. Requests are not counted once more:
// what has come of them since the last look belongs to the day of this one.
type traffic struct {
	mu      sync.Mutex
	seen    Traffic
	days    map[time.Time]Traffic // by their beginning, GMT
	origins map[string]Traffic    // polls, by the origin of the feed and the name of a shield before it
}

func newTraffic() *traffic {
	return &traffic{days: make(map[time.Time]Traffic), origins: make(map[string]Traffic)}
}

// look counts the requests of gateways up to now.
func (t *traffic) look(s sums, now time.Time) (day time.Time) {
	requests := int64(s.results[ResultHit] + s.results[ResultNotModified] + s.results[ResultStale] + s.results[ResultMiss])
	day = now.UTC().Truncate(24 * time.Hour)
	d := t.days[day]
	d.Requests += requests - t.seen.Requests
	d.Served += int64(s.bytes) - t.seen.Served
	t.seen.Requests, t.seen.Served = requests, int64(s.bytes)
	t.days[day] = d
	for old := range t.days {
		if day.Sub(old) > trafficDays*24*time.Hour {
			delete(t.days, old)
		}
	}
	return day
}

// countPoll counts a poll.
func (e *Engine) countPoll(p *cache.Poll) {
	if p.Result == cache.ResultUnsent {
		return
	}
	origin, shield := originOfKey(p.URL)
	t := e.traffic
	t.mu.Lock()
	defer t.mu.Unlock()
	if shield == "" {
		day := t.look(e.metrics.gateway.sum(), time.Now())
		d := t.days[day]
		d.Polls, d.Fetched = d.Polls+1, d.Fetched+p.Wire
		t.days[day] = d
	}
	o, known := t.origins[origin]
	if known || len(t.origins) < trafficOrigins {
		o.Polls, o.Fetched = o.Polls+1, o.Fetched+p.Wire
		t.origins[origin] = o
	}
}

// originOfKey is the origin that the feed of a key has for its readers, behind the
// prefix of the shield that stands before it.
func originOfKey(key string) (origin, shield string) {
	if k, ok := shieldkey.Parse(key); ok {
		return shieldkey.Prefix(k.Shield) + k.Scheme + "://" + k.Host, k.Shield
	}
	u, err := feedurl.Parse(key)
	if err != nil {
		return "", ""
	}
	return u.Origin(), ""
}

// OriginOfKey is the origin that the feed of a key of the engine counts for in
// [Engine.Traffic].
func OriginOfKey(key string) string {
	origin, _ := originOfKey(key)
	return origin
}

// Traffic returns the traffic of gateways by day, and the polls of all feeds by
// origin, since the start of the process.
func (e *Engine) Traffic() (days map[time.Time]Traffic, polls map[string]Traffic) {
	t := e.traffic
	t.mu.Lock()
	defer t.mu.Unlock()
	t.look(e.metrics.gateway.sum(), time.Now())
	return maps.Clone(t.days), maps.Clone(t.origins)
}
