// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"testing"
	"time"
)

func TestParseDate(t *testing.T) {
	tests := []struct{ text, want string }{
		// RFC 822 and what RSS makes of it.
		{"Mon, 29 Jan 2024 13:51:53 GMT", "2024-01-29T13:51:53Z"},
		{" Mon, 29 Jan 2024 13:51:53 +0100\n", "2024-01-29T12:51:53Z"},
		{"29 Jan 24 13:51 EST", "2024-01-29T18:51:00Z"},
		{"Mon, 29 Jan 99 13:51:53 PDT", "1999-01-29T20:51:53Z"},
		{"Mon,29 Jan 2024 13:51:53+01:00", "2024-01-29T12:51:53Z"},
		{"Mon, 29 Jan 2024 13:51:53 GMT+00:00", "2024-01-29T13:51:53Z"},
		{"Mon, 29 Jan 2024 13:51:53 UTC-0500", "2024-01-29T18:51:53Z"},
		{"Mon, 29 Jan 2024 08:51:53 Eastern Standard Time", "2024-01-29T13:51:53Z"},
		{"Mon, 29 Jul 2024 08:51:53 Pacific Daylight Time", "2024-07-29T15:51:53Z"},
		{"Mon, 29 Jan 2024 13:51:53 XYZ", "2024-01-29T13:51:53Z"},
		{"Mon, 29 Jan 2024 13:51:53 +0000 (Coordinated)", "2024-01-29T13:51:53Z"},
		{"Mon, 29 Jan 2024", "2024-01-29T00:00:00Z"},
		{"Mon, 29 Jan 2024 1:51 pm GMT", "2024-01-29T13:51:00Z"},
		{"Mon, 21 Jan 2008 8:56 am PST", "2008-01-21T16:56:00Z"},
		{"Sat, Dec 16 2023 02:02:33 PM", "2023-12-16T14:02:33Z"},
		{"Sat Oct 06 2018 00:00:00 GMT", "2018-10-06T00:00:00Z"},
		{"Mon Jan 29 13:51:53 -0700 2024", "2024-01-29T20:51:53Z"},
		{"Monday, January 29th, 2024 12:15 AM", "2024-01-29T00:15:00Z"},
		{"Monday, 29-Jan-24 13:51:53 GMT", "2024-01-29T13:51:53Z"},
		{"mar., 24 févr. 2015 00:00:00 GMT", "2015-02-24T00:00:00Z"},
		{"Mar 24 2015", "2015-03-24T00:00:00Z"},
		{"lun, 29 gen 2024 13:51:53 +0100", "2024-01-29T12:51:53Z"},
		{"jeu., 11 juil. 2024 10:00:00 +0200", "2024-07-11T08:00:00Z"},
		{"Mo, 29 Januar 2024 13:51:53 MEZ", "2024-01-29T12:51:53Z"},

		// ISO 8601 and its like.
		{"2024-01-29T13:51:53Z", "2024-01-29T13:51:53Z"},
		{"2024-01-29t13:51:53.123456+05:30", "2024-01-29T08:21:53Z"},
		{"2024-01-29T13:51+00:00", "2024-01-29T13:51:00Z"},
		{"2024-01-29 13:51:53 -0800", "2024-01-29T21:51:53Z"},
		{"2024-01-29 12:08 PM", "2024-01-29T12:08:00Z"},
		{"20240129T135153Z", "2024-01-29T13:51:53Z"},
		{"2024-01-29", "2024-01-29T00:00:00Z"},
		{"2024-01", "2024-01-01T00:00:00Z"},
		{"2024", ""},
		{"2020/1/10 14:33:00", "2020-01-10T14:33:00Z"},
		{"2024-01-29T24:00:00Z", "2024-01-30T00:00:00Z"},
		{"2024-01-29T13:51:60Z", "2024-01-29T13:52:00Z"},
		{"1706536313", "2024-01-29T13:51:53Z"},
		{"1706536313000", "2024-01-29T13:51:53Z"},

		// Numbers in the order of a country.
		{"29.01.2024 13:51", "2024-01-29T13:51:00Z"},
		{"03-11-2015 08:21:50 -0200", "2015-11-03T10:21:50Z"},
		{"29/1/2024", "2024-01-29T00:00:00Z"},
		{"1/29/2024 1:51:53 PM", "2024-01-29T13:51:53Z"},
		{"02/03/2024", ""},
		{"03/03/2024", "2024-03-03T00:00:00Z"},

		// No dates.
		{"", ""}, {"soon", ""}, {"Tomorrow", ""}, {"null", ""}, {"12", ""}, {"<script>", ""}, {"-", ""}, {"Jan", ""}, {"T", ""},
		{"2024-13-01", ""}, {"2024-02-30", ""}, {"2024-01-29T25:00:00Z", ""}, {"2024-01-29T13:61:00Z", ""}, {"2024-01-29T24:00:01Z", ""},
		{"0000-01-01T00:00:00Z", ""}, {"Mon, 29 Jan 2024 13:51:53 +9900", ""}, {">2015-02-06T13:05:22-05:00", ""},
		{"29 Jan 2024 10:00 11:00", ""}, {"1 2 3 4 5 6", ""}, {"{{now offset='-172800 seconds'}}", ""},
	}
	for _, test := range tests {
		t.Run(test.text, func(t *testing.T) {
			got := ""
			if at := parseDate(test.text); !at.IsZero() {
				got = at.UTC().Truncate(time.Second).Format(time.RFC3339)
			}
			if got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func FuzzDate(f *testing.F) {
	for _, text := range []string{"Mon, 29 Jan 2024 13:51:53 GMT", "2024-01-29T13:51:53Z", "29.01.2024", "1/29/2024 1:51:53 PM", "20240129T135153Z", "+", "1:", "9-", "٣ Jan 2024"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		at := parseDate(text)
		if at.IsZero() {
			return
		}
		// A date that was understood is understood again in its plainest notation.
		plain := at.UTC().Truncate(time.Second)
		if plain.Year() < 1 || plain.Year() > 9999 {
			return
		}
		if again := parseDate(plain.Format(time.RFC3339)); !again.Equal(plain) {
			t.Fatalf("%q is %v, and that is %v", text, plain, again)
		}
	})
}
