// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"strings"
	"testing"
	"time"

	"github.com/teambition/rrule-go"
	"pgregory.net/rapid"
)

func TestUpdateFrequency(t *testing.T) {
	monday := time.Date(2026, time.March, 2, 9, 0, 0, 0, time.UTC)
	for _, test := range []struct {
		name   string
		rule   string
		start  string
		newest time.Time
		at     time.Time
		wait   time.Duration
		valid  bool
	}{
		{"weekly from its start", "FREQ=WEEKLY", "2020-01-06T09:00:00Z", monday, monday.Add(day), 6*day - time.Hour, true},
		{"weekly from the newest entry", "FREQ=WEEKLY", "", monday, monday.Add(day), 6*day - time.Hour, true},
		{"weekly without a phase", "FREQ=WEEKLY", "", time.Time{}, monday, 7 * day, true},
		{"due: no waiting", "FREQ=WEEKLY", "2020-01-06T09:00:00Z", monday.Add(-7 * day), monday.Add(time.Hour), 0, true},
		{"due, and it has come", "FREQ=WEEKLY", "2020-01-06T09:00:00Z", monday.Add(time.Minute), monday.Add(time.Hour), 7*day - 2*time.Hour, true},
		{"due, and it came early", "FREQ=WEEKLY", "2020-01-06T09:00:00Z", monday.Add(-time.Hour), monday.Add(time.Hour), 7*day - 2*time.Hour, true},
		{"overdue for days", "FREQ=WEEKLY", "2020-01-06T09:00:00Z", monday.Add(-7 * day), monday.Add(3 * day), 4*day - time.Hour, true},
		{"no entry for two periods", "FREQ=WEEKLY", "2020-01-06T09:00:00Z", monday.Add(-15 * day), monday.Add(time.Hour), 0, false},
		{"uneven days", "FREQ=WEEKLY;BYDAY=TU,TH", "2020-01-07T09:00:00Z", monday.Add(-4 * day), monday.Add(2 * day), day - time.Hour, true},
		{"hiatus", "FREQ=WEEKLY", "2026-06-01", monday.Add(-200 * day), monday, 91*day - 10*time.Hour, true},
		{"monthly", "FREQ=MONTHLY;BYMONTHDAY=1", "2025-01-01", monday, monday, 29*day + 14*time.Hour, true},
		{"twice a year", "FREQ=YEARLY;BYMONTH=4,10", "2020-04-01", monday, monday, 29*day + 14*time.Hour, true},
		{"last Friday", "FREQ=MONTHLY;BYDAY=-1FR", "2020-01-31", monday, monday, 24*day + 14*time.Hour, true},
		{"every other week", "FREQ=WEEKLY;INTERVAL=2", "2026-02-23T09:00:00Z", monday, monday, 7*day - time.Hour, true},
		{"lower case", "freq=weekly", "", time.Time{}, monday, 7 * day, true},
		{"broken over lines", "FREQ=WEEKLY;\n BYDAY=MO", "2020-01-06T09:00:00Z", monday, monday.Add(day), 6*day - time.Hour, true},
		{"prefix", "RRULE:FREQ=WEEKLY", "", time.Time{}, monday, 7 * day, true},
		{"WKST", "FREQ=WEEKLY;WKST=SU", "", time.Time{}, monday, 7 * day, true},
		{"a start that is none", "FREQ=WEEKLY", "soon", monday, monday, 7*day - time.Hour, true},
		{"a newest entry in the future", "FREQ=WEEKLY", "", monday.Add(400 * day), monday, 7 * day, true},
		{"counted, not over", "FREQ=DAILY;COUNT=10", "2026-03-01T09:00:00Z", monday, monday, day - time.Hour, true},
		{"counted, over", "FREQ=DAILY;COUNT=10", "2026-01-01T09:00:00Z", monday, monday, 0, false},
		{"until, over", "FREQ=DAILY;UNTIL=20200101T000000Z", "", time.Time{}, monday, 0, false},
		{"until, not over", "FREQ=DAILY;UNTIL=20270101", "2020-01-01T09:00:00Z", monday, monday, day - time.Hour, true},
		{"huge interval", "FREQ=DAILY;INTERVAL=999999999", "", time.Time{}, monday, maxPeriod, true},
		{"once in a decade", "FREQ=YEARLY;INTERVAL=10", "2020-01-01", monday, monday, maxPeriod, true},
		{"hourly for ages", "FREQ=HOURLY", "1970-01-01T00:00:00Z", monday, monday.Add(30 * time.Minute), 25 * time.Minute, true},

		{"nonsense", "every other tuesday", "", monday, monday, 0, false},
		{"secondly", "FREQ=SECONDLY", "", monday, monday, 0, false},
		{"minutely", "FREQ=MINUTELY;INTERVAL=1", "", monday, monday, 0, false},
		{"no FREQ", "INTERVAL=2", "", monday, monday, 0, false},
		{"two FREQ", "FREQ=DAILY;FREQ=YEARLY", "", monday, monday, 0, false},
		{"count of 0", "FREQ=DAILY;COUNT=0", "2020-01-01", monday, monday, 0, false},
		{"count without a start", "FREQ=DAILY;COUNT=9", "", monday, monday, 0, false},
		{"interval of 0", "FREQ=DAILY;INTERVAL=0", "", monday, monday, 0, false},
		{"negative interval", "FREQ=DAILY;INTERVAL=-1", "", monday, monday, 0, false},
		{"outside the subset", "FREQ=DAILY;BYSETPOS=1", "", monday, monday, 0, false},
		{"BYHOUR", "FREQ=DAILY;BYHOUR=9", "", monday, monday, 0, false},
		{"30 February", "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30", "", monday, monday, 0, false},
		{"month 13", "FREQ=YEARLY;BYMONTH=13", "", monday, monday, 0, false},
		{"month 0", "FREQ=YEARLY;BYMONTH=0;BYMONTHDAY=1", "", monday, monday, 0, false},
		{"month -1", "FREQ=YEARLY;BYMONTH=-1;BYMONTHDAY=1", "", monday, monday, 0, false},
		{"day 0", "FREQ=MONTHLY;BYMONTHDAY=0", "", monday, monday, 0, false},
		{"53rd Monday of a month", "FREQ=MONTHLY;BYDAY=53MO", "", monday, monday, 0, false},
		{"numbered day of a week", "FREQ=WEEKLY;BYDAY=2MO", "", monday, monday, 0, false},
		{"day of the month in a week", "FREQ=WEEKLY;BYMONTHDAY=1", "", monday, monday, 0, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			u := UpdateFrequency{RRule: test.rule, DTStart: test.start}
			w := u.wish(Rhythm{Newest: test.newest}, test.at, time.Hour)
			if w.wait != test.wait || w.valid != test.valid {
				t.Errorf("wait %v, valid %v (%s); want %v, %v", w.wait, w.valid, w.note, test.wait, test.valid)
			}
			if !w.valid && w.note == "" {
				t.Error("not explained")
			}
		})
	}
}

