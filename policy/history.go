// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import "net/http"

// Learn is the history after an answer. The document is nil where none was read: after
// a 304, a 200 with the very bytes that are stored, a failure. Same tells whether a
// 200 means what the stored version means, be it in other bytes. What was learned
// before outlives failures; a 304 replaces only what its header names, a 200 all of it.
//
// What must be decided afterwards is [Decide]'s; [History.Decided] remembers it.
func (h History) Learn(a Answer, d *Document, same bool) History {
	if a.Unsent() {
		h.Unsent++ // nothing else was learned
		return h
	}
	h.Unsent = 0
	switch a.Failure {
	case FailureNone:
	case FailureHeld:
		// The redirect is an answer of this feed's origin, though its content is another's.
		h.Failures = 0
		h.Freshness = h.Freshness.renewed(a.Header, a.At)
		return h
	default:
		h.Failures++
		return h
	}
	h.Failures, h.Answered = 0, true
	if a.Status == http.StatusNotModified {
		h.Unheeded = 0
		h.Validated = true
		h.Freshness = h.Freshness.renewed(a.Header, a.At)
		return h
	}
	if same && h.Validated {
		// There were validators to send, and for them came all that is stored.
		h.Unheeded++
	} else {
		h.Unheeded = 0
	}
	h.Freshness = FreshnessOf(a.Header, a.At)
	h.Validated = !ValidatorsOf(a).Empty()
	if d != nil {
		h.Hints, h.Malformed, h.Rhythm = d.Hints, d.Malformed, d.Rhythm
	}
	return h
}

// Decided remembers the interval of a decision after a good answer: failures double
// it. Other decisions leave the history as it is.
func (h History) Decided(d Decision) History {
	if d.Base > 0 {
		h.Interval = d.Base
	}
	return h
}
