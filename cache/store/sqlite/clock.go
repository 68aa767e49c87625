// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"go.uber.org/zap"

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

const (
	// young is how long after its boot a machine that has no clock of its own may learn the time.
	young = 15 * time.Minute
	// leastStep is the least step of the wall clock that is followed.
	leastStep = time.Minute
	// followEvery is how often a young machine's clock is looked at.
	followEvery = time.Second
)

// scale is the time of a store. It advances with the time since the machine was booted. From
// one process to the next it does so too, unless the machine was booted in between: then it
// advances by the difference of the wall clock, up to a week and never back. As a machine may learn only
// later for how long it was off, steps forward count in the same way while it is young: see [scale.follow].
type scale struct {
	read func() Reading

	mu     sync.Mutex
	base   store.Time    // when the machine was booted
	latest store.Time    // that was returned
	set    time.Duration // what the wall clock showed when the machine was booted, as far as the scale has followed it
	left   time.Duration // by which this process may follow it still
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
	wall := last.Wall.Round(0)
	away := max(0, min(m.Wall.Sub(wall), maxAway))
	s.set, s.left = time.Duration(max(m.Wall.UnixNano(), wall.UnixNano()))-m.Since, maxAway-away
	switch {
	case sameBoot(m, last.Reading):
		away = max(0, m.Since-last.Since)
		s.set, s.left = time.Duration(wall.UnixNano())-last.Since, maxAway
	case m.Since < last.Since || m.Boot != last.Boot: // it was booted since, whatever the wall clock shows
		away = max(away, m.Since)
	}
	s.base = last.scale.Add(away).Add(-m.Since)
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

// stamp returns the present moment. A young machine's wall clock counts from the last time that was known, if it shows an earlier one:
// the next process takes what it has of that time for time in which the machine was off.
func (s *scale) stamp() stamp {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.read()
	m.Wall = m.Wall.Round(0)
	if known := time.Unix(0, int64(s.set+m.Since)); m.Since <= young && m.Wall.Before(known) {
		m.Wall = known
	}
	s.latest = max(s.latest, s.base.Add(m.Since))
	return stamp{s.latest, m}
}

// follow has the scale follow a step of the wall clock forward, if it may. Before, write has to bring all moments of this
// life of the machine forward by the step: they are as far away as they were.
func (s *scale) follow(write func(at stamp, booted store.Time, step time.Duration) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.read()
	m.Wall = m.Wall.Round(0)
	step := min(time.Duration(m.Wall.UnixNano())-m.Since-s.set, s.left)
	if m.Since > young || step < leastStep {
		return nil
	}
	at := stamp{max(s.latest, s.base.Add(m.Since)).Add(step), m}
	if err := write(at, s.base, step); err != nil {
		return err
	}
	s.base, s.latest, s.set, s.left = s.base.Add(step), at.scale, s.set+step, s.left-step
	return nil
}

// mayFollow reports whether there may be a step to follow.
func (s *scale) mayFollow() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.left >= leastStep && s.read().Since <= young
}

// followClock follows steps of the wall clock while the machine is young.
func (d *database) followClock(ctx context.Context) error {
	ticker := time.NewTicker(followEvery)
	defer ticker.Stop()
	for d.scale.mayFollow() {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil
		}
		err := d.outside(ctx, func(c *connection) error {
			return d.scale.follow(func(at stamp, booted store.Time, step time.Duration) error { return d.pass(c, at, booted, step) })
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// ofThisLife are the statements that bring moments forward by ?1 that are of the life of the machine which began at ?2. Pauses that
// sites asked for may be older: they are not shortened.
var ofThisLife = []string{
	`update feed set next = next + ?1, wanted = wanted + ?1, last = last + ?1, earliest = earliest + ?1, refused = refused + ?1,
		until = until + ?1, changed = changed + ?1 where last >= ?2 or changed >= ?2 or earliest >= ?2`,
	`update host set free = free + ?1, good = good + ?1 where free >= ?2`,
	`update pause set until = until + ?1 where until >= ?2`,
	`update pending set at = at + ?1 where at >= ?2`,
}

// pass has time pass for all feeds but those that were polled in this life of the machine, or that were told to wait.
func (d *database) pass(c *connection, at stamp, booted store.Time, step time.Duration) (err error) {
	lost := d.lost
	if err := c.exec("begin immediate"); err != nil {
		return err
	}
	for _, sql := range ofThisLife {
		if err == nil {
			err = c.exec(sql, int64(step), int64(booted))
		}
	}
	if err == nil && lost >= booted {
		lost = lost.Add(step)
		err = c.exec(saveLoss, strconv.FormatInt(int64(lost), 10))
	}
	p := process{at: at, open: 1}
	if err == nil {
		err = d.writeStamp(c, p)
	}
	if err == nil {
		err = c.exec("commit")
	}
	if err != nil {
		c.exec("rollback") //nolint:errcheck // there may be no transaction any more
		d.stamped = process{}
		return fmt.Errorf("following the clock of the machine: %w", err)
	}
	d.lost = lost
	d.changes.add([]store.Change{{Lost: true}})
	d.log.Info("the clock of the machine was set forward soon after it was booted: the time has passed for feeds that were polled before", zap.Duration("by", step))
	return nil
}
