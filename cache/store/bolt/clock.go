// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package bolt

import (
	"encoding/binary"
	"sync"
	"time"

	"github.com/feedpollard/pollard/cache/store/internal/schedule"
)

// clock is the store's own scale of time, which never goes back and jumps forward
// only over time in which the store was closed. Everything durable is on it.
//
// While the process runs, the scale advances with the monotonic clock and with the
// time that the machine was suspended: whoever sets the wall clock meanwhile changes
// nothing. From one process to the next it advances by the time since the machine was
// booted, so that setting the wall clock changes nothing then either. Only where it was
// booted in between the wall clock must do: the scale advances by its difference, but
// not where that went back, and by [maxAway] at most. A clock that was a year ahead or
// behind when something was written can therefore not move what is due by a year,
// provided that each step of the wall clock is written down: see [clock.stepped].
type clock struct {
	wall      func() time.Time     // set by people, and by programs in their name
	steady    func() time.Duration // since some moment; does not count suspension
	suspended func() time.Duration // since some moment
	booted    func() Boot          // nil: not known

	mu     sync.Mutex
	base   schedule.Time // at steady 0
	slept  time.Duration // suspended, as of the last look
	latest schedule.Time // that has been told to anybody
}

// maxAway is the longest time between two processes for which the wall clock is believed.
// It is as long as the longest pause that an origin can ask for. More would only have
// feeds forgotten for which nobody could ask while the machine was off, or since a time
// that a wrong clock has made up.
const maxAway = 7 * 24 * time.Hour

// Boot is a life of the machine.
type Boot struct {
	ID  string        // no other life has it; empty: not known
	Ago time.Duration // since it began, suspension included
}

// stamp is a moment on all scales.
type stamp struct {
	scale schedule.Time
	wall  time.Time
	boot  Boot
}

// newClock starts a clock by now, with its monotonic reading where it has one.
func newClock(now func() time.Time, suspended func() time.Duration, booted func() Boot) *clock {
	began := now()
	return &clock{
		wall:      now,
		steady:    func() time.Duration { return now().Sub(began) },
		suspended: suspended,
		booted:    booted,
		slept:     suspended(),
	}
}

// resume continues the scale of an earlier process. It reports whether the time in
// between is not known, as the wall clock has gone back.
func (c *clock) resume(last stamp) (wentBack bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.slept = c.suspended()
	away := min(c.wall().Round(0).Sub(last.wall), maxAway)
	if boot := c.boot(); boot.ID != "" && boot.ID == last.boot.ID && boot.Ago >= last.boot.Ago {
		away = boot.Ago - last.boot.Ago
	}
	c.base = last.scale.Add(max(0, away)).Add(-c.steady())
	c.latest = last.scale
	return away < 0
}

// now is the moment on the store's scale.
func (c *clock) now() schedule.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	// Two clocks are read one after the other: a difference of less is their reading.
	if slept := c.suspended(); slept-c.slept >= time.Second {
		c.base = c.base.Add(slept - c.slept)
		c.slept = slept
	}
	c.latest = max(c.latest, c.base.Add(c.steady()))
	return c.latest
}

// stamp is the present moment.
func (c *clock) stamp() stamp {
	return stamp{scale: c.now(), wall: c.wall().Round(0), boot: c.boot()}
}

func (c *clock) boot() Boot {
	if c.booted == nil {
		return Boot{}
	}
	return c.booted()
}

// stepped reports whether the wall clock has been set since last, by more than what
// clocks are off after a minute.
func (c *clock) stepped(last stamp) bool {
	is := c.stamp()
	step := is.wall.Sub(last.wall) - is.scale.Sub(last.scale)
	return step > time.Second || step < -time.Second
}

// A stamp is stored as two numbers of nanoseconds, the wall's since 1970. Its
// boot stands apart.
const stampSize = 16

func (s stamp) encode() []byte {
	v := binary.BigEndian.AppendUint64(make([]byte, 0, stampSize), uint64(s.scale))
	return binary.BigEndian.AppendUint64(v, uint64(s.wall.UnixNano()))
}

func decodeStamp(v []byte) (stamp, bool) {
	if len(v) != stampSize {
		return stamp{}, false
	}
	return stamp{
		scale: schedule.Time(binary.BigEndian.Uint64(v)),
		wall:  time.Unix(0, int64(binary.BigEndian.Uint64(v[8:]))),
	}, true
}

// encodeBoot is the boot as it is stored: the stamp's scale, as an edition that knows
// nothing of boots may write another stamp beside it; a number of nanoseconds; the ID.
// Nil: it is not known.
func (s stamp) encodeBoot() []byte {
	if s.boot.ID == "" {
		return nil
	}
	v := binary.BigEndian.AppendUint64(nil, uint64(s.scale))
	return append(binary.BigEndian.AppendUint64(v, uint64(s.boot.Ago)), s.boot.ID...)
}

func (s *stamp) decodeBoot(v []byte) {
	if len(v) > 16 && schedule.Time(binary.BigEndian.Uint64(v)) == s.scale {
		s.boot = Boot{ID: string(v[16:]), Ago: time.Duration(binary.BigEndian.Uint64(v[8:]))}
	}
}
