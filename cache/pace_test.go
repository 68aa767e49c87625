// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"testing"
	"time"
)

// paced runs a pace for a time, in which feeds come due at a rate, and returns how many
// polls started in the last minute. The store takes some time to grant them.
func paced(p *pace, from, length, grant time.Duration, overdue *float64, rate float64) (lastMinute int) {
	tick := prefetchTick + grant
	for now := from; now < from+length; now += tick {
		*overdue += rate * tick.Seconds()
		n := min(p.tick(now, int64(*overdue)), int(*overdue))
		*overdue -= float64(n)
		p.claimed += int64(n)
		if now >= from+length-time.Minute {
			lastMinute += n
		}
	}
	return lastMinute
}

// Feeds are polled as they come due, a backlog is worked off in some minutes beside them, also if the
// store takes as long to grant polls as prefetching waits in between, and a store that was stuck is
// followed by no burst.
func TestPace(t *testing.T) {
	for _, tt := range []struct {
		rate    float64       // of feeds that come due, in a second
		before  time.Duration // the backlog
		backlog float64
		after   time.Duration
		grant   time.Duration
		most    float64 // that are overdue at the end
		polls   float64 // in the last minute, at most
	}{
		{rate: 1, after: 20 * time.Minute, most: 5 + minRate, polls: 61},
		{rate: 12, after: 20 * time.Minute, most: 60 + minRate, polls: 728},
		{rate: 300, after: 20 * time.Minute, most: 1500 + minRate, polls: 18_181},
		{rate: 2000, after: 20 * time.Minute, most: 10_000 + minRate, polls: 121_201},
		{rate: 1, backlog: 120_000, after: time.Minute, most: 80_000, polls: 60 * 1010},
		{rate: 1, before: 10 * time.Minute, backlog: 120_000, after: time.Minute, most: 80_000, polls: 60 * 1010},
		{rate: 1, backlog: 120_000, after: 21 * time.Minute, most: 10, polls: 61},
		{rate: 300, backlog: 14_000, after: 7 * time.Minute, grant: 45 * time.Millisecond, most: 4000, polls: 60 * 400},
		{rate: 300, backlog: 14_000, after: 7 * time.Minute, grant: 200 * time.Millisecond, most: 4000, polls: 60 * 400},
	} {
		var p pace
		var overdue float64
		paced(&p, time.Hour, tt.before, tt.grant, &overdue, tt.rate)
		overdue += tt.backlog
		polls := float64(paced(&p, time.Hour+tt.before, tt.after, tt.grant, &overdue, tt.rate))
		if overdue > tt.most || polls > tt.polls || polls < tt.rate*60*0.99-1 {
			t.Errorf("%+v: %v are overdue at the end, %v polls in the last minute", tt, overdue, polls)
		}
	}
	var p pace
	var overdue float64
	paced(&p, time.Hour, 10*time.Minute, 0, &overdue, 100)
	if n := p.tick(time.Hour+10*time.Minute+20*time.Second, 2000); n > 100 {
		t.Errorf("%d polls start at once", n)
	}
}
