// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/feedpollard/pollard/cache/store/sqlite"
	"github.com/feedpollard/pollard/policy"
)

// clock is the clock of the machine on which the gateway runs. Its monotonic part is the
// bubble's, which stands still while the machine sleeps. The true time, which origins and
// readers have, goes on.
type clock struct {
	slept atomic.Int64 // how long it has slept
	ahead atomic.Int64 // how far its wall clock is ahead of the true time

	// The machine boots only while the gateway does not run.
	boots  int
	since  time.Time     // the last boot, in true time
	before time.Duration // how long it had slept by then
}

// truth returns the true time.
func (c *clock) truth() time.Time { return time.Now().Add(time.Duration(c.slept.Load())) }

func (c *clock) suspended() time.Duration { return time.Duration(c.slept.Load()) - c.before }

func (c *clock) off() time.Duration { return time.Duration(c.ahead.Load()) }

// moment is what all its clocks say.
func (c *clock) moment() sqlite.Reading {
	return sqlite.Reading{Wall: c.truth().Add(c.off()), Since: c.truth().Sub(c.since), Boot: fmt.Sprint("boot ", c.boots)}
}

// reboot boots the machine.
func (c *clock) reboot() {
	c.boots++
	c.since, c.before = c.truth(), time.Duration(c.slept.Load())
}

// now returns the time by the machine's clocks.
func (c *clock) now() time.Time { return reading(c.truth().Add(c.off()), time.Now()) }

// reading returns a time with a monotonic reading, which times in a bubble do not have.
// Package time offers no other way to set one.
func reading(wall, monotonic time.Time) (t time.Time) {
	const hasMonotonic, shift = 1 << 63, 30
	parts := (*struct {
		wall uint64
		ext  int64
		loc  *time.Location
	})(unsafe.Pointer(&t))
	parts.wall = hasMonotonic | uint64(wall.Unix()-first.Unix())<<shift | uint64(wall.Nanosecond())
	parts.ext = int64(monotonic.Sub(bubbles))
	parts.loc = time.UTC
	return t
}

var (
	first   = time.Date(1885, time.January, 1, 0, 0, 0, 0, time.UTC) // from which wall clocks count if there is a monotonic reading
	bubbles = time.Date(1999, time.January, 1, 0, 0, 0, 0, time.UTC) // before bubbles begin
)

// disturb lets the machine sleep, sets its clock, or switches it off and changes its clock
// meanwhile.
func (sim *simulation) disturb() {
	switch sim.rng.IntN(5) {
	case 0:
		sim.suspend(8 * time.Hour)
	case 1:
		sim.suspend(time.Duration(sim.rng.Int64N(int64(20 * time.Minute))))
	case 2:
		sim.step()
	case 3:
		sim.restart(sim.step)
	case 4:
		sim.restart(func() {
			before := sim.clock.off()
			sim.step()
			sim.clock.reboot()
			sim.event("boots")
			if sim.clock.off() > before {
				sim.origins.forgive() // it looks as if that much time has passed
			}
		})
	}
}

// restart stops the gateway, lets something happen to its machine, and starts it again.
func (sim *simulation) restart(happen func()) {
	sim.stop()
	off := time.Duration(sim.rng.Int64N(int64(5 * time.Hour)))
	time.Sleep(off)
	happen()
	sim.start()
	time.Sleep(time.Minute) // until polls that came due meanwhile have begun
}

// forgive permits polls of all resources at once.
func (o *origins) forgive() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, r := range o.resources {
		if r.next.Before(policy.Never) { // gone feeds stay gone
			r.next, r.earliest = time.Time{}, time.Time{}
		}
	}
	for _, m := range o.hosts {
		m.pause, m.spent = time.Time{}, time.Time{}
	}
}

// suspend lets the machine sleep, for no time by its monotonic clock.
func (sim *simulation) suspend(d time.Duration) {
	sim.event("sleeps %v", d)
	sim.clock.slept.Add(int64(d))
	sim.woken()
	time.Sleep(11 * time.Second) // the interval at which the gateway notices it
}

// woken gives the gateway time for polls that came due meanwhile.
func (sim *simulation) woken() {
	sim.mu.Lock()
	defer sim.mu.Unlock()
	sim.since = sim.clock.truth()
}

// step sets the machine's clock: right, or wrong by a second to a year.
func (sim *simulation) step() {
	off := time.Duration(0)
	if sim.rng.IntN(3) > 0 {
		most := []time.Duration{time.Second, time.Minute, time.Hour, day, 7 * day, 365 * day}
		off = time.Duration(1 + sim.rng.Int64N(int64(most[sim.rng.IntN(len(most))])))
		if sim.rng.IntN(2) == 0 {
			off = -off
		}
	}
	sim.event("its clock is set to %v off", off)
	sim.clock.ahead.Store(int64(off))
	sim.mu.Lock()
	defer sim.mu.Unlock()
	sim.stepped = sim.clock.truth()
}

// slack is by how much a time that is shown may be off: the gateway ignores a clock that
// was set by less than a second.
func (sim *simulation) slack() time.Duration {
	if sim.laptop {
		return time.Second
	}
	return 0
}

// justStepped reports whether polls may be under way that began before the clock was set.
func (sim *simulation) justStepped(now time.Time) bool {
	sim.mu.Lock()
	defer sim.mu.Unlock()
	return now.Sub(sim.stepped) < 10*time.Minute
}

// Some days on a laptop that sleeps at night, and whose clock is set now and then by up to
// a year, also while the gateway does not run or the machine is off: no poll comes early.
func TestLaptop(t *testing.T) {
	disturbed := func(sim *simulation) {
		sim.laptop = true
		// By a clock that is behind, entries are in the future.
		delete(sim.origins.resources, "http://daily.test/feed")
		sim.feeds = slices.DeleteFunc(sim.feeds, func(s *feed) bool { return s.dated })
	}
	for i := range *seeds {
		resources := slices.Concat(hintedFeeds(), neighbours(), slices.DeleteFunc(brokenFeeds(), func(r *resource) bool { return r.noisy || r.ignoresETag || r.never304 }))
		simulation := func(t *testing.T) {
			simulate(t, *firstSeed+uint64(i), resources, func(sim *simulation) {
				sim.live(6, 4*day)
				sim.settle()
			}, disturbed)
		}
		t.Run(fmt.Sprintf("seed=%d", *firstSeed+uint64(i)), simulation)
	}
}
