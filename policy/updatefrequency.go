// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"
)

// units are the values of FREQ, and of sy:updatePeriod; a month and a year count 30 and
// 365 days.
var units = map[string]time.Duration{
	"HOURLY":  time.Hour,
	"DAILY":   24 * time.Hour,
	"WEEKLY":  7 * 24 * time.Hour,
	"MONTHLY": 30 * 24 * time.Hour,
	"YEARLY":  365 * 24 * time.Hour,
}

// parsePeriod reads the time between two occurrences of a rule (RFC 5545 section 3.3.10).
// Exact times matter little to a feed that is polled at least once a day: if a rule lists
// days or months, its period is a day at most.
func parsePeriod(rule string, at time.Time) (time.Duration, error) {
	var unit, longest time.Duration = 0, math.MaxInt64
	interval := int64(1)
	rule = strings.ToUpper(strings.Join(strings.Fields(rule), ""))
	for part := range strings.SplitSeq(strings.Trim(strings.TrimPrefix(rule, "RRULE:"), ";"), ";") {
		name, value, _ := strings.Cut(part, "=")
		number, _ := ParseNumber(value)
		switch {
		case name == "FREQ" && unit == 0 && units[value] > 0:
			unit = units[value]
		case name == "INTERVAL" && number > 0:
			interval = number
		case name == "BYDAY", name == "BYMONTHDAY", name == "BYMONTH":
			longest = units["DAILY"]
		case name == "UNTIL" && value < at.UTC().Format("20060102"):
			return 0, errors.New("the rule has ended")
		case name != "UNTIL" && name != "WKST":
			return 0, fmt.Errorf("not understood: %q", clip(part))
		}
	}
	if unit == 0 {
		return 0, errors.New("not understood: no FREQ")
	}
	return min(time.Duration(min(interval, int64(math.MaxInt64/unit)))*unit, longest), nil
}

// candidate returns the interval of podcast:updateFrequency: the period of its rule, or
// the time to its dtstart if that is in the future, as in a pause between two seasons.
// A rule that has ended, or that the feed does not follow, says nothing.
func (u UpdateFrequency) candidate(r Rhythm, at time.Time) candidate {
	w := candidate{hint: HintUpdateFrequency, raw: u.RRule}
	if u.DTStart != "" {
		w.raw += " from " + u.DTStart
	}
	if u.RRule == "" {
		w.raw, w.note = u.Text, "no rule"
		return w
	}
	period, err := parsePeriod(u.RRule, at)
	start := ParseISODate(u.DTStart)
	switch {
	case err != nil:
		w.note = err.Error()
	case start.After(at):
		w.wait, w.valid = max(period, start.Sub(at)), true
		w.note = "begins at " + start.Format(time.RFC3339)
	case !r.Newest.IsZero() && at.Sub(r.Newest)/2 > period:
		w.note = "no entry for two periods: not credible"
	default:
		w.wait, w.valid = period, true
	}
	return w
}
