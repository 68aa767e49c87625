// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"testing"
	"time"
)

func TestSkipWindows(t *testing.T) {
	at := func(d, hour, minute int) time.Time {
		return time.Date(2026, time.March, d, hour, minute, 0, 0, time.UTC) // the 4th is a Wednesday
	}
	week := []string{"Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"}
	weekend := []string{"Saturday", "Sunday"}
	for _, test := range []struct {
		name   string
		hints  Hints
		from   time.Time
		chance float64
		want   time.Time
	}{
		{"no windows", Hints{}, at(4, 12, 30), 0.5, at(4, 12, 30)},
		{"first second of an hour", Hints{SkipHours: []int{12}}, at(4, 12, 0), 0, at(4, 13, 0)},
		{"last minute of an hour", Hints{SkipHours: []int{12}}, at(4, 12, 59), 0, at(4, 13, 0)},
		{"the hour after", Hints{SkipHours: []int{12}}, at(4, 13, 0), 0.5, at(4, 13, 0)},
		{"over midnight", Hints{SkipHours: []int{22, 23, 0, 1}}, at(4, 22, 10), 0.25, at(5, 2, 15)},
		{"all hours but one", Hints{SkipHours: allHours()[1:]}, at(4, 1, 0), 0, at(5, 0, 0)},
		{"all hours", Hints{SkipHours: allHours()}, at(4, 1, 0), 0, at(4, 1, 0)},
		{"hours that are none", Hints{SkipHours: []int{-1, 24, 99}}, at(4, 1, 0), 0, at(4, 1, 0)},
		{"one day", Hints{SkipDays: []string{"Wednesday"}}, at(4, 0, 0), 0, at(5, 0, 0)},
		{"weekend and night", Hints{SkipDays: weekend, SkipHours: []int{0, 1, 2, 3}}, at(7, 0, 30), 0, at(9, 4, 0)},
		{"48 hours of days at most", Hints{SkipDays: week}, at(2, 10, 30), 0, at(4, 11, 0)},
		{"but hours still count", Hints{SkipDays: week, SkipHours: []int{11, 12}}, at(2, 10, 30), 0, at(4, 13, 0)},
		{"the end of a long run", Hints{SkipDays: week}, at(6, 10, 30), 0, at(8, 0, 0)},
		{"all days", Hints{SkipDays: allDays()}, at(4, 1, 0), 0, at(4, 1, 0)},
		{"days that are none", Hints{SkipDays: []string{"Fantabuday"}}, at(4, 1, 0), 0, at(4, 1, 0)},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := test.hints.windows().after(test.from, test.from, test.chance); !got.Equal(test.want) {
				t.Errorf("moved to %v, want %v", got, test.want)
			}
			// Another zone of the same moment changes nothing.
			zone := time.FixedZone("far", 5*3600+1800)
			if got := test.hints.windows().after(test.from.In(zone), test.from.In(zone), test.chance); !got.Equal(test.want) {
				t.Errorf("in another zone moved to %v, want %v", got, test.want)
			}
		})
	}
}

// A poll that is later than planned is checked again.
func TestOutOfSkip(t *testing.T) {
	saturday := time.Date(2026, time.March, 7, 9, 0, 0, 0, time.UTC)
	weekend := Hints{SkipDays: []string{"Saturday", "Sunday"}}
	long := Hints{SkipDays: []string{"Thursday", "Friday", "Saturday", "Sunday"}}
	for _, test := range []struct {
		name      string
		hints     Hints
		next, now time.Time
		want      time.Time
	}{
		{"not due", weekend, saturday.Add(day), saturday, saturday.Add(day)},
		{"due and free", weekend, saturday.Add(-day), saturday.Add(-2 * time.Hour).Add(-9 * time.Hour), saturday.Add(-11 * time.Hour)},
		{"due on Friday, asked on Saturday", weekend, saturday.Add(-day), saturday, saturday.Add(day + 15*time.Hour)},
		{"put off from Friday to Saturday", weekend, saturday, saturday, saturday.Add(day + 15*time.Hour)},
		{"put off from Wednesday to Friday noon, with half of the 48 hours over", long, saturday.Add(-3 * day), saturday.Add(-day), saturday.Add(-9 * time.Hour)},
		{"planned for Saturday, since the cap was reached", long, saturday, saturday.Add(time.Minute), saturday.Add(time.Minute)},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := test.hints.OutOfSkip(test.next, test.now, 0); !got.Equal(test.want) {
				t.Errorf("%v, want %v", got, test.want)
			}
		})
	}
}
