// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"math"
	"time"

	"github.com/feedpollard/pollard/cache/feedstate"
	"github.com/feedpollard/pollard/policy"
)

// host returns the host that a poll of the feed asks.
func (f *Feed) host() policy.Host {
	if origin := f.origin(); origin != nil {
		return origin.Host(f.key.URL())
	}
	return policy.Host{}
}

// due returns when the feed may be polled, as far as this node knows, and why that is not earlier. All polls but those
// by hand wait until then. The store decides: it knows of the polls and pauses of all nodes.
func (f *Feed) due(s *feedstate.State, now time.Duration) (at time.Duration, why string) {
	at, why = s.Due, s.Last.Winner
	if s.Ended {
		return math.MaxInt64, why
	}
	later := func(moment time.Duration, hint string) {
		if moment > at {
			at, why = moment, hint
		}
	}
	later(time.Duration(f.unstored.Load()), policy.HintStore)
	if at > now {
		return at, why
	}
	if rules := f.rules(); !s.Poked {
		m := f.cache.moment()
		m.Random = 0 // the same each time
		if !rules.OwnSite {
			later(now+s.Skipped(m), policy.HintSkipHours)
		}
		later(now+s.Raised(m.Wall, rules), policy.HintFloor)
	}
	p := f.sitePause(now)
	later(p.until, p.why)
	if f.cache.storeAway.text() != "" {
		later(time.Duration(f.cache.storeAway.next.Load()), policy.HintStore)
	}
	return at, why
}

// sitePause returns the pause of the feed's site that holds for it; its end is 0 if there is none. Feeds of a shield have
// no site.
func (f *Feed) sitePause(now time.Duration) pause {
	return f.cache.schedule.paused(f.queued(now), now)
}

// mayPoll reports whether a poll may be made now.
func (f *Feed) mayPoll(s *feedstate.State, now time.Duration) bool {
	if !s.DueAt(now) {
		return false
	}
	at, _ := f.due(s, now)
	return at <= now
}

// held returns the state with the moment at which the feed may be polled, if that is later than was decided.
func (f *Feed) held(s *feedstate.State, now time.Duration) *feedstate.State {
	at, why := f.due(s, now)
	if s.Ended || at <= max(s.Due, now) {
		return s
	}
	next := *s
	next.Override(f.cache.moment(), at-now, why)
	return &next
}
