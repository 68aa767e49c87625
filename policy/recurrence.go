// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/teambition/rrule-go"
)

// Bounds on what a recurrence rule may cost: a foreign document must not make a
// decision expensive. The library looks for the next occurrence until the year
// 9999, and counts from the first one; rules for which either takes long are
// rejected or moved closer before it sees them.
const (
	maxRule        = 512                       // bytes
	maxOccurrences = 20_000                    // walked from the first to the present
	maxPeriod      = 10 * 365 * 24 * time.Hour // of FREQ times INTERVAL; more is as good as this
	maxFiltered    = 2 * 366 * 24 * time.Hour  // looked back where BYDAY and the like thin out the days
)

var (
	errRuleTooLong   = fmt.Errorf("longer than %d bytes", maxRule)
	errRuleTwice     = errors.New("a part is given twice")
	errRuleFreq      = errors.New("FREQ is none of HOURLY, DAILY, WEEKLY, MONTHLY and YEARLY")
	errRuleBound     = errors.New("INTERVAL and COUNT must be positive")
	errRuleStart     = errors.New("COUNT without a dtstart")
	errRuleOrdinal   = errors.New("a numbered BYDAY that cannot be")
	errRuleMonthDay  = errors.New("a BYMONTHDAY that cannot be")
	errRuleIntricate = errors.New("INTERVAL together with days or months")
	errRuleCrowded   = fmt.Errorf("more than %d occurrences to count", maxOccurrences)
)

// units are the lengths of FREQ, a month and a year counting 30 and 365 days.
var units = map[rrule.Frequency]time.Duration{
	rrule.HOURLY:  time.Hour,
	rrule.DAILY:   24 * time.Hour,
	rrule.WEEKLY:  7 * 24 * time.Hour,
	rrule.MONTHLY: 30 * 24 * time.Hour,
	rrule.YEARLY:  365 * 24 * time.Hour,
}

// recurrence is a rule of RFC 5545 that is safe to expand.
type recurrence struct {
	option   rrule.ROption
	filtered bool // there are BYDAY, BYMONTHDAY or BYMONTH
	step     time.Duration
}

// parseRecurrence reads the subset that feeds have use for: FREQ from HOURLY to
// YEARLY, INTERVAL, BYDAY, BYMONTHDAY, BYMONTH, COUNT, UNTIL (and WKST). A rule
// with anything else is an error, as is one that can have no occurrence.
func parseRecurrence(text string) (recurrence, error) {
	if len(text) > maxRule {
		return recurrence{}, errRuleTooLong
	}
	text = strings.ToUpper(strings.Join(strings.Fields(text), ""))
	text = strings.TrimSuffix(strings.TrimPrefix(text, "RRULE:"), ";")
	var names []string
	for part := range strings.SplitSeq(text, ";") {
		name, value, _ := strings.Cut(part, "=")
		switch name {
		case "INTERVAL", "COUNT":
			if strings.HasPrefix(value, "-") || strings.Trim(value, "0") == "" {
				return recurrence{}, errRuleBound
			}
		case "FREQ", "BYDAY", "BYMONTHDAY", "BYMONTH", "UNTIL", "WKST":
		default:
			return recurrence{}, fmt.Errorf("%q is not among the parts that are understood", clip(name))
		}
		if slices.Contains(names, name) {
			return recurrence{}, errRuleTwice
		}
		names = append(names, name)
	}
	option, err := rrule.StrToROption(text)
	if err != nil {
		return recurrence{}, err
	}
	return newRecurrence(*option)
}

// newRecurrence checks that the option can be expanded in bounded time.
func newRecurrence(o rrule.ROption) (recurrence, error) {
	unit, known := units[o.Freq]
	if !known {
		return recurrence{}, errRuleFreq
	}
	o.Interval = max(o.Interval, 1)
	o.Bymonth = sortedSet(o.Bymonth)
	o.Bymonthday = sortedSet(o.Bymonthday)
	r := recurrence{
		option:   o,
		filtered: len(o.Bymonth)+len(o.Bymonthday)+len(o.Byweekday) > 0,
		step:     maxPeriod,
	}
	if o.Interval <= int(maxPeriod/unit) {
		r.step = time.Duration(o.Interval) * unit
	}
	switch {
	case !possibleDays(o.Bymonth, o.Bymonthday):
		return r, errRuleMonthDay
	case o.Freq == rrule.WEEKLY && len(o.Bymonthday) > 0:
		return r, errRuleMonthDay // RFC 5545 section 3.3.10 forbids it
	case !possibleOrdinals(o):
		return r, errRuleOrdinal
	case o.Interval > 1 && r.filtered && (o.Freq == rrule.HOURLY || o.Freq == rrule.DAILY),
		o.Interval > 1 && len(o.Bymonth) > 0 && o.Freq == rrule.WEEKLY:
		// Every seventh day that is a Tuesday, from a Monday on: a search without end.
		return r, errRuleIntricate
	}
	return r, nil
}

// sortedSet drops what is listed twice: the library tests each day against each element.
func sortedSet(list []int) []int {
	slices.Sort(list)
	return slices.Compact(list)
}

// possibleDays reports whether any of the months has any of the days; no months
// means all of them. The bounds of single values are the library's to check.
func possibleDays(months, days []int) bool {
	if len(days) == 0 {
		return true
	}
	longest := 31
	if len(months) > 0 {
		longest = 0
		for _, month := range months {
			// Day 0 of the next month is the last of this; 2024 is a leap year.
			longest = max(longest, time.Date(2024, time.Month(month)+1, 0, 0, 0, 0, 0, time.UTC).Day())
		}
	}
	return slices.ContainsFunc(days, func(day int) bool { return max(day, -day) <= longest })
}

