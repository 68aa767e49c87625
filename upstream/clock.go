// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"sync"
	"time"
)

// clock is what gaps and pauses are kept by. It advances with the monotonic clock and
// with the time that the machine was suspended, for which that one stands still. It
// begins with the wall clock, and does not care who sets that afterwards.
type clock struct {
	system    func() time.Time
	suspended func() time.Duration // since some moment; nil: never
	start     time.Time

	mu     sync.Mutex
	asleep time.Duration // suspended, as of the last look
	missed time.Duration // by the monotonic clock since the start
}

func newClock(system func() time.Time, suspended func() time.Duration) *clock {
	c := &clock{system: system, suspended: suspended, start: system()}
	if suspended != nil {
		c.asleep = suspended()
	}
	return c
}

// now is the present moment, without a monotonic reading.
func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.suspended != nil {
		// Two clocks are read one after the other: a difference of less is their reading.
		if asleep := c.suspended(); asleep-c.asleep >= time.Second {
			c.missed += asleep - c.asleep
			c.asleep = asleep
		}
	}
	return c.start.Round(0).Add(c.system().Sub(c.start) + c.missed)
}

// wall is the time that the system's clock will show at a moment of this one.
func (c *clock) wall(t time.Time) time.Time { return c.system().Add(t.Sub(c.now())) }
