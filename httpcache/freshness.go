// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package httpcache

import (
	"net/http"
	"slices"
	"time"

	"github.com/feedpollard/pollard/policy"
)

// maxHeuristic bounds a guessed lifetime: nobody promised anything.
const maxHeuristic = 24 * time.Hour

// explicitLifetime is the freshness lifetime that a response gives: s-maxage,
// else max-age, else Expires less Date (RFC 9111 section 4.2.1). Under a targeted
// field only that field's directives count.
func explicitLifetime(header http.Header, control policy.CacheControl, targeted bool, received time.Time) (time.Duration, bool) {
	if !targeted {
		f := policy.FreshnessOf(header, received)
		return f.Lifetime, f.Source != ""
	}
	for _, name := range []string{"s-maxage", "max-age"} {
		if lifetime, ok := control.Seconds(name); ok {
			return lifetime, true
		}
	}
	return 0, false
}

// heuristicLifetime is a tenth of the time since the last modification (RFC 9111
// section 4.2.2), where the status allows to guess or the response is public.
// One that sets a cookie, or carries the old Pragma, was not meant to be kept.
func heuristicLifetime(status int, header http.Header, public bool, received time.Time) time.Duration {
	if !heuristicallyCacheable(status) && !public || header.Get("Set-Cookie") != "" || header.Get("Pragma") != "" {
		return 0
	}
	modified, err := dateOf(header, "Last-Modified", received)
	if err != nil {
		return 0
	}
	date, err := dateOf(header, "Date", received)
	if err != nil {
		date = received
	}
	return min(max(0, date.Sub(modified)/10), maxHeuristic)
}

// heuristicallyCacheable holds the list of RFC 9110 section 15.1, without 206.
func heuristicallyCacheable(status int) bool {
	return slices.Contains([]int{200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501}, status)
}

// initialAge is the corrected_initial_age of RFC 9111 section 4.2.3: the Age that
// came, plus the wait for the answer, or the age by its Date, whichever is more.
func initialAge(header http.Header, sent, received time.Time) time.Duration {
	told := policy.FreshnessOf(http.Header{"Age": header["Age"]}, received).Age
	corrected := told + max(0, received.Sub(sent))
	date, err := dateOf(header, "Date", received)
	if err != nil {
		return corrected
	}
	return max(corrected, received.Sub(date))
}

// currentAge is the current_age of RFC 9111 section 4.2.3.
func (e *entry) currentAge(now time.Time) time.Duration {
	return e.age + max(0, now.Sub(e.received))
}

// left is how long the entry will be fresh; negative: for how long it has been stale.
func (e *entry) left(now time.Time) time.Duration {
	return e.rules.lifetime - e.currentAge(now)
}

// reusable reports whether the entry answers a request without a word to the
// origin (RFC 9111 section 4).
func (e *entry) reusable(now time.Time) bool {
	return !e.rules.noCache && e.left(now) > 0
}

func dateOf(header http.Header, name string, now time.Time) (time.Time, error) {
	return policy.ParseHTTPDate(header.Get(name), now)
}
