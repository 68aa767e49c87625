// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import "time"

// hopFirst reports whether the next slot of a site is for a redirect that waits.
func (s *site) hopFirst(now time.Duration) bool { return s.hops > 0 && s.hopUntil <= now }

// HopWaits records that a redirect waits for a site, if n is 1, or does not any more, if it is -1.
func (q *Queue) HopWaits(name string, n int, _ time.Duration) {
	if name == "" {
		return
	}
	s := q.site(name)
	s.hops = max(s.hops+int32(n), 0)
	q.place(s)
}

// TakeHop takes the next slot of a site for a redirect: the site is free again after its spacing. If it is not free, or
// the slot is for another poll, TakeHop returns how long the redirect has to wait before it is called again.
// While other polls wait, redirects have every second slot at most.
func (q *Queue) TakeHop(name string, spacing, now time.Duration) (wait time.Duration) {
	if name == "" {
		return 0
	}
	s := q.site(name)
	at := max(s.free, s.held)
	if s.line != nil && s.moment() <= s.hopUntil {
		at = max(at, s.hopUntil)
	}
	if s.busy {
		at = max(at, now+spacing)
	}
	if at <= now {
		s.free, s.hopUntil = now+spacing, now+2*spacing
	}
	q.place(s)
	return max(at-now, 0)
}

// GiveHop gives the slot back that TakeHop took: the redirect could not use it.
func (q *Queue) GiveHop(name string) {
	if s := q.sites[name]; s != nil && s.hopUntil != 0 {
		s.free, s.hopUntil = 0, 0
		q.place(s)
	}
}
