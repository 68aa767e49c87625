// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"testing"
	"time"
)

func TestParseHTTPDate(t *testing.T) {
	want := time.Date(1994, time.November, 6, 8, 49, 37, 0, time.UTC)
	for _, text := range []string{
		"Sun, 06 Nov 1994 08:49:37 GMT",
		"Sunday, 06-Nov-94 08:49:37 GMT",
		"Sun Nov  6 08:49:37 1994",
		"Mon, 06 Nov 1994 08:49:37 GMT", // a wrong day
		"sun, 06 nov 1994 08:49:37 gMT", // RFC 9111 section 4.2: any case
	} {
		if got, err := ParseHTTPDate(text, noon); err != nil || !got.Equal(want) {
			t.Errorf("%q is %v, %v", text, got, err)
		}
	}
	for _, text := range []string{
		"", "0", "-1", "now", "1994-11-06T08:49:37Z",
		"Sun, 06  Nov 1994 08:49:37 GMT",
		"Sun, 06 Nov 1994 8:49:37 GMT",
		"Sun, 06  Nov 1994 8:49:37 GMT", // as long as a right one
		"Sun, 6 Nov 1994 08:49:37 GMT",
		"Sun, 06 Nov 1994 08:49:37 EST",
		"Sun, 06 Nov 1994 08:49:37 +0000",
		"Sun, 06 Nov 94 08:49:37 GMT",
		"Sunday, 06-Nov-94 08:49:37 EST",
		"Sun, 06-Nov-94 08:49:37 GMT",
		"Sun Nov 6 08:49:37 1994",
		"Sun, 31 Feb 1994 08:49:37 GMT",
		"Sun, 06 Nov 1994 24:49:37 GMT",
		"Sun, 06 Nov 1994 08:49:37.5 GMT",
		" Sun, 06 Nov 1994 08:49:37 GMT",
	} {
		if got, err := ParseHTTPDate(text, noon); err == nil {
			t.Errorf("%q is %v", text, got)
		}
	}
}

// RFC 9110 section 5.6.7: not more than 50 years ahead.
func TestParseHTTPDateCentury(t *testing.T) {
	for text, year := range map[string]int{
		"Sunday, 06-Nov-26 08:49:37 GMT": 2026,
		"Sunday, 06-Nov-70 08:49:37 GMT": 2070,
		"Sunday, 06-Nov-75 08:49:37 GMT": 2075,
		"Sunday, 06-Nov-76 08:49:37 GMT": 1976, // 50 years and some months
		"Sunday, 06-Nov-94 08:49:37 GMT": 1994,
	} {
		if got, err := ParseHTTPDate(text, noon); err != nil || got.Year() != year {
			t.Errorf("%q is %v, %v; want %d", text, got, err, year)
		}
	}
}

func FuzzHTTPDate(f *testing.F) {
	f.Add("Sun, 06 Nov 1994 08:49:37 GMT")
	f.Add("Sunday, 06-Nov-94 08:49:37 GMT")
	f.Add("Sun Nov  6 08:49:37 1994")
	f.Fuzz(func(t *testing.T, text string) {
		got, err := ParseHTTPDate(text, noon)
		if err != nil {
			return
		}
		// What was read can be written and read again.
		again, err := ParseHTTPDate(got.Format(layoutIMF), noon)
		if got.Year() >= 1000 && (err != nil || !again.Equal(got)) {
			t.Errorf("%q is %v, then %v, %v", text, got, again, err)
		}
	})
}
