// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"strings"
	"time"
)

// The three forms of an HTTP-date (RFC 9110 section 5.6.7). The weekday is not
// compared with the date: many origins send a wrong one.
const (
	layoutIMF     = "Mon, 02 Jan 2006 15:04:05 GMT"
	layoutRFC850  = "Monday, 02-Jan-06 15:04:05 GMT"
	layoutASCTime = "Mon Jan _2 15:04:05 2006"
)

// ParseHTTPDate reads an HTTP-date strictly: one of the three forms, in GMT, every
// part with all its digits. Letter case does not matter (RFC 9111 section 4.2). The time
// now decides about the century of a year with two digits.
//
// [net/http.ParseTime] is not strict: it accepts doubled spaces, an hour of one digit and
// other zones than GMT. To a cache these are invalid, and so stale.
func ParseHTTPDate(text string, now time.Time) (time.Time, error) {
	// Upper case for GMT, which Go compares exactly; names of days and months it does not.
	text = strings.ToUpper(text)
	for _, layout := range []string{layoutIMF, layoutRFC850, layoutASCTime} {
		t, err := time.Parse(layout, text)
		if err != nil {
			continue
		}
		// If Go was lenient, the date looks different when it is written again.
		if !strings.EqualFold(afterWeekday(t.Format(layout)), afterWeekday(text)) {
			continue
		}
		if layout == layoutRFC850 {
			t = nearestCentury(t, now)
		}
		return t, nil
	}
	return time.Time{}, fmt.Errorf("%q is not an HTTP-date", clip(text))
}

// afterWeekday returns a date without its first word.
func afterWeekday(date string) string {
	_, rest, _ := strings.Cut(date, " ")
	return rest
}

// nearestCentury moves a date with a year of two digits to the latest century in which it
// is at most 50 years in the future (RFC 9110 section 5.6.7).
func nearestCentury(t, now time.Time) time.Time {
	horizon := now.UTC().AddDate(50, 0, 0)
	for t.After(horizon) {
		t = t.AddDate(-100, 0, 0)
	}
	for !t.AddDate(100, 0, 0).After(horizon) {
		t = t.AddDate(100, 0, 0)
	}
	return t
}

// waitUntil returns the time from now to a time by an origin's clock, at least 0. The
// response's Date shows that clock. If it is more than a day from ours, it counts only
// if t is within a week of it: then both come from one clock, and ours may be wrong.
func waitUntil(t time.Time, date string, at time.Time) time.Duration {
	sent, err := ParseHTTPDate(date, at)
	if err != nil || sent.Sub(at).Abs() > 24*time.Hour && t.Sub(sent).Abs() > maxHold {
		sent = at
	}
	return max(0, t.Sub(sent))
}
