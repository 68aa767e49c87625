// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"sync/atomic"
	"time"

	"github.com/feedpollard/pollard/internal/clock"
)

// sinceStart measures the time that feeds are scheduled by. Package time may not count the
// time in which the machine sleeps, which feeds must notice: what it misses is added.
type sinceStart struct {
	now       func() time.Time
	suspended func() time.Duration
	start     time.Time
	asleep    time.Duration // suspended before the start
	missed    atomic.Int64  // suspended since, as of the last look
}

func newClock(now func() time.Time, suspended func() time.Duration) sinceStart {
	if suspended == nil {
		suspended = clock.Suspended
	}
	return sinceStart{now: now, suspended: suspended, start: now(), asleep: suspended()}
}

// elapsed returns the time that feeds are scheduled by. Steps of the wall clock do not change it.
func (c *sinceStart) elapsed() time.Duration { return c.elapsedAt(c.now()) }

// elapsedAt returns that time at a reading of the clock.
func (c *sinceStart) elapsedAt(now time.Time) time.Duration {
	return now.Sub(c.start) + time.Duration(c.missed.Load())
}

// look asks the system how long the machine has been suspended. It reports whether
// that has grown by more than a moment.
func (c *sinceStart) look() bool {
	missed := int64(c.suspended() - c.asleep)
	for {
		before := c.missed.Load()
		if missed <= before {
			return false // as of another look
		}
		if c.missed.CompareAndSwap(before, missed) {
			return missed-before > int64(time.Second)
		}
	}
}
