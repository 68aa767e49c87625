// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package httpcache

import (
	"net/http"
	"time"
)

// reusableWhileRevalidating reports whether a stale entry may be served while a
// fetch in the background brings it up to date (RFC 5861 section 3). Only the
// directive allows it, and must-revalidate and its kin overrule it (RFC 9111 section 4.2.4).
func (e *entry) reusableWhileRevalidating(now time.Time) bool {
	return !e.rules.noCache && !e.rules.strict && -e.left(now) < e.rules.whileRevalidate
}

// shareable reports whether an answer that has just come may be given to others
// who asked at the same time.
func (e *entry) shareable(now time.Time) bool {
	return e.reusable(now) || e.reusableWhileRevalidating(now)
}

// reusableOnError reports whether a stale entry may stand in for an origin that
// fails: for as long as stale-if-error says (RFC 5861 section 4), or else for
// [staleIfError], and never against must-revalidate and its kin. A stored
// error is no better than the new one.
func (e *entry) reusableOnError(now time.Time) bool {
	window := staleIfError
	if e.rules.ifErrorGiven {
		window = e.rules.ifError
	}
	return e.status < 500 && !e.rules.noCache && !e.rules.strict && -e.left(now) < window
}

// isFailure reports whether a status is an error in the sense of stale-if-error
// (RFC 5861 section 4).
func isFailure(status int) bool {
	switch status {
	case http.StatusInternalServerError, http.StatusBadGateway,
		http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}
