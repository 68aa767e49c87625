// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"net/http"
	"strings"

	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/policy"
)

// The conditions that are no states.
const (
	conditionWaiting = "waiting" // its site has asked for a pause
	conditionNoFeed  = "no-feed" // see [Cache.noFeed]
)

// noFeed reports whether an address has never given a feed, which is no failure: readers
// look for icons and home pages in many places. An address that the operator has
// written down should give one, so it fails.
func (c *Cache) noFeed(key string, version uint64, failure policy.Failure, site bool) bool {
	never := site || failure == policy.FailureNotFound || failure == policy.FailureNotFeed
	return never && version == 0 && !c.settings.Load().configured[key]
}

// counted is the state that the store counts a feed in: what never gave one is cold.
func (c *Cache) counted(key string, s *state) store.State {
	state := s.condition()
	if state == store.StateFailing && c.noFeed(key, s.version, s.facts.Failure, s.facts.Site != nil) {
		return store.StateCold
	}
	return state
}

// conditionOf is the state of a feed as people are told it. Whoever waits because its
// site asked for that does not fail, and neither does what never was a feed.
func conditionOf(state, winner string, status int, noFeed, due bool) string {
	switch {
	case state == string(store.StateGone), state == "due":
	case noFeed && state != string(store.StateFresh):
		return conditionNoFeed
	case due:
	case pauseAsked(winner), status == http.StatusTooManyRequests && state != string(store.StateFresh):
		return conditionWaiting
	}
	return state
}

// pauseAsked reports whether a hint is a pause that an origin has asked for.
func pauseAsked(winner string) bool {
	return winner == policy.HintRetryAfter || winner == policy.HintRateLimit || strings.HasSuffix(winner, "cooldown")
}
