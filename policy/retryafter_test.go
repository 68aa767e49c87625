// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"strings"
	"testing"
	"time"
)

func TestRetryAfter(t *testing.T) {
	for _, test := range []struct {
		name   string
		fields []string
		wait   time.Duration // 0: no hold
		noted  bool
	}{
		{"absent", nil, 0, false},
		{"3600", []string{"Retry-After", "3600"}, time.Hour, false},
		{"0", []string{"Retry-After", "0"}, 0, true},
		{"-5", []string{"Retry-After", "-5"}, 0, true},
		{"1.5 is rounded up", []string{"Retry-After", "1.5"}, 2 * time.Second, false},
		{"1.", []string{"Retry-After", "1."}, time.Second, false},
		{"1e9", []string{"Retry-After", "1e9"}, 0, true},
		{"abc", []string{"Retry-After", "abc"}, 0, true},
		{"empty", []string{"Retry-After", ""}, 0, false},
		{"very long", []string{"Retry-After", strings.Repeat("9", 500)}, 7 * day, true},
		{"8 days", []string{"Retry-After", "691200"}, 7 * day, true},
		{"two lines", []string{"Retry-After", "60", "Retry-After", "120"}, 2 * time.Minute, false},
		{"two lines, one valid", []string{"Retry-After", "abc", "Retry-After", "60"}, time.Minute, false},
		{"two lines, seconds and a date", []string{"Retry-After", "60", "Retry-After", "Wed, 04 Mar 2026 13:00:00 GMT"}, time.Hour, false},
		{"fixdate", []string{"Retry-After", "Wed, 04 Mar 2026 13:00:00 GMT"}, time.Hour, false},
		{"RFC 850", []string{"Retry-After", "Wednesday, 04-Mar-26 13:00:00 GMT"}, time.Hour, false},
		{"asctime", []string{"Retry-After", "Wed Mar  4 13:00:00 2026"}, time.Hour, false},
		{"a list of seconds", []string{"Retry-After", "120, 240"}, 4 * time.Minute, false},
		{"a list, the longest first", []string{"Retry-After", "240,120"}, 4 * time.Minute, false},
		{"a list with a word", []string{"Retry-After", "120, soon"}, 2 * time.Minute, false},
		{"past", []string{"Retry-After", "Wed, 04 Mar 2026 11:00:00 GMT"}, 0, true},
		{"origin 3 h behind", []string{"Retry-After", "Wed, 04 Mar 2026 10:00:00 GMT", "Date", "Wed, 04 Mar 2026 09:00:00 GMT"}, time.Hour, false},
		{"origin years behind", []string{"Retry-After", "Wed, 04 Mar 2026 13:00:00 GMT", "Date", "Thu, 01 Jan 1970 00:00:00 GMT"}, time.Hour, false},
		{"our clock a year ahead", []string{"Retry-After", "Tue, 04 Mar 2025 13:00:00 GMT", "Date", "Tue, 04 Mar 2025 12:00:00 GMT"}, time.Hour, false},
		{"our clock a year behind", []string{"Retry-After", "Thu, 04 Mar 2027 13:00:00 GMT", "Date", "Thu, 04 Mar 2027 12:00:00 GMT"}, time.Hour, false},
		{"our clock a year behind, past", []string{"Retry-After", "Thu, 04 Mar 2027 11:00:00 GMT", "Date", "Thu, 04 Mar 2027 12:00:00 GMT"}, 0, true},
		{"seconds do not care for Date", []string{"Retry-After", "60", "Date", "Wed, 04 Mar 2026 09:00:00 GMT"}, time.Minute, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			checkHold(t, RetryAfter(header(test.fields...), noon), test.wait, test.noted)
		})
	}
}

func checkHold(t *testing.T, hold Hold, wait time.Duration, noted bool) {
	t.Helper()
	if wait == 0 && !hold.Until.IsZero() || wait > 0 && !hold.Until.Equal(noon.Add(wait)) {
		t.Errorf("until %v, want a wait of %v (%s)", hold.Until, wait, hold.Note)
	}
	if noted && (hold.Note == "" || hold.Raw == "") {
		t.Errorf("not explained: %+v", hold)
	}
}

func FuzzRetryAfter(f *testing.F) {
	for _, seed := range []string{"60", "1.5", "-5", "abc", "Wed, 04 Mar 2026 13:00:00 GMT", "Wed Mar  4 13:00:00 2026", "99999999999999999999"} {
		f.Add(seed, "Wed, 04 Mar 2026 09:00:00 GMT")
	}
	f.Fuzz(func(t *testing.T, text, date string) {
		hold := RetryAfter(header("Retry-After", text, "Date", date), noon)
		if !hold.Until.IsZero() && (!hold.Until.After(noon) || hold.Until.After(noon.Add(maxHold))) {
			t.Errorf("%q holds until %v", text, hold.Until)
		}
		if twice := RetryAfter(header("Retry-After", text, "Retry-After", "60", "Date", date), noon); twice.Until.Before(hold.Until) {
			t.Errorf("%q holds until %v, with a second line only until %v", text, hold.Until, twice.Until)
		}
	})
}