// possibleOrdinals reports whether numbers such as those of 2MO and -1FR make sense:
// within a month, or within a year (RFC 5545 section 3.3.10).
func possibleOrdinals(o rrule.ROption) bool {
	limit := 0
	switch {
	case o.Freq == rrule.MONTHLY, o.Freq == rrule.YEARLY && len(o.Bymonth) > 0:
		limit = 5
	case o.Freq == rrule.YEARLY:
		limit = 53
	}
	for _, day := range o.Byweekday {
		n := day.N()
		if max(n, -n) > limit || n != 0 && len(o.Bymonthday) > 0 {
			return false
		}
	}
	return true
}

// expectation is where a time lies between the occurrences of a rule.
type expectation struct {
	last   time.Time     // the latest occurrence that is not ahead; zero: none yet
	next   time.Time     // the first that is ahead; zero: the rule has ended
	period time.Duration // the longest gap around; 0 where there are not two occurrences
}

// around finds the occurrences around a time, counting from an anchor.
func (r recurrence) around(at, anchor time.Time) (expectation, error) {
	o := r.option
	o.Dtstart = anchor.UTC()
	if unit, fixed := units[o.Freq], o.Freq >= rrule.WEEKLY; fixed && o.Count == 0 && r.step < maxPeriod {
		// Steps of a fixed length: whole steps forward change nothing but the work.
		reach := 2 * r.step
		if r.filtered {
			reach = max(reach, maxFiltered)
		}
		stride := time.Duration(o.Interval) * unit
		if behind := at.Sub(o.Dtstart) - reach; behind > stride {
			o.Dtstart = o.Dtstart.Add(behind / stride * stride)
		}
	}
	rule, err := rrule.NewRRule(o)
	if err != nil {
		return expectation{}, err
	}
	var e expectation
	occurrence := rule.Iterator()
	for range maxOccurrences {
		t, more := occurrence()
		switch {
		case !more:
			return e, nil
		case !t.After(at):
			if !e.last.IsZero() {
				e.period = t.Sub(e.last)
			}
			e.last = t
		case e.next.IsZero() && !e.last.IsZero():
			e.next = t
			e.period = max(e.period, t.Sub(e.last))
			return e, nil
		case e.next.IsZero():
			e.next = t
		default:
			e.period = t.Sub(e.next)
			return e, nil
		}
	}
	return expectation{}, errRuleCrowded
}

// wish is what podcast:updateFrequency asks for at a time: to wait for the next
// occurrence of the rule, arriving lead before it at most, and not to wait where the
// entry of the last occurrence is due. A rule without dtstart counts from the newest
// entry.
func (u UpdateFrequency) wish(r Rhythm, at time.Time, lead time.Duration) wish {
	w := wish{hint: HintUpdateFrequency, raw: u.RRule}
	if u.DTStart != "" {
		w.raw += " from " + u.DTStart
	}
	if u.RRule == "" {
		w.raw, w.note = u.Text, "no rule"
		return w
	}
	rule, err := parseRecurrence(u.RRule)
	if err != nil {
		w.note = "not understood: " + err.Error()
		return w
	}
	if until := rule.option.Until; !until.IsZero() && until.Before(at) {
		w.note = "the rule has ended"
		return w
	}
	newest, start := r.Newest, parseStart(u.DTStart)
	if !sane(newest) || newest.After(at) {
		newest = time.Time{}
	}
	anchor := start
	if anchor.IsZero() {
		if rule.option.Count > 0 {
			w.note = errRuleStart.Error()
			return w
		}
		anchor = newest
	}
	if rule.step == maxPeriod || anchor.IsZero() && !rule.filtered {
		// So rare that only the cap matters, or without a phase: the period alone counts.
		w.wait, w.valid = max(rule.step, start.Sub(at)), true
		return w
	}
	if anchor.IsZero() {
		anchor = at.Truncate(24 * time.Hour)
	}
	e, err := rule.around(at, anchor)
	if err != nil {
		w.note = err.Error()
		return w
	}
	w.wait, w.note = e.wait(at, newest, lead)
	w.valid = w.wait >= 0
	w.wait = max(0, w.wait)
	return w
}

// wait says how long to wait; a negative wait says that the rule is not credible.
func (e expectation) wait(at, newest time.Time, lead time.Duration) (wait time.Duration, note string) {
	slack := e.period / 12
	ahead := max(0, e.next.Sub(at)-min(lead, slack))
	switch {
	case e.next.IsZero():
		return -1, "the rule has ended"
	case e.last.IsZero():
		return ahead, "first at " + e.next.Format(time.RFC3339)
	case !newest.IsZero() && at.Sub(newest) > 2*e.period:
		return -1, "no entry for two periods: not credible"
	case newest.Before(e.last.Add(-slack)) && at.Before(e.last.Add(min(slack, 24*time.Hour))):
		return 0, "due since " + e.last.Format(time.RFC3339)
	}
	return ahead, "next at " + e.next.Format(time.RFC3339)
}

// parseStart reads the dtstart of ISO 8601, UTC where it names no zone; zero where
// it is no date or an absurd one.
func parseStart(text string) time.Time {
	text = strings.TrimSpace(text)
	for _, layout := range []string{
		time.RFC3339, "2006-01-02T15:04:05", "2006-01-02T15:04Z07:00", "2006-01-02T15:04", "2006-01-02 15:04:05",
		time.DateOnly, "20060102T150405Z0700", "20060102T150405", "20060102",
	} {
		if t, err := time.Parse(layout, text); err == nil && sane(t) {
			return t.UTC()
		}
	}
	return time.Time{}
}

// sane reports whether a date can be that of an entry or the start of a show.
func sane(t time.Time) bool {
	return t.Year() >= 1970 && t.Year() < 2200
}
