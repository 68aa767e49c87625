// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// The pieces that sentences are made of: times, lengths of time, statuses and lists, as
// people say them.

// bracketed puts what is known in brackets.
func bracketed(text string) string {
	if text == "" {
		return ""
	}
	return " (" + text + ")"
}

func to(target string) string {
	if target == "" {
		return ""
	}
	return " to " + target
}

func capital(text string) string {
	if strings.HasPrefix(text, "the ") {
		return "T" + text[1:]
	}
	return text
}

func status(code int) string {
	if code == 0 {
		return "nothing"
	}
	return strings.TrimSpace(strconv.Itoa(code) + " " + http.StatusText(code))
}

// clock writes a time as people say it at the time now: with as much of the date as
// is needed.
func clock(t, now time.Time, in *time.Location) string {
	if in == nil {
		in = time.UTC
	}
	t, now = t.In(in), now.In(in)
	midnight := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, in)
	layout := "15:04"
	switch days := t.Sub(midnight); {
	case days >= 0 && t.Before(midnight.AddDate(0, 0, 1)):
	case days >= 0 && t.Before(midnight.AddDate(0, 0, 2)):
		layout = "tomorrow 15:04"
	case days < 0 && !t.Before(midnight.AddDate(0, 0, -1)):
		layout = "yesterday 15:04"
	case t.Year() == now.Year():
		layout = "2 January 15:04"
	default:
		layout = "2 January 2006 15:04"
	}
	if in == time.UTC {
		layout += " UTC"
	}
	return t.Format(layout)
}

// length writes a length of time in the largest unit that does not blur it, or in two.
func length(d time.Duration) string {
	for _, unit := range []struct {
		name    string
		length  time.Duration
		smaller string
		part    time.Duration
	}{{"day", 24 * time.Hour, "hour", time.Hour}, {"hour", time.Hour, "minute", time.Minute}, {"minute", time.Minute, "second", time.Second}} {
		whole := d.Round(unit.length)
		n := whole / unit.length
		switch {
		case n > 1 && (whole-d).Abs() <= d/20:
			return fmt.Sprintf("%d %ss", n, unit.name)
		case d >= 2*unit.length: // so the rest is more than one part, and less than all of them
			rest := (d % unit.length).Round(unit.part) / unit.part
			return fmt.Sprintf("%d %ss and %d %ss", d/unit.length, unit.name, rest, unit.smaller)
		}
	}
	if n := d.Round(time.Second) / time.Second; n != 1 {
		return fmt.Sprintf("%d seconds", n)
	}
	return "1 second"
}

// frequency writes how often something happens once in a length of time.
func frequency(d time.Duration) string {
	const day = 24 * time.Hour
	for _, unit := range []struct {
		name   string
		length time.Duration
	}{{"a minute", time.Minute}, {"an hour", time.Hour}, {"a day", day}, {"a week", 7 * day}, {"a month", 30 * day}, {"a year", 365 * day}} {
		if off := d - unit.length; off < unit.length/20 && off > -unit.length/20 {
			return "once " + unit.name
		}
	}
	return "every " + length(d)
}

// hourRanges writes the raw value of skipHours, "0,1,2,22", as "between 22:00 and 03:00".
func hourRanges(raw string) string {
	var skipped [24]bool
	for text := range strings.SplitSeq(raw, ",") {
		if hour, err := strconv.Atoi(text); err == nil && 0 <= hour && hour < 24 {
			skipped[hour] = true
		}
	}
	var ranges []string
	for from := range skipped {
		if !skipped[from] || skipped[(from+23)%24] {
			continue
		}
		end := from
		for skipped[end%24] {
			end++
		}
		ranges = append(ranges, fmt.Sprintf("between %02d:00 and %02d:00", from, end%24))
	}
	if len(ranges) == 0 {
		return "at " + raw
	}
	return list(ranges)
}

// list joins words as in a sentence.
func list(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " and " + words[len(words)-1]
}
