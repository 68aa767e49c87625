// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import "net/http"

// Update returns the history after an answer. The document is nil if none was read: after
// a 304, a 200 with the stored bytes, or a failure. Same reports whether a 200 has the
// fingerprint of the stored version. A failure replaces nothing, a 304 only the hints that
// its header has, a 200 all.
//
// [Decide] comes next, then [History.Decided].
func (h History) Update(a Answer, d *Document, same bool) History {
	if a.Unsent() {
		h.Unsent++
		return h
	}
	h.Unsent = 0
	switch a.Failure {
	case FailureNone:
	case FailureHeld, FailureMoved:
		// The redirect is a response of this feed's origin.
		h.Failures, h.Refusals = 0, 0
		h.Freshness = h.Freshness.renewed(a.Header, a.At)
		return h
	default:
		if h.Failures++; a.Failure == FailureRateLimited {
			h.Refusals++
		}
		return h
	}
	h.Failures, h.Refusals, h.Answered = 0, 0, true
	if a.Status == http.StatusNotModified {
		h.Unheeded = 0
		h.Validated = true
		h.Freshness = h.Freshness.renewed(a.Header, a.At)
		return h
	}
	if same && h.Validated {
		// The request was conditional, and the response had the stored content.
		h.Unheeded++
	} else {
		h.Unheeded = 0
	}
	h.Freshness = FreshnessOf(a.Header, a.At)
	h.Validated = !ValidatorsOf(a).Empty()
	if d != nil {
		if before := h.Rhythm.IDs; before != 0 && before != d.Rhythm.IDs {
			h.News = a.At.Round(0).UTC()
		}
		h.Hints, h.Malformed, h.Rhythm = d.Hints, d.Malformed, d.Rhythm
	}
	return h
}

// Decided returns the history with the interval of a decision after a good answer, which
// failures double. Other decisions change nothing.
func (h History) Decided(d Decision) History {
	if d.Base > 0 {
		h.Interval = d.Base
	}
	return h
}