// hostileRules would keep a plain expansion busy for minutes, or for ever.
var hostileRules = []struct{ rule, start string }{
	{"FREQ=DAILY;COUNT=1000000000", "1970-01-01"},
	{"FREQ=HOURLY;COUNT=1000000000", "1970-01-01"},
	{"FREQ=SECONDLY;COUNT=1000000000", "1970-01-01"},
	{"FREQ=HOURLY", "0001-01-01"},
	{"FREQ=HOURLY;BYDAY=MO", "1970-01-01"},
	{"FREQ=DAILY;INTERVAL=999999999999999999", "1970-01-01"},
	{"FREQ=DAILY;INTERVAL=99999999999999999999999", "1970-01-01"},
	{"FREQ=DAILY;INTERVAL=7;BYDAY=TU", "2024-01-01"},
	{"FREQ=WEEKLY;INTERVAL=52;BYMONTH=2", "1970-06-01"},
	{"FREQ=MONTHLY;INTERVAL=12;BYMONTH=3", "1970-02-01"},
	{"FREQ=MONTHLY;BYMONTH=2;BYMONTHDAY=1;BYDAY=5MO", "1970-02-01"},
	{"FREQ=YEARLY;INTERVAL=2;BYMONTH=2;BYMONTHDAY=29", "1971-01-01"},
	{"FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29;BYDAY=MO", "1971-01-01"},
	{"FREQ=YEARLY;BYDAY=53MO,-53TU", "1970-01-01"},
	{"FREQ=YEARLY;BYMONTH=1,12;BYDAY=5MO,-5SU", "1970-01-01"},
	{"FREQ=DAILY;BYMONTHDAY=" + strings.Repeat("31,", 100_000) + "31", ""},
	{"FREQ=WEEKLY", "9998-12-31"},
	{"FREQ=MONTHLY;BYMONTHDAY=31;UNTIL=99991231T235959Z", "2199-12-31"},
}

