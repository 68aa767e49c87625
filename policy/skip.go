// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// maxDaysOut is the longest time that skipDays put a poll off, with the pauses that come
// before. Skip hours block less than a day anyway.
const maxDaysOut = 48 * time.Hour

// skipWindows are the hours and days, in GMT, in which a feed must not be polled.
type skipWindows struct {
	hours [24]bool
	days  [7]bool // by time.Weekday
}

// windows reads skipHours and skipDays. An element with all hours or all days would mean
// never, and is ignored.
func (h Hints) windows() skipWindows {
	var w skipWindows
	for _, hour := range h.SkipHours {
		if 0 <= hour && hour < len(w.hours) {
			w.hours[hour] = true
		}
	}
	for _, name := range h.SkipDays {
		for day := range w.days {
			if time.Weekday(day).String() == name {
				w.days[day] = true
			}
		}
	}
	if !slices.Contains(w.hours[:], false) {
		w.hours = [24]bool{}
	}
	if !slices.Contains(w.days[:], false) {
		w.days = [7]bool{}
	}
	return w
}

// inHours, inDays and blocked report whether skipHours, skipDays or either blocks a time.
// Hour h is h:00:00 to h:59:59 GMT.
func (w skipWindows) inHours(t time.Time) bool { return w.hours[t.UTC().Hour()] }
func (w skipWindows) inDays(t time.Time) bool  { return w.days[t.UTC().Weekday()] }
func (w skipWindows) blocked(t time.Time) bool { return w.inHours(t) || w.inDays(t) }

// after returns t, or if it is blocked, a time in the first hour after it that is not. The
// polls of many feeds are spread at random over that hour. Days have put the poll off since a time.
func (w skipWindows) after(t, since time.Time, random float64) time.Time {
	slot := t.UTC().Truncate(time.Hour)
	for w.inHours(slot) || w.inDays(slot) && slot.Sub(since) < maxDaysOut {
		slot = slot.Add(time.Hour)
	}
	if !slot.After(t) {
		return t
	}
	// Whole seconds: a store that rounds a time up must not round it out of the hour.
	return slot.Add(time.Duration(random * float64(time.Hour)).Truncate(time.Second))
}

// OutOfSkip returns when a poll that was planned for next may be made: next if that is
// after now, otherwise now, or a time in the first free hour if now is blocked. The time
// in the hour is proportional to random, in [0,1). Decisions are outside of the windows
// already; this is for polls that are later than planned.
func (h Hints) OutOfSkip(next, now time.Time, random float64) time.Time {
	if now.Before(next) {
		return next
	}
	w := h.windows()
	start := now
	if w.inDays(now) {
		const day = 24 * time.Hour
		start = now.UTC().Truncate(day)
		for w.inDays(start.Add(-day)) { // it ends: windows leaves out an element that names all days
			start = start.Add(-day)
		}
	}
	return w.after(now, start, unit(random))
}

// skipTerms records both elements, and which of them moved a poll from one time to
// another. If a day blocks, its hours do not count.
func (h Hints) skipTerms(at, from, to time.Time) []Term {
	w := h.windows()
	moved := !to.Equal(from)
	var terms []Term
	if len(h.SkipHours) > 0 {
		hours := strings.Trim(strings.Join(strings.Fields(fmt.Sprint(h.SkipHours)), ","), "[]")
		t := Term{Hint: HintSkipHours, Raw: clip(hours), Used: moved && !w.inDays(from)}
		if w.hours == [24]bool{} {
			t.Note = "names every hour or none: ignored"
		}
		terms = append(terms, t)
	}
	if len(h.SkipDays) > 0 {
		t := Term{Hint: HintSkipDays, Raw: clip(strings.Join(h.SkipDays, ",")), Used: moved && w.inDays(from)}
		if w.days == [7]bool{} {
			t.Note = "names every day or none: ignored"
		}
		terms = append(terms, t)
	}
	for i := range terms {
		if terms[i].Used {
			terms[i].Seconds = seconds(to.Sub(at))
		}
	}
	return terms
}
