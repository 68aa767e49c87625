// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"testing"
	"time"
)

// Feeds that come due are polled within a few minutes, a backlog is worked off beside them, also if the
// store takes as long to grant polls as prefetching waits in between, and a store that was stuck is
// followed by no burst.
func TestPace(t *testing.T) {
	for _, tt := range []struct {
		rate    float64 // of feeds that come due, in a second
		backlog float64
		length  time.Duration
		grant   time.Duration // that the store takes
		overdue float64       // in the end, at most
		polls   float64       // in the last minute, at most
	}{
		{rate: 1, length: 20 * time.Minute, overdue: minRate, polls: 61},
		{rate: 12, length: 20 * time.Minute, overdue: 12*125 + minRate, polls: 728},
		{rate: 2000, length: 20 * time.Minute, overdue: 2000 * 125, polls: 121_201},
		{rate: 1, backlog: 120_000, length: time.Minute, overdue: 80_000, polls: 60 * 1010},
		{rate: 1, backlog: 120_000, length: 21 * time.Minute, overdue: 10, polls: 61},
		{rate: 300, backlog: 14_000, length: 10 * time.Minute, grant: 200 * time.Millisecond, overdue: 40_000, polls: 60 * 301},
	} {
		var p pace
		overdue, polls, tick := tt.backlog, 0.0, prefetchTick+tt.grant
		for passed := tick; passed < tt.length; passed += tick {
			overdue += tt.rate * tick.Seconds()
			n := min(float64(p.tick(time.Hour+passed, int64(overdue), 1000)), overdue)
			if overdue -= n; passed >= tt.length-time.Minute {
				polls += n
			}
		}
		if overdue > tt.overdue || polls > tt.polls || polls < tt.rate*60*0.99-1 {
			t.Errorf("%+v: %v are overdue in the end, %v polls in the last minute", tt, overdue, polls)
		}
		if n := p.tick(time.Hour+tt.length+20*time.Second, 2000, 1000); n > 100 {
			t.Errorf("%d polls start at once", n)
		}
	}
}