func TestHostileRules(t *testing.T) {
	for _, test := range hostileRules {
		u := UpdateFrequency{RRule: test.rule, DTStart: test.start}
		for _, newest := range []time.Time{{}, noon.Add(-day), noon.AddDate(-50, 0, 0)} {
			if w := u.wish(Rhythm{Newest: newest}, noon, time.Hour); w.wait < 0 || !w.valid && w.note == "" {
				t.Errorf("%.60s: %+v", test.rule, w)
			}
		}
	}
}

func FuzzRecurrence(f *testing.F) {
	for _, seed := range hostileRules {
		f.Add(seed.rule, seed.start, int64(1_700_000_000))
	}
	f.Add("FREQ=MONTHLY;BYDAY=-1FR;WKST=SU", "2020-01-31T10:00:00+05:00", int64(0))
	f.Fuzz(func(t *testing.T, rule, start string, newest int64) {
		u := UpdateFrequency{RRule: rule, DTStart: start, Text: "x"}
		w := u.wish(Rhythm{Newest: time.Unix(newest, 0)}, noon, time.Hour)
		if w.wait < 0 || !w.valid && (w.note == "" || w.wait != 0) {
			t.Errorf("%q from %q: %+v", rule, start, w)
		}
	})
}

// drawRule makes rules of all that the grammar of the subset allows, sensible or not.
func drawRule(t *rapid.T) string {
	rule := "FREQ=" + rapid.SampledFrom([]string{"HOURLY", "DAILY", "WEEKLY", "MONTHLY", "YEARLY"}).Draw(t, "freq")
	for _, part := range []struct {
		name   string
		values []string
	}{
		{"INTERVAL", []string{"1", "2", "3", "12", "400"}},
		{"BYDAY", []string{"MO", "TU,TH", "SA,SU", "5MO", "-1FR", "2TU,-5SU", "53WE", "-53SA"}},
		{"BYMONTHDAY", []string{"1", "31", "-31", "13,29", "-1"}},
		{"BYMONTH", []string{"2", "4,10", "1,12", "2,11"}},
		{"COUNT", []string{"1", "2", "30", "15000", "999999999"}},
		{"UNTIL", []string{"20250101", "20260305T000000Z", "20990101"}},
	} {
		if rapid.IntRange(0, 2).Draw(t, "has "+part.name) == 0 {
			rule += ";" + part.name + "=" + rapid.SampledFrom(part.values).Draw(t, part.name)
		}
	}
	return rule
}

// What saves work changes no result: the occurrences around a time are those that
// counting from the very start finds.
func TestOccurrencesAreThoseOfTheWholeRule(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := drawRule(t)
		r, err := parseRecurrence(text)
		if err != nil || r.step == maxPeriod {
			return
		}
		anchor := noon.Add(-drawLength(t, "begun", -50*day, 700*day)).Truncate(time.Second)
		e, err := r.around(noon, anchor)
		if err != nil {
			return // more occurrences than are counted
		}
		o := r.option
		o.Dtstart = anchor
		whole, err := rrule.NewRRule(o)
		if err != nil {
			t.Fatal(err)
		}
		if last, next := whole.Before(noon, true), whole.After(noon, false); !e.last.Equal(last) || !e.next.Equal(next) {
			t.Fatalf("%s from %v: between %v and %v, want %v and %v", text, anchor, e.last, e.next, last, next)
		}
	})
}
