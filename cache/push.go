// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"time"
)

const (
	// pushFloor is the time between two polls that pushes cause.
	pushFloor = 5 * time.Minute
	// maxPushTries is how often the poll is tried that a push asks for, each time after pushFloor.
	maxPushTries = 12
)

// pollPushed polls the feed because of a push: at once, unless a push has caused a poll in the last
// pushFloor, and when the pauses of the origin have ended. Polls that fail keep their own schedule.
// However many pushes come, one poll waits.
func (f *Feed) pollPushed(h hubState) {
	f.note(h)
	f = f.use()
	f.mu.Lock()
	f.pushed = f.cache.elapsed()
	begin := !f.pushing
	f.pushing = true
	f.mu.Unlock()
	if !begin || !f.cache.background(func() {
		defer f.leave()
		f.setHub(h)
		for tries := 0; ; {
			wait, done := f.untilPushed(tries)
			if done || !sleep(f.cache.open, wait) {
				return
			}
			p, joined := f.start(pollRequest{floor: f.pushedFloor(), pushed: true})
			if p != nil {
				<-p.done
			}
			if !joined { // that one may have been answered before the push
				tries++
			}
		}
	}) {
		f.leave()
	}
}

// untilPushed returns how long the poll must wait that a push asks for. It is done if one has been
// made since, on any node, or if none may be made.
func (f *Feed) untilPushed(tries int) (wait time.Duration, done bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c, s := f.cache, f.state.Load()
	history := &s.feed.History
	if tries == maxPushTries || s.granted >= f.pushed && history.Unsent == 0 || s.ended || s.feed.Alias != "" || history.Failures > 0 {
		f.pushing = false
		return 0, true
	}
	now := c.elapsed()
	wait = max(s.notBefore-now, min(s.feed.Push.Polled.Add(pushFloor).Sub(c.now()), pushFloor))
	if s.pending(c.now(), now) && f.poll == nil {
		wait = max(wait, s.granted+pushFloor-now)
	}
	if tries > 0 {
		wait = max(wait, pushFloor)
	}
	return max(wait, 0), false
}

// pending reports whether the outcome of the last poll is not known: another node makes it, or
// one has died. A push may have caused it.
func (s *state) pending(wall time.Time, now time.Duration) bool {
	return s.granted != neverGranted && wall.Sub(s.last.At) > now-s.granted+time.Second
}

// pushedFloor is how long ago the last poll must be. No other node may have claimed one since the state
// was read, so that of several nodes one makes it.
func (f *Feed) pushedFloor() time.Duration {
	s, now := f.state.Load(), f.cache.elapsed()
	if s.pending(f.cache.now(), now) {
		return pushFloor
	}
	return max(now-s.granted-time.Second, time.Nanosecond)
}
