// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"net/http"
	"strings"

	"github.com/feedpollard/pollard/policy"
)

// The conditions that are no states.
const (
	conditionWaiting = "waiting" // its site has asked for a pause
	conditionSite    = "site"    // a web page that names feeds, and none itself
)

// conditionOf is the state of a feed as people are told it. Whoever waits because its
// site asked for that does not fail, and neither does a web page that names feeds.
func conditionOf(state, winner string, status int, site, due bool) string {
	switch {
	case state == string(StateGone), state == "due":
	case site && state != string(StateFresh):
		return conditionSite
	case due:
	case winner == policy.HintRetryAfter, winner == policy.HintRateLimit, strings.HasSuffix(winner, "cooldown"),
		status == http.StatusTooManyRequests && state != string(StateFresh):
		return conditionWaiting
	}
	return state
}
