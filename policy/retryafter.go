// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"net/http"
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
// ignore them would be a poll too early: "1.5" is rounded up, and dates may have a day of
// one digit, "UTC" or an offset. All others ("abc", "-5") count as absent, as do 0 and
// dates in the past: the caller's own backoff applies.
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
	until, err := ParseHTTPDate(text, at)
	if err != nil {
		until, err = parseLooseDate(text)
	}
	if err == nil {
		return waitUntil(until, date, at), true
	}
	for value := range strings.SplitSeq(text, ",") {
		seconds, isNumber := decimalSeconds(strings.Trim(value, " \t"))
		if !isNumber {
			return 0, false
		}
		if seconds >= 0 && !strings.HasPrefix(strings.Trim(value, " \t"), "-") {
			wait, ok = max(wait, seconds), true
		}
	}
	return wait, ok
}

// parseLooseDate reads a date that is almost an HTTP-date: with a day of one digit, UTC
// instead of GMT, an offset, or in the form of RFC 3339. Other names of zones are errors:
// Go would take them for UTC.
func parseLooseDate(text string) (time.Time, error) {
	if _, rest, ok := strings.Cut(text, ","); ok {
		text = rest
	}
	fields := strings.Fields(text)
	if n := len(fields); n > 0 {
		switch strings.ToUpper(fields[n-1]) {
		case "GMT", "UTC", "UT", "Z":
			fields[n-1] = "+0000"
		}
	}
	text = strings.Join(fields, " ")
	for _, layout := range []string{"2 Jan 2006 15:04:05 -0700", "2-Jan-2006 15:04:05 -0700", "2-Jan-06 15:04:05 -0700", time.RFC3339} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("%q is not a date", clip(text))
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

// decimalSeconds reads digits with an optional minus sign and fraction as a number of
// seconds, rounded up and capped at 2^31. Unlike strconv it does not accept exponents,
// hexadecimals, infinities or plus signs.
func decimalSeconds(text string) (time.Duration, bool) {
	digits, negative := strings.CutPrefix(text, "-")
	whole, fraction, pointed := strings.Cut(digits, ".")
	n, ok := deltaSeconds(whole)
	if !ok {
		return 0, false
	}
	if pointed {
		if _, ok := deltaSeconds(fraction); !ok {
			return 0, false
		}
	}
	up := strings.Trim(fraction, "0") != "" && n < maxDelta
	switch {
	case negative:
		return -n, true
	case up:
		return n + time.Second, true
	}
	return n, true
}
