// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"sync"
	"time"
)

// clock measures gaps and pauses. It advances with the monotonic clock and with the time
// that the machine was suspended, in which that one stands still. It starts with the
// time of the wall clock and does not follow later changes of it.
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

// now returns the current time, without a monotonic reading.
func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.suspended != nil {
		// The two clocks are not read at the same time, so small differences do not count.
		if asleep := c.suspended(); asleep-c.asleep >= time.Second {
			c.missed += asleep - c.asleep
			c.asleep = asleep
		}
	}
	return c.start.Round(0).Add(c.system().Sub(c.start) + c.missed)
}

// wall returns the time that the system's clock will show at a time of this clock.
func (c *clock) wall(t time.Time) time.Time { return c.system().Add(t.Sub(c.now())) }
