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

func TestPaceKeepsUp(t *testing.T) {
	for _, rate := range []float64{1, 12, 300, 2000} {
		var p pace
		var overdue float64
		polls := paced(&p, time.Hour, 20*time.Minute, 0, &overdue, rate)
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
		paced(&p, time.Hour, before, 0, &overdue, 1)
		overdue += 120_000
		first := paced(&p, time.Hour+before, time.Minute, 0, &overdue, 1)
		if first > 60*1010 || first < 40_000 {
			t.Errorf("after %s: got %d polls in the first minute of a backlog of 120000", before, first)
		}
		paced(&p, time.Hour+before+time.Minute, 20*time.Minute, 0, &overdue, 1)
		if overdue > 10 {
			t.Errorf("after %s: %v are overdue at the end", before, overdue)
		}
	}
}

// A backlog shrinks while other feeds go on coming due, also where the store takes as
// long to grant polls as the prefetching waits in between.
func TestPaceOfABacklogUnderLoad(t *testing.T) {
	for _, grant := range []time.Duration{0, 45 * time.Millisecond, 200 * time.Millisecond} {
		const rate = 300
		var p pace
		overdue := 14_000.0
		paced(&p, time.Hour, 2*time.Minute, grant, &overdue, rate)
		polls := paced(&p, time.Hour+2*time.Minute, 5*time.Minute, grant, &overdue, rate)
		if overdue > 4000 {
			t.Errorf("grants take %v: %.0f are overdue after seven minutes", grant, overdue)
		}
		if polls > 60*400 {
			t.Errorf("grants take %v: %d polls in the last minute", grant, polls)
		}
	}
}

// A store that was stuck is followed by no burst.
func TestPaceAfterAStuckStore(t *testing.T) {
	var p pace
	var overdue float64
	paced(&p, time.Hour, 10*time.Minute, 0, &overdue, 100)
	if n := p.tick(time.Hour+10*time.Minute+20*time.Second, 2000); n > 100 {
		t.Errorf("%d polls start at once", n)
	}
}
