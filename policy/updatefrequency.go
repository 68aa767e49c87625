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

// recurrence is how often something happens according to a rule of RFC 5545. The exact
// times of a schedule are not computed: they matter little to a feed that is polled at
// least once a day, and expanding them is expensive.
type recurrence struct {
	period time.Duration // the mean time between two occurrences, at most
	count  int64         // occurrences in all; 0: without end
	until  time.Time     // the last one is not after it; zero: without end
}

// units are the values of FREQ, and of sy:updatePeriod; a month and a year count 30 and
// 365 days.
var units = map[string]time.Duration{
	"HOURLY":  time.Hour,
	"DAILY":   24 * time.Hour,
	"WEEKLY":  7 * 24 * time.Hour,
	"MONTHLY": 30 * 24 * time.Hour,
	"YEARLY":  365 * 24 * time.Hour,
}

// parseRecurrence reads FREQ, INTERVAL, BYDAY, BYMONTHDAY, BYMONTH, COUNT and UNTIL
// (RFC 5545 section 3.3.10). A rule with anything else is an error.
func parseRecurrence(text string) (recurrence, error) {
	text = strings.ToUpper(strings.Join(strings.Fields(text), ""))
	text = strings.TrimSuffix(strings.TrimPrefix(text, "RRULE:"), ";")
	parts := map[string]string{}
	for part := range strings.SplitSeq(text, ";") {
		name, value, _ := strings.Cut(part, "=")
		switch name {
		case "FREQ", "INTERVAL", "BYDAY", "BYMONTHDAY", "BYMONTH", "COUNT", "UNTIL", "WKST":
		default:
			return recurrence{}, fmt.Errorf("%q is not among the parts that are understood", clip(name))
		}
		if _, twice := parts[name]; twice {
			return recurrence{}, fmt.Errorf("%s is given twice", name)
		}
		parts[name] = value
	}
	unit, known := units[parts["FREQ"]]
	if !known {
		return recurrence{}, errors.New("FREQ is none of HOURLY, DAILY, WEEKLY, MONTHLY and YEARLY")
	}
	var r recurrence
	interval, err := positive(parts, "INTERVAL", 1)
	if err != nil {
		return r, err
	}
	if r.count, err = positive(parts, "COUNT", 0); err != nil {
		return r, err
	}
	if until, given := parts["UNTIL"]; given {
		if r.until = parseUntil(until); r.until.IsZero() {
			return r, errors.New("UNTIL is not a date")
		}
	}
	r.period = time.Duration(min(interval, int64(math.MaxInt64/unit))) * unit
	// Listed days share their week, month or year. If a list restricts a shorter FREQ,
	// the period may be too short, but never too long.
	week := units["WEEKLY"]
	if parts["FREQ"] == "WEEKLY" {
		week = r.period
	}
	for _, list := range []struct {
		name string
		span time.Duration
	}{{"BYDAY", week}, {"BYMONTHDAY", units["MONTHLY"]}, {"BYMONTH", units["YEARLY"]}} {
		if value := parts[list.name]; value != "" {
			r.period = min(r.period, list.span/time.Duration(1+strings.Count(value, ",")))
		}
	}
	return r, nil
}

// positive reads a part that is a number above zero; otherwise is its default.
func positive(parts map[string]string, name string, fallback int64) (int64, error) {
	value, given := parts[name]
	if !given {
		return fallback, nil
	}
	n, ok := ParseNumber(value)
	if !ok || n == 0 {
		return 0, fmt.Errorf("%s is not a positive number", name)
	}
	return n, nil
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
	rule, err := parseRecurrence(u.RRule)
	start := ParseISODate(u.DTStart)
	if !sane(start) {
		start = time.Time{}
	}
	switch {
	case err != nil:
		w.note = "not understood: " + err.Error()
	case rule.count > 0 && start.IsZero():
		w.note = "not understood: COUNT without a dtstart"
	case !rule.until.IsZero() && rule.until.Before(at),
		rule.count > 0 && int64(at.Sub(start)/rule.period) >= rule.count:
		w.note = "the rule has ended"
	case start.After(at):
		w.wait, w.valid = max(rule.period, start.Sub(at)), true
		w.note = "begins at " + start.Format(time.RFC3339)
	case sane(r.Newest) && at.Sub(r.Newest)/2 > rule.period:
		w.note = "no entry for two periods: not credible"
	default:
		w.wait, w.valid = rule.period, true
	}
	return w
}

// parseUntil reads the date of an UNTIL (RFC 5545 sections 3.3.4 and 3.3.5). It returns the
// zero time if the text is not a plausible date.
func parseUntil(text string) time.Time {
	for _, layout := range []string{"20060102T150405Z", "20060102T150405", "20060102"} {
		if t, err := time.Parse(layout, text); err == nil && sane(t) {
			return t
		}
	}
	return time.Time{}
}

// sane reports whether a date is plausible for an entry or the start of a show.
func sane(t time.Time) bool {
	return t.Year() >= 1970 && t.Year() < 2200
}
