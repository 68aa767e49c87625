// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"slices"
	"time"
)

const (
	// prefetchTick is how often due feeds are claimed while there are any.
	prefetchTick = 125 * time.Millisecond
	// backlog is in what time feeds that are overdue are worked off, as far as the
	// bound of polls in flight allows: after a restart no resolver or uplink sees a burst.
	backlog = 2 * time.Minute
	// longestTick bounds for how much time polls may start at once: what the store or the
	// machine has held up is not made up for in a burst.
	longestTick = 4 * prefetchTick
	// minRate is the least rate of it, in polls a second.
	minRate = 8
	// paceWindow is over what time is counted how many feeds come due, and paceWindows
	// how many of the last counts are kept. The least of them is the rate at which feeds
	// come due all the time: what comes due in a heap, by an import or because the
	// network is back, is worked off as a backlog.
	paceWindow  = 15 * time.Second
	paceWindows = 4
)

// pace decides how many polls may start with a tick: as many as feeds come due, and a
// share of those that are overdue.
type pace struct {
	began   time.Duration // of the window
	overdue int64         // then
	claimed int64         // since
	rates   []float64     // feeds that came due in a second, in the last windows
	rest    float64       // of a poll, that the last tick has left
	ticked  time.Duration // when that was
}

// tick returns how many polls may start now.
func (p *pace) tick(now time.Duration, overdue int64) int {
	switch passed := now - p.began; {
	case passed > 2*paceWindow: // the first one, or one after a rest
		*p = pace{began: now, overdue: overdue, ticked: p.ticked}
	case passed >= paceWindow:
		rate := float64(overdue-p.overdue+p.claimed) / passed.Seconds()
		p.rates = append(p.rates, max(0, rate))
		if len(p.rates) > paceWindows {
			p.rates = p.rates[1:]
		}
		p.began, p.overdue, p.claimed = now, overdue, 0
	}
	usual := 0.0
	if len(p.rates) == paceWindows {
		usual = slices.Min(p.rates)
	}
	// Ticks come later than planned by what the store takes to grant polls, and earlier
	// where something has changed.
	passed := min(now-p.ticked, longestTick)
	p.ticked = now
	p.rest += max(minRate, usual+float64(overdue)/backlog.Seconds()) * passed.Seconds()
	n := int(p.rest)
	p.rest -= float64(n)
	return n
}
