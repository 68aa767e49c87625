// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package feedstate

import (
	"time"

	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/policy"
)

// Plan decides when the feed is polled next, and returns the time until then. With the decision it is
// known whether an incident began or ended.
func (s *State) Plan(m Moment, v Classified, rules policy.Rules) time.Duration {
	a := v.Answer
	d := policy.Decide(rules, s.Feed.History, a, m.Random)
	if s.Unconditional != nil {
		d.Considered = append(d.Considered, *s.Unconditional)
	}
	s.Feed.History = s.Feed.History.Decided(d)
	s.decide(d)
	s.updateIncident()
	s.NotBefore = max(s.NotBefore, m.Elapsed+d.NotBefore.Sub(a.At))
	if s.Ended {
		return store.Ended
	}
	s.Due = m.Elapsed + d.Next.Sub(a.At)
	return d.Next.Sub(a.At)
}

// Unsent decides when a poll is tried again of which nothing reached the origin. That is not a
// failure of the feed. After a poll by hand, the time that was planned before counts.
func (s *State) Unsent(m Moment, a policy.Answer, planned time.Duration, rules policy.Rules) time.Duration {
	d := policy.Decide(rules, s.Feed.History, a, m.Random)
	s.decide(d)
	wait := d.Next.Sub(a.At)
	s.Due = m.Elapsed + wait
	if rest := planned - m.Elapsed; rest > 0 {
		// However often a person tries, the feed's own next try comes no later.
		wait, s.Due = rest, planned
		s.Feed.History.Unsent = max(s.Feed.History.Unsent-1, 1)
	}
	return wait
}

// Override replaces what was decided by something outside of the decision.
func (s *State) Override(m Moment, wait time.Duration, why string) {
	d := s.Decision()
	if d.At.IsZero() {
		d.At = m.Wall.Round(0).UTC()
	}
	until := m.Wall.Add(wait)
	d.Interval, d.Winner, d.Next = until.Sub(d.At), why, until
	// A fresh slice: the old decision's terms belong to a published state.
	terms, holder := make([]policy.Term, 0, len(d.Considered)+1), policy.Term{Hint: why}
	for _, t := range d.Considered {
		if t.Hint == why {
			holder.Raw = t.Raw
		} else {
			t.Used = false
			terms = append(terms, t)
		}
	}
	holder.Seconds, holder.Used = int64((d.Interval+time.Second-1)/time.Second), true
	d.Considered = append(terms, holder)
	s.decide(d)
	s.Due = m.Elapsed + wait
}

const (
	// Grace is how long after its claim a poll may start. After that it returns its lease: a
	// machine that was suspended must not poll when it wakes up.
	Grace = 10 * time.Second
	// BodyTimeout is how long a poll may wait until it may have a large body in hand: its origin
	// waits as well.
	BodyTimeout = 2 * time.Minute
)

// LeaseTime returns how long a claim must last: the poll with all that it may wait for, and after
// it the interval in force, back-off included.
func (s *State) LeaseTime(rules policy.Rules) time.Duration {
	interval := max(rules.MinInterval, s.Feed.History.Interval, min(s.Last.Pause, max(rules.MaxInterval, rules.MinInterval)))
	return Grace + rules.Timeout + policy.MaxHopWait + BodyTimeout + interval
}

// Skipped returns how long the feed asks not to be polled from now on. The decision kept the
// planned time out of skipHours and skipDays, but a poll that waited for a reader may come
// within them.
func (s *State) Skipped(m Moment) time.Duration {
	planned := m.Wall.Add(min(0, s.Due-m.Elapsed))
	return max(0, s.Feed.History.Hints.OutOfSkip(planned, m.Wall, m.Random).Sub(m.Wall))
}

// Raised returns how long the feed waits because min_interval has been raised since the next
// poll was planned: the new one counts at once.
func (s *State) Raised(now time.Time, rules policy.Rules) time.Duration {
	for _, t := range s.Feed.Considered {
		planned := time.Duration(t.Seconds) * time.Second
		if t.Hint == policy.HintFloor && planned < rules.MinInterval && s.Feed.History.Unsent == 0 && !s.Last.At.After(now) {
			return s.Last.At.Add(rules.MinInterval).Sub(now)
		}
	}
	return 0
}

// Next is when the feed is polled next, by the wall clock.
func (s *State) Next(m Moment) time.Time {
	if s.Ended {
		return policy.Never
	}
	return m.Wall.Add(s.Due - m.Elapsed)
}
