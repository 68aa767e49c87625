// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"net/http"
	"strings"
	"time"
)

// maxHold caps what Retry-After and a rate limit can ask for: beyond a week they
// are rather a mistake than a wish.
const maxHold = 7 * 24 * time.Hour

// Hold is a time before which an origin does not want to be asked again.
type Hold struct {
	Until time.Time // zero: none is asked for, or nothing usable
	Raw   string    // the field as it came; empty: absent
	Note  string    // why it is not usable, or what was made of it
}

// RetryAfter reads Retry-After (RFC 9110 section 10.2.3) from an answer that came
// at a given time, whatever its status. Of several lines the longest valid wait
// counts, at most 7 days. A date is compared with the answer's own Date, so that an
// origin with a wrong clock gets the pause that it means.
//
// Seconds with a fraction ("1.5") are no delay-seconds, but what they mean is plain
// and reading them as absent could be too early: they are rounded up. Anything else
// that is neither seconds nor a date ("abc", "-5") is as good as absent: the
// caller's own back-off decides. So is a wait of 0 and a date in the past.
func RetryAfter(header http.Header, at time.Time) Hold {
	lines := header.Values("Retry-After")
	if len(lines) == 0 {
		return Hold{}
	}
	hold := Hold{Raw: clip(strings.Join(lines, ", ")), Note: "neither seconds nor a date: ignored"}
	longest := time.Duration(-1)
	for _, line := range lines {
		if wait, ok := retryWait(strings.Trim(line, " \t"), header.Get("Date"), at); ok && wait > longest {
			longest = wait
		}
	}
	if longest >= 0 {
		hold.Until, hold.Note = holdFor(longest, at)
	}
	return hold
}

// retryWait reads one line of Retry-After. A time in the past is a wait of 0.
func retryWait(text, date string, at time.Time) (wait time.Duration, ok bool) {
	if wait, ok := decimalSeconds(text); ok {
		return wait, !strings.HasPrefix(text, "-")
	}
	until, err := ParseHTTPDate(text, at)
	if err != nil {
		return 0, false
	}
	return waitUntil(until, date, at), true
}

// holdFor is the end of a wait, capped, with a note on what is special about it. A
// wait of 0 is none.
func holdFor(wait time.Duration, at time.Time) (until time.Time, note string) {
	switch {
	case wait <= 0:
		return time.Time{}, "not in the future"
	case wait > maxHold:
		return at.Add(maxHold), "capped at 7 days"
	}
	return at.Add(wait), ""
}

// decimalSeconds reads digits with an optional sign and fraction as a number of
// seconds, rounded up to whole ones; its size is at most 2^31. It is strict where
// strconv is not: no exponents, hexadecimals, infinities or signs of plus.
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
