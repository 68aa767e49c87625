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
	layoutFixdate = "Mon, 02 Jan 2006 15:04:05 GMT"
	layoutRFC850  = "Monday, 02-Jan-06 15:04:05 GMT"
	layoutASCTime = "Mon Jan _2 15:04:05 2006"
)

// ParseHTTPDate reads an HTTP-date strictly: one of the three forms, in GMT, every
// part with all its digits. Letter case does not matter (RFC 9111 section 4.2).
//
// [net/http.ParseTime] is not strict: it takes doubled spaces, an hour of one
// digit and a zone other than GMT, which a cache is to take for invalid, and so
// for stale. The time now tells the century of a year with two digits.
func ParseHTTPDate(text string, now time.Time) (time.Time, error) {
	// Upper case for GMT, which Go compares exactly; names of days and months it does not.
	text = strings.ToUpper(text)
	for _, layout := range []string{layoutFixdate, layoutRFC850, layoutASCTime} {
		t, err := time.Parse(layout, text)
		if err != nil {
			continue
		}
		// What Go was lenient about looks different when it is written out again.
		if !strings.EqualFold(afterWeekday(t.Format(layout)), afterWeekday(text)) {
			continue
		}
		if layout == layoutRFC850 {
			t = nearestCentury(t, now)
		}
		return t, nil
	}
	return time.Time{}, fmt.Errorf("%q is no HTTP-date", clip(text))
}

// afterWeekday drops the first word of a date.
func afterWeekday(date string) string {
	_, rest, _ := strings.Cut(date, " ")
	return rest
}

// nearestCentury moves a date whose year had two digits to the century that RFC
// 9110 section 5.6.7 asks for: the latest one that is not more than 50 years ahead.
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

// waitUntil is how long it is to a time that an origin gives, at least 0. The time is
// compared with the origin's own clock, which the answer's Date shows. A Date more than
// a day from our clock may be a mistake, or our clock is wrong: it counts if the time
// given is within a week of it, as both come from one clock then. Otherwise ours counts.
func waitUntil(t time.Time, date string, at time.Time) time.Duration {
	sent, err := ParseHTTPDate(date, at)
	if err != nil || sent.Sub(at).Abs() > 24*time.Hour && t.Sub(sent).Abs() > maxHold {
		sent = at
	}
	return max(0, t.Sub(sent))
}
