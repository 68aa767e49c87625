// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

// Package clock reads the clocks of the machine. Go's own clock does not count the time in
// which some machines sleep, and feeds are due after a sleep all the same.
package clock

import "time"

// Reading is what the clocks of a machine show.
type Reading struct {
	Wall  time.Time     // people and programs set it
	Since time.Duration // the machine was booted; sleep counts
	Boot  string        // no other life of the machine has it; empty: not known
}

// System reads the clocks of this machine. Time in a bubble of testing/synctest, which has
// no monotonic reading, is that of another machine, which never sleeps.
func System() Reading {
	now := time.Now()
	if now == now.Round(0) {
		return Reading{Wall: now, Since: now.Sub(bubbles), Boot: "bubble"}
	}
	return Reading{Wall: now, Since: sinceBoot(), Boot: boot()}
}

// bubbles is when time begins in a bubble.
var bubbles = time.Date(2000, time.January, 1, 0, 0, 0, 0, time.UTC)

// Suspended returns how long the machine has slept since some moment, as far as package time
// does not count that time.
func Suspended() time.Duration {
	now := time.Now()
	if now == now.Round(0) {
		return 0
	}
	since := sinceBoot() // first: a moment between the two readings must not count as sleep
	return (since - time.Since(start)).Truncate(time.Millisecond)
}

var start = time.Now()
