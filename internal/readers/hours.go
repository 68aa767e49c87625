// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package readers

import "time"

// Hours is a set of hours of the day, GMT: bit h is h:00:00 to h:59:59. The zero
// set is empty.
type Hours uint32

const allHours Hours = 1<<24 - 1

// HoursOf returns the set of these hours. Numbers outside 0 to 23 are ignored. A set of
// all 24 hours becomes empty, as in package policy.
func HoursOf(hours []int) Hours {
	var set Hours
	for _, hour := range hours {
		if 0 <= hour && hour < 24 {
			set |= 1 << hour
		}
	}
	if set == allHours {
		return 0
	}
	return set
}

// Contains reports whether a time is in one of the hours.
func (h Hours) Contains(t time.Time) bool { return h != 0 && h>>t.UTC().Hour()&1 == 1 }

// After returns the first time from t on that is in none of the hours, or t if the set
// has all hours.
func (h Hours) After(t time.Time) time.Time {
	if h&allHours == allHours {
		return t
	}
	for h.Contains(t) {
		t = t.UTC().Truncate(time.Hour).Add(time.Hour)
	}
	return t
}
