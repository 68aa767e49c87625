// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

// Package clock is the time by which stores plan polls. It cannot be set, and the sleep of
// the machine counts.
package clock

import (
	"sync"
	"time"

	"github.com/feedpollard/pollard/cache/store"
)

// Moment is what the clocks of a machine show.
type Moment struct {
	Wall  time.Time     // people and programs set it
	Since time.Duration // the machine was booted; sleep counts
	Boot  string        // no other life of the machine has it; empty: not known
}

// Stamp is a moment of a scale and of the machine.
type Stamp struct {
	Scale store.Time
	Moment
}

// maxAway is the longest time between two processes for which the wall clock is believed.
// It is as long as the longest pause that an origin can ask for.
const maxAway = 7 * 24 * time.Hour

// Scale advances with the time since the machine was booted. From one process to the next
// it does so too, unless the machine was booted in between: then it advances by the
// difference of the wall clock, up to a week and never back.
type Scale struct {
	read func() Moment

	mu     sync.Mutex
	base   store.Time // when the machine was booted
	latest store.Time // that was returned
}

// New returns a scale that starts at the wall clock's time. Clocks are read by read;
// nil: [System].
func New(read func() Moment) *Scale {
	if read == nil {
		read = system()
	}
	m := read()
	return &Scale{read: read, base: store.Time(m.Wall.UnixNano()).Add(-m.Since)}
}

// system returns what reads the clocks of the machine. Time in a bubble of
// testing/synctest, which has no monotonic reading, is that of another machine.
func system() func() Moment {
	if now := time.Now(); now != now.Round(0) {
		return System
	}
	bubbles := time.Date(2000, time.January, 1, 0, 0, 0, 0, time.UTC)
	return func() Moment {
		now := time.Now()
		return Moment{Wall: now, Since: now.Sub(bubbles), Boot: "bubble"}
	}
}

// Resume continues the scale of an earlier process.
func (s *Scale) Resume(last Stamp) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.read()
	away := min(m.Wall.Sub(last.Wall.Round(0)), maxAway)
	if sameBoot(m, last.Moment) {
		away = m.Since - last.Since
	}
	s.base = last.Scale.Add(max(0, away)).Add(-m.Since)
	s.latest = last.Scale
}

// sameBoot reports whether the machine has run since last. Where it does not say, both its
// clocks must have advanced alike.
func sameBoot(m, last Moment) bool {
	if m.Since < last.Since {
		return false
	}
	if m.Boot != "" || last.Boot != "" {
		return m.Boot == last.Boot
	}
	drift := m.Wall.Sub(last.Wall.Round(0)) - (m.Since - last.Since)
	return drift > -time.Minute && drift < time.Minute
}

// Now returns the time on the scale.
func (s *Scale) Now() store.Time { return s.Stamp().Scale }

// Stamp returns the time on the scale and what the machine's clocks show.
func (s *Scale) Stamp() Stamp {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.read()
	m.Wall = m.Wall.Round(0)
	s.latest = max(s.latest, s.base.Add(m.Since))
	return Stamp{s.latest, m}
}
