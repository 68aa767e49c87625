// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package caddymodule_test

import (
	"flag"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/feedpollard/pollard/cache/store/bolt"
	"github.com/feedpollard/pollard/policy"
)

var laptop = flag.Bool("laptop", false, "simulate whole fortnights on a machine that sleeps and whose clock is set")

// clock is that of the machine on which the gateway runs. Its monotonic clock is the
// bubble's. While the machine sleeps that one stands still, and the truth, which
// origins and readers go by, goes on.
type clock struct {
	slept atomic.Int64 // how long it has slept
	ahead atomic.Int64 // of the truth, by its wall clock

	// Of the machine's present life, which begins while the gateway does not run.
	boots  int
	since  time.Time     // in truth
	before time.Duration // slept until then
}

// truth is the time that it is.
func (c *clock) truth() time.Time { return time.Now().Add(time.Duration(c.slept.Load())) }

func (c *clock) suspended() time.Duration { return time.Duration(c.slept.Load()) - c.before }

func (c *clock) off() time.Duration { return time.Duration(c.ahead.Load()) }

func (c *clock) booted() bolt.Boot {
	return bolt.Boot{ID: fmt.Sprint("boot ", c.boots), Ago: c.truth().Sub(c.since)}
}

// reboot begins another life of the machine.
func (c *clock) reboot() {
	c.boots++
	c.since, c.before = c.truth(), time.Duration(c.slept.Load())
}

// now is what the machine's clocks say.
func (c *clock) now() time.Time { return reading(c.truth().Add(c.off()), time.Now()) }

// reading is a time with a monotonic reading, which times in a bubble do not have: its
// two clocks are parts of one value that can be set apart in no other way.
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
	first   = time.Date(1885, time.January, 1, 0, 0, 0, 0, time.UTC) // of walls with a monotonic reading
	bubbles = time.Date(1999, time.January, 1, 0, 0, 0, 0, time.UTC) // before they begin
)

func TestReading(t *testing.T) {
	wall, monotonic := time.Date(2031, 5, 6, 7, 8, 9, 10, time.UTC), bubbles.Add(time.Hour)
	before, after := reading(wall, monotonic), reading(wall.Add(-time.Minute), monotonic.Add(time.Second))
	if got := after.Sub(before); got != time.Second {
		t.Errorf("%v passed, want a second", got)
	}
	if got := after.Round(0); !got.Equal(wall.Add(-time.Minute)) {
		t.Errorf("the wall clock says %v", got)
	}
}

// disturb is what happens to the clocks of a machine: its lid is closed for the night,
// somebody sets its clock, or it is off, and its clock is another one afterwards.
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
				sim.web.forgive() // nothing tells that so much time has not passed
			}
		})
	}
}

// restart ends the gateway, and starts it again when something has happened to its
// machine.
func (sim *simulation) restart(happen func()) {
	sim.stop()
	off := time.Duration(sim.rng.Int64N(int64(5 * time.Hour)))
	sim.lost += off
	time.Sleep(off)
	happen()
	sim.start()
	time.Sleep(time.Minute) // what is due is looked at once more
}

// forgive lets everything be asked at once.
func (o *web) forgive() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, r := range o.resources {
		if r.next.Before(policy.Never) { // what is gone remains so
			r.next, r.firmNext = time.Time{}, time.Time{}
		}
	}
	for _, m := range o.machines {
		m.pause = time.Time{}
	}
}

// suspend lets the machine sleep. It wakes up at once, by its monotonic clock.
func (sim *simulation) suspend(d time.Duration) {
	sim.event("sleeps %v", d)
	sim.clock.slept.Add(int64(d))
	sim.lost += d
	sim.woken()
	time.Sleep(11 * time.Second) // so often it looks whether it has slept
}

// woken gives the gateway time for what has come due.
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

// slack is by how much a time that is shown may be off: of a clock that was set by less
// than a second nobody takes notice.
func (sim *simulation) slack() time.Duration {
	if sim.laptop {
		return time.Second
	}
	return 0
}

// justStepped reports whether polls may be under way that were begun by another clock.
func (sim *simulation) justStepped(now time.Time) bool {
	sim.mu.Lock()
	defer sim.mu.Unlock()
	return now.Sub(sim.stepped) < 10*time.Minute
}

// Some days on a laptop, which sleeps at night and whose clock is set now and then by up
// to a year, also while the gateway does not run, or the machine: origins see no
// difference.
func TestLaptop(t *testing.T) {
	disturbed := func(sim *simulation) {
		sim.laptop = true
		// A clock that is behind takes the entries of weeks for announcements.
		delete(sim.web.resources, "http://weekly.test/feed")
		sim.subjects = slices.DeleteFunc(sim.subjects, func(s *subject) bool { return s.dated })
	}
	if *laptop {
		fortnights(t, disturbed)
		return
	}
	for i := range *seeds {
		resources := slices.Concat(hintedFeeds(), neighbours(), slices.DeleteFunc(brokenFeeds(), func(r *resource) bool { return r.noisy || r.deaf || r.heedless }))
		simulation := func(t *testing.T) {
			simulate(t, *firstSeed+uint64(i), resources, func(sim *simulation) {
				sim.live(6, 6*day)
				sim.settle()
			}, disturbed)
		}
		t.Run(fmt.Sprintf("seed=%d", *firstSeed+uint64(i)), simulation)
	}
}
