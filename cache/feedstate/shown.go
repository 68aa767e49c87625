// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package feedstate

import (
	"net/http"
	"strings"
	"time"

	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/internal/status"
	"github.com/feedpollard/pollard/policy"
)

// StoreState is the state as the store counts it.
func (s *State) StoreState(configured bool) store.State {
	failing := s.Feed.History.Failures > 0
	switch {
	case s.Points != "" && !failing:
		return store.StateFresh
	case s.Version == 0 && !configured && s.Last.Unserved < neverWorked:
		return store.StateCold // readers ask for icons and home pages too
	case s.Last.Failure == policy.FailureGone:
		return store.StateGone
	case s.Version == 0 && !failing:
		return store.StateCold
	case PauseAsked(s.Last.Winner), failing && s.Last.Status == http.StatusTooManyRequests:
		return store.StateWaiting
	case failing:
		return store.StateFailing
	}
	return store.StateFresh
}

// neverWorked is how many polls of a feed without a version must have failed for it to count as
// failing: a single one may be a typing error.
const neverWorked = 2

// countUnserved counts polls that bring no version to readers who expect one. A feed that is gone, or
// that refuses to be asked, counts at once; a redirect that has to wait does not count.
func (s *State) countUnserved(v Classified) {
	switch {
	case v.Good(), v.Answer.Failure == policy.FailureMoved:
		s.Last.Unserved = 0
	case v.Answer.Failure == policy.FailureNotShared && v.Answer.Status == http.StatusOK:
		s.Last.Unserved = neverWorked // it is a feed, which its shield can do nothing for
	case !s.AskedByUser || v.Answer.Unsent() || v.Answer.Failure == policy.FailureHeld:
	case v.Answer.Failure == policy.FailureGone, v.Answer.Failure == policy.FailureRateLimited:
		s.Last.Unserved = neverWorked
	default:
		s.Last.Unserved = min(s.Last.Unserved+1, neverWorked)
	}
}

// StatusState returns the state that people see.
func (s *State) StatusState(configured bool, now time.Duration) status.State {
	return StatusStateOf(s.StoreState(configured), configured, s.DueAt(now), s.Feed.History.Failures > 0)
}

// StatusStateOf returns the state that people see for a state in the store.
func StatusStateOf(stored store.State, configured, due, failing bool) status.State {
	switch stored {
	case store.StateGone:
		return status.StateGone
	case store.StateFailing:
		return status.StateFailing
	case store.StateWaiting:
		switch {
		case !due:
			return status.StateWaiting
		case failing:
			return status.StateFailing
		}
		return status.StateDue
	case store.StateFresh:
		if due {
			return status.StateDue
		}
		return status.StateFresh
	}
	if configured {
		return status.StateDue // for its first poll
	}
	return status.StateUnread
}

// PauseAsked reports whether a hint is a pause that an origin has asked for.
func PauseAsked(winner string) bool {
	return winner == policy.HintRetryAfter || winner == policy.HintRateLimit || strings.HasSuffix(winner, "cooldown")
}

// SitePause returns the longest pause of the site that holds for the feed; its length is 0 if there is none.
func (s *State) SitePause(h policy.Host, pauses []policy.Pause) (longest policy.Pause) {
	for _, p := range pauses {
		if p.Site == h.Site && (!p.New || s.Version == 0) && p.For > longest.For {
			longest = p
		}
	}
	return longest
}

// MaxAgeOfReaders is [State.MaxAge] for the readers of a shielded feed: also as long as its document
// asks them to wait, up to a day.
func (s *State) MaxAgeOfReaders(now time.Duration, wall time.Time, rules func() policy.Rules) int64 {
	next := wall.Add(time.Duration(s.MaxAge(now, rules)) * time.Second)
	until := s.Feed.History.ReadersUntil(s.Last.Decided, next)
	return int64((min(until.Sub(wall), 24*time.Hour) + time.Second - 1) / time.Second)
}

// MaxAge returns how long a reader need not ask again, in seconds: until the next planned poll,
// as nothing changes before. If the poll is overdue, or the feed points to another one, so that
// its own polls are rare, it is a minute.
func (s *State) MaxAge(now time.Duration, rules func() policy.Rules) int64 {
	left := s.Left(now, rules)
	switch {
	case s.Ended: // a feed may come back by hand
		return 24 * 60 * 60
	case left <= 0 || s.Points != "":
		return 60
	}
	return int64((left + time.Second - 1) / time.Second)
}

// Left returns the time until the next planned poll as readers learn it. Of a pause, they wait for
// max_interval at most: it may end early, by a good answer to another feed of the host.
func (s *State) Left(now time.Duration, rules func() policy.Rules) time.Duration {
	left := s.Due - now
	if PauseAsked(s.Last.Winner) {
		r := rules()
		left = min(left, max(r.MinInterval, r.MaxInterval))
	}
	return left
}
