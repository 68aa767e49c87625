// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"testing"
	"time"
)

func TestParseDate(t *testing.T) {
	tests := []struct{ text, want string }{
		// RFC 822 and what RSS makes of it.
		{"Mon, 29 Jan 2024 13:51:53 GMT", "2024-01-29T13:51:53Z"},
		{" Mon, 29 Jan 2024 13:51:53 +0100\n", "2024-01-29T12:51:53Z"},
		{"Mon,29 Jan 2024\t13:51:53  +01:00", "2024-01-29T12:51:53Z"},
		{"Fri, 29 Jan 2024 13:51:53 Z", "2024-01-29T13:51:53Z"}, // a Monday
		{"lun., 29 Jan 2024 13:51:53 GMT", "2024-01-29T13:51:53Z"},
		{"Mon, 9 Jan 2024 13:51:53 GMT", "2024-01-09T13:51:53Z"},
		{"29 Jan 24 13:51 EST", "2024-01-29T18:51:00Z"},
		{"Mon, 29 Jan 99 13:51:53 PDT", "1999-01-29T20:51:53Z"},
		{"Wed, 29 May 2024 13:51:53 BST", "2024-05-29T12:51:53Z"},
		{"Mon, 29 Jan 2024 13:51:53 GMT+00:00", "2024-01-29T13:51:53Z"},
		{"Mon, 29 Jan 2024 13:51:53 UTC-0500", "2024-01-29T18:51:53Z"},
		{"Mon, 29 Jan 2024 13:51:53 CEST", "2024-01-29T13:51:53Z"}, // an unknown zone counts as UTC
		{"Mon, 29-Jan-2024 13:51:53 GMT", "2024-01-29T13:51:53Z"},
		{"Mon, 29 Jan 2024 13:51 GMT", "2024-01-29T13:51:00Z"},
		{"Mon, 29 Jan 2024 13:51:53", "2024-01-29T13:51:53Z"},
		{"Mon, 29 Jan 2024", "2024-01-29T00:00:00Z"},
		{"29 January 2024 13:51:53 +0000", "2024-01-29T13:51:53Z"},
		{"Monday, January 29, 2024", "2024-01-29T00:00:00Z"},
		{"Mon Jan 29 13:51:53 -0700 2024", "2024-01-29T20:51:53Z"},
		{"Mon Jan 29 13:51:53 2024", "2024-01-29T13:51:53Z"},

		// RFC 3339 and its like.
		{"2024-01-29T13:51:53Z", "2024-01-29T13:51:53Z"},
		{"2024-01-29t13:51:53.123456z", "2024-01-29T13:51:53Z"},
		{"2024-01-29T13:51:53.123456+05:30", "2024-01-29T08:21:53Z"},
		{"2024-01-29T13:51:53+0530", "2024-01-29T08:21:53Z"},
		{"2024-01-29T13:51+00:00", "2024-01-29T13:51:00Z"},
		{"2024-01-29T13:51:53", "2024-01-29T13:51:53Z"},
		{"2024-01-29 13:51:53 -0800", "2024-01-29T21:51:53Z"},
		{"2024-01-29 13:51:53 UTC", "2024-01-29T13:51:53Z"},
		{"2024-01-29", "2024-01-29T00:00:00Z"},
		{"2024-01", "2024-01-01T00:00:00Z"},

		// Ambiguous or rare notations, and texts that are not dates.
		{"02/03/2024", ""}, {"29.01.2024 13:51", ""}, {"1706536313", ""}, {"2024", ""}, {"Mon, 29 Jan 2024 1:51 PM", ""},
		{"", ""}, {" ", ""}, {",", ""}, {"soon", ""}, {"null", ""}, {"12", ""}, {"-", ""}, {"Jan", ""}, {"GMT", ""}, {"+", ""}, {"2024-", ""},
		{"2024..", ""}, {"1999...", ""}, {"2024-13-01", ""}, {"2024-02-30", ""}, {"2024-01-29T25:00:00Z", ""},
		{"Mon, 29 Jan 2024 13:51:53 +9900", ""}, {">2015-02-06T13:05:22-05:00", ""}, {"29 Jan 2024 10:00 11:00", ""},
	}
	for _, test := range tests {
		t.Run(test.text, func(t *testing.T) {
			got := ""
			if at := ParseDate(test.text); !at.IsZero() {
				got = at.UTC().Truncate(time.Second).Format(time.RFC3339)
			}
			if got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// The zone of the machine does not matter, whatever its abbreviations mean there.
func TestParseDateInAnotherZone(t *testing.T) {
	local := time.Local
	t.Cleanup(func() { time.Local = local })
	time.Local = time.FixedZone("CEST", 2*3600)
	for _, text := range []string{"Mon, 29 Jan 2024 13:51:53 CEST", "Mon, 29 Jan 2024 13:51:53", "2024-01-29 13:51:53"} {
		if got, want := ParseDate(text), time.Date(2024, 1, 29, 13, 51, 53, 0, time.UTC); !got.Equal(want) {
			t.Errorf("%q is %v, want %v", text, got, want)
		}
	}
}

func FuzzDate(f *testing.F) {
	for _, text := range []string{"Mon, 29 Jan 2024 13:51:53 GMT", "2024-01-29T13:51:53Z", "January 2, 2024", "2024..", "1999...", "+", "1:", "9-", "٣ Jan 2024"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		at := ParseDate(text)
		if at.IsZero() {
			return
		}
		// A date that was understood is understood again in its plainest notation.
		plain := at.UTC().Truncate(time.Second)
		if plain.Year() < 0 || plain.Year() > 9999 {
			return
		}
		if again := ParseDate(plain.Format(time.RFC3339)); !again.Equal(plain) {
			t.Fatalf("%q is %v, and that is %v", text, plain, again)
		}
	})
}
