// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// maxHold is the longest pause that Retry-After and rate limits can cause. A longer one
// is more likely a mistake.
const maxHold = 7 * 24 * time.Hour

// Hold is a time before which an origin asks not to be polled again.
type Hold struct {
	Until time.Time // zero: the field is absent or asks for nothing
	Raw   string    // the field as received; empty: absent
	Note  string    // why the field is ignored, or how its value was changed
}

// RetryAfter reads Retry-After (RFC 9110 section 10.2.3) from the header of a response
// with any status that was received at the time at. If there are several values, the
// longest valid one counts, at most 7 days. A date is compared with the response's own
// Date, so that an origin with a wrong clock gets the pause that it means.
//
// Values that break the syntax but have only one possible meaning count, because to
// ignore them would be a poll too early: "1.5" is rounded up, and dates may be written as
// [ParseDate] reads them. All others ("abc", "-5") count as absent, as do 0 and dates in
// the past: the caller's own backoff applies.
func RetryAfter(header http.Header, at time.Time) Hold {
	lines := header.Values("Retry-After")
	if len(lines) == 0 {
		return Hold{}
	}
	hold := Hold{Raw: clip(strings.Join(lines, ", ")), Note: "neither seconds nor a date: ignored"}
	longest := time.Duration(-1)
	for _, line := range lines {
		if wait, ok := retryWait(strings.Trim(line, " \t"), header.Get("Date"), at); ok {
			longest = max(longest, wait)
		}
	}
	if longest >= 0 {
		hold.Until, hold.Note = holdFor(longest, at)
	}
	return hold
}

// retryWait reads one line of Retry-After: seconds, a list of seconds that a proxy has
// joined ("120, 240"), or a date. A date in the past is a wait of 0.
func retryWait(text, date string, at time.Time) (wait time.Duration, ok bool) {
	if until := ParseDate(text); !until.IsZero() {
		return waitUntil(until, date, at), true
	}
	for value := range strings.SplitSeq(text, ",") {
		if n, isNumber := decimal(strings.Trim(value, " \t")); isNumber && n >= 0 {
			wait, ok = max(wait, roundUp(n)), true
		}
	}
	return wait, ok
}

// waitUntil returns the time from now to a time by an origin's clock, at least 0. The
// response's Date shows that clock. If it is more than a day from ours, it counts only
// if t is within a week of it: then both come from one clock, and ours may be wrong.
func waitUntil(t time.Time, date string, at time.Time) time.Duration {
	sent, err := http.ParseTime(date)
	if err != nil || sent.Sub(at).Abs() > 24*time.Hour && t.Sub(sent).Abs() > maxHold {
		sent = at
	}
	return max(0, t.Sub(sent))
}

// holdFor returns the end of a wait, capped, with a note if the wait is 0 or was capped.
func holdFor(wait time.Duration, at time.Time) (until time.Time, note string) {
	switch {
	case wait <= 0:
		return time.Time{}, "not in the future"
	case wait > maxHold:
		return at.Add(maxHold), "capped at 7 days"
	}
	return at.Add(wait), ""
}

// decimal reads digits with an optional minus sign and fraction. Unlike strconv it does not
// accept exponents, hexadecimals, infinities or plus signs.
func decimal(text string) (n float64, ok bool) {
	n, err := strconv.ParseFloat(text, 64) // an infinity if it is too large
	return n, strings.Trim(text, "-.0123456789") == "" && (err == nil || errors.Is(err, strconv.ErrRange))
}

// roundUp converts seconds, which are not negative, to a duration in whole seconds, at
// most 2^31.
func roundUp(seconds float64) time.Duration {
	return time.Duration(min(math.Ceil(seconds), float64(maxDelta/time.Second))) * time.Second
}
