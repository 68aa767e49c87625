// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"testing"
	"time"
)

// paced runs a pace for a time, in which feeds come due at a rate, and returns how many
// polls started in the last minute and how many feeds are overdue at the end.
func paced(p *pace, from, length time.Duration, overdue *float64, rate float64) (lastMinute int) {
	for now := from; now < from+length; now += prefetchTick {
		*overdue += rate * prefetchTick.Seconds()
		n := min(p.tick(now, int64(*overdue)), int(*overdue))
		*overdue -= float64(n)
		p.claimed += int64(n)
		if now >= from+length-time.Minute {
			lastMinute += n
		}
	}
	return lastMinute
}

func TestPaceKeepsUp(t *testing.T) {
	for _, rate := range []float64{1, 12, 300, 2000} {
		var p pace
		var overdue float64
		polls := paced(&p, time.Hour, 20*time.Minute, &overdue, rate)
		if want := rate * 60; float64(polls) < want*0.99-1 || float64(polls) > want*1.01+1 {
			t.Errorf("%v feeds a second: got %d polls in a minute, want %v", rate, polls, want)
		}
		if overdue > 5*rate+minRate {
			t.Errorf("%v feeds a second: %v are overdue after twenty minutes", rate, overdue)
		}
	}
}

// Feeds that are due all at once are worked off in some minutes, and never at more than
// the rate of a backlog.
func TestPaceOfABacklog(t *testing.T) {
	for _, before := range []time.Duration{0, 10 * time.Minute} {
		var p pace
		var overdue float64
		paced(&p, time.Hour, before, &overdue, 1)
		overdue += 120_000
		first := paced(&p, time.Hour+before, time.Minute, &overdue, 1)
		if first > 60*1010 || first < 40_000 {
			t.Errorf("after %s: got %d polls in the first minute of a backlog of 120000", before, first)
		}
		paced(&p, time.Hour+before+time.Minute, 20*time.Minute, &overdue, 1)
		if overdue > 10 {
			t.Errorf("after %s: %v are overdue at the end", before, overdue)
		}
	}
}
