// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"sync"
	"time"

	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/internal/clock"
)

// Reading is what the clocks of a machine show.
type Reading = clock.Reading

// stamp is a moment of a scale and of the machine.
type stamp struct {
	scale store.Time
	Reading
}

// maxAway is the longest time between two processes for which the wall clock is believed.
// It is as long as the longest pause that an origin can ask for.
const maxAway = 7 * 24 * time.Hour

// scale is the time of a store. It advances with the time since the machine was booted. From
// one process to the next it does so too, unless the machine was booted in between: then it
// advances by the difference of the wall clock, up to a week and never back.
type scale struct {
	read func() Reading

	mu     sync.Mutex
	base   store.Time // when the machine was booted
	latest store.Time // that was returned
}

// newScale returns a scale that starts at the wall clock's time. Clocks are read by read;
// nil: [clock.System].
func newScale(read func() Reading) *scale {
	if read == nil {
		read = clock.System
	}
	m := read()
	return &scale{read: read, base: store.Time(m.Wall.UnixNano()).Add(-m.Since)}
}

// resume continues the scale of an earlier process.
func (s *scale) resume(last stamp) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.read()
	away := min(m.Wall.Sub(last.Wall.Round(0)), maxAway)
	if sameBoot(m, last.Reading) {
		away = m.Since - last.Since
	}
	s.base = last.scale.Add(max(0, away)).Add(-m.Since)
	s.latest = last.scale
}

// sameBoot reports whether the machine has run since last. If it does not say, both its
// clocks must have advanced alike.
func sameBoot(m, last Reading) bool {
	if m.Since < last.Since {
		return false
	}
	if m.Boot != "" || last.Boot != "" {
		return m.Boot == last.Boot
	}
	drift := m.Wall.Sub(last.Wall.Round(0)) - (m.Since - last.Since)
	return drift > -time.Minute && drift < time.Minute
}

func (s *scale) now() store.Time { return s.stamp().scale }

func (s *scale) stamp() stamp {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.read()
	m.Wall = m.Wall.Round(0)
	s.latest = max(s.latest, s.base.Add(m.Since))
	return stamp{s.latest, m}
}
