// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestStuck(t *testing.T) {
	const sound = "Tue, 03 Mar 2026 09:00:00 GMT"
	seen := noon.Add(-30 * day) // when the version was first seen
	daily := func(ago time.Duration) Rhythm { return Rhythm{Entries: 10, Median: day, Newest: noon.Add(-ago)} }
	for _, test := range []struct {
		name, etag, modified string
		rhythm               Rhythm
		want                 string // of its note; empty: there is no evidence
	}{
		{"none at all", "", "", Rhythm{}, ""},
		{"sound validators", `"65f1a2b3-1c2"`, sound, Rhythm{}, ""},
		{"the beginning of Unix time", `"v"`, "Thu, 01 Jan 1970 00:00:00 GMT", Rhythm{}, "clocks begin"},
		{"one hour before it", "", "Wed, 31 Dec 1969 23:00:00 GMT", Rhythm{}, "clocks begin"},
		{"in another form", "", "Thu Jan  1 00:00:01 1970", Rhythm{}, "clocks begin"},
		{"1980", "", "Tue, 01 Jan 1980 00:00:00 GMT", Rhythm{}, ""},
		{"the last second of 32 bits", "", "Tue, 19 Jan 2038 03:14:07 GMT", Rhythm{}, "future"},
		{"a day ahead", "", noon.Add(day).Format(http.TimeFormat), Rhythm{}, "future"},
		{"less than a day ahead", "", noon.Add(day - time.Second).Format(http.TimeFormat), Rhythm{}, ""},
		{"no date", "", "yesterday", Rhythm{}, ""},

		{"the ETag is a day", `"2026-03-03"`, "", Rhythm{}, "ETag"},
		{"weak", `W/"2026-03-03"`, sound, Rhythm{}, "ETag"},
		{"without quotes", `20260303`, "", Rhythm{}, "ETag"},
		{"with a time", `"2026-03-03T09:00:00+01:00"`, "", Rhythm{}, "ETag"},
		{"with a time and a space", `"2026-03-03 09:00:00"`, "", Rhythm{}, "ETag"},
		{"as HTTP writes it", `"` + sound + `"`, "", Rhythm{}, "ETag"},
		{"a day and more", `"2026-03-03-gzip"`, "", Rhythm{}, ""},
		{"seconds", `"1772528400"`, "", Rhythm{}, ""},
		{"no such day", `"20261350"`, "", Rhythm{}, ""},

		{"seen with an entry that was announced", `"v"`, sound, daily(25 * day), "overdue"},
		{"three gaps", `"v"`, sound, daily(4*day - 1), ""},
		{"silent since it was seen", `"v"`, sound, daily(30 * day), "overdue"},
		{"not quite silent then", `"v"`, sound, daily(34*day - 1), "overdue"},
		{"silent before", `"v"`, sound, daily(34 * day), ""},
		{"a weekly one", `"v"`, sound, Rhythm{Median: 7 * day, Newest: noon.Add(-30 * day)}, "overdue"},
		{"a monthly one", `"v"`, sound, Rhythm{Median: 30 * day, Newest: noon.Add(-30 * day)}, ""},
		{"no rhythm", `"v"`, sound, Rhythm{Newest: noon.Add(-30 * day)}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := Stuck(Validators{ETag: test.etag, LastModified: test.modified}, test.rhythm, seen, noon)
			if (got == nil) != (test.want == "") || got != nil && !strings.Contains(got.Note, test.want) {
				t.Fatalf("%+v, want %q", got, test.want)
			}
			if got != nil && (got.Hint != HintStuck || got.Raw == "" || got.Used) {
				t.Errorf("%+v: not a term of a record", got)
			}
		})
	}
}
