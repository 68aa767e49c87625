// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"strings"
	"testing"
	"time"
)

func TestUpdateFrequency(t *testing.T) {
	for _, test := range []struct {
		name   string
		rule   string
		start  string
		newest time.Time // of the entries
		wait   time.Duration
		valid  bool
	}{
		{"hourly", "FREQ=HOURLY", "", noon, time.Hour, true},
		{"monthly", "FREQ=MONTHLY", "", noon, 30 * day, true},
		{"yearly", "FREQ=YEARLY", "", noon, 365 * day, true},
		{"without entries", "FREQ=WEEKLY", "", time.Time{}, 7 * day, true},
		{"every other week", "FREQ=WEEKLY;INTERVAL=2", "", noon, 14 * day, true},
		{"two days a week", "FREQ=WEEKLY;BYDAY=TU,TH", "", noon, day, true},
		{"each two hours on weekdays", "FREQ=HOURLY;INTERVAL=2;BYDAY=MO,TU,WE,TH,FR", "", noon, 2 * time.Hour, true},
		{"twice a month", "FREQ=MONTHLY;BYMONTHDAY=1,15", "", noon, day, true},
		{"twice a year", "FREQ=YEARLY;BYMONTH=4,10", "", noon, day, true},
		{"lower case", "freq=weekly", "", noon, 7 * day, true},
		{"broken over lines", "FREQ=WEEKLY;\n INTERVAL=2", "", noon, 14 * day, true},
		{"prefix and last semicolon", "RRULE:FREQ=WEEKLY;", "", noon, 7 * day, true},
		{"WKST", "FREQ=WEEKLY;WKST=SU", "", noon, 7 * day, true},
		{"huge interval", "FREQ=YEARLY;INTERVAL=9223372036854775807", "", noon, 292 * 365 * day, true},
		{"interval beyond 64 bits", "FREQ=YEARLY;INTERVAL=99999999999999999999", "", noon, 292 * 365 * day, true},
		{"begun", "FREQ=WEEKLY", "2020-01-06T09:00:00Z", noon, 7 * day, true},
		{"a start that is none", "FREQ=WEEKLY", "soon", noon, 7 * day, true},
		{"between seasons", "FREQ=WEEKLY", "2026-06-01", noon.Add(-200 * day), 89*day - 12*time.Hour, true},
		{"beginning tomorrow", "FREQ=WEEKLY", "2026-03-05", noon, 7 * day, true},
		{"no entry for two periods", "FREQ=WEEKLY", "", noon.Add(-15 * day), 0, false},
		{"a newest entry in the future", "FREQ=WEEKLY", "", noon.Add(400 * day), 7 * day, true},
		{"counted", "FREQ=DAILY;COUNT=10", "2026-03-01T09:00:00Z", noon, 0, false},
		{"until, over", "FREQ=DAILY;UNTIL=20200101T000000Z", "", noon, 0, false},
		{"until, not over", "FREQ=DAILY;UNTIL=20270101", "", noon, day, true},

		{"nonsense", "every other tuesday", "", noon, 0, false},
		{"secondly", "FREQ=SECONDLY", "", noon, 0, false},
		{"no FREQ", "INTERVAL=2", "", noon, 0, false},
		{"two FREQ", "FREQ=DAILY;FREQ=YEARLY", "", noon, 0, false},
		{"interval of 0", "FREQ=DAILY;INTERVAL=0", "", noon, 0, false},
		{"until never", "FREQ=DAILY;UNTIL=never", "", noon, day, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			u := UpdateFrequency{RRule: test.rule, DTStart: test.start}
			w := u.candidate(Rhythm{Newest: test.newest}, noon)
			if w.wait.Round(365*day) != test.wait.Round(365*day) || test.wait < 365*day && w.wait != test.wait || w.valid != test.valid {
				t.Errorf("wait %v, valid %v (%s); want %v, %v", w.wait, w.valid, w.note, test.wait, test.valid)
			}
			if !w.valid && w.note == "" {
				t.Error("not explained")
			}
		})
	}
}

func FuzzUpdateFrequency(f *testing.F) {
	f.Add("FREQ=MONTHLY;BYDAY=-1FR;WKST=SU", "2020-01-31T10:00:00+05:00", int64(0))
	f.Add("FREQ=HOURLY;COUNT=1000000000", "1970-01-01", int64(1_700_000_000))
	f.Add("FREQ=DAILY;INTERVAL=999999999999999999", "9998-12-31", int64(1_700_000_000))
	f.Add("FREQ=DAILY;BYMONTHDAY="+strings.Repeat("31,", 1000)+"31", "", int64(1_700_000_000))
	f.Fuzz(func(t *testing.T, rule, start string, newest int64) {
		u := UpdateFrequency{RRule: rule, DTStart: start, Text: "x"}
		w := u.candidate(Rhythm{Newest: time.Unix(newest, 0)}, noon)
		if w.wait < 0 || w.valid && w.wait == 0 || !w.valid && (w.note == "" || w.wait != 0) {
			t.Errorf("%q from %q: %+v", rule, start, w)
		}
	})
}
