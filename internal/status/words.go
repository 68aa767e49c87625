// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/feedpollard/pollard/internal/feedurl"
)

// bracketed returns the text in brackets, after a space; empty stays empty.
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

func statusText(code int) string {
	if code == 0 {
		return "nothing"
	}
	return strings.TrimSpace(strconv.Itoa(code) + " " + http.StatusText(code))
}

// clock writes a time with as much of the date as is needed at the time now.
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

// Length writes a length of time for a sentence: in the largest unit within a twentieth
// of it, or in two units.
func Length(d time.Duration) string {
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

// Frequency writes how often something happens that happens once in d: "once an hour",
// "every 3 days".
func Frequency(d time.Duration) string {
	const day = 24 * time.Hour
	for _, unit := range []struct {
		name   string
		length time.Duration
	}{{"a minute", time.Minute}, {"an hour", time.Hour}, {"a day", day}, {"a week", 7 * day}, {"a month", 30 * day}, {"a year", 365 * day}} {
		if off := d - unit.length; off < unit.length/20 && off > -unit.length/20 {
			return "once " + unit.name
		}
	}
	return "every " + Length(d)
}

// hourRanges writes the raw value of skipHours: "0,1,2,22" as "not to be polled between 22:00 and
// 03:00". If most hours are skipped, it names the others: "to be polled only between ...".
func hourRanges(raw string) string {
	var named [24]bool
	for text := range strings.SplitSeq(raw, ",") {
		if hour, err := strconv.Atoi(text); err == nil && 0 <= hour && hour < 24 {
			named[hour] = true
		}
	}
	asks, skipped := "not to be polled ", 0
	for _, skip := range named {
		if skip {
			skipped++
		}
	}
	if skipped > 12 && skipped < 24 {
		asks = "to be polled only "
		for hour := range named {
			named[hour] = !named[hour]
		}
	}
	var ranges []string
	for from := range named {
		if !named[from] || named[(from+23)%24] {
			continue
		}
		end := from
		for named[end%24] {
			end++
		}
		ranges = append(ranges, fmt.Sprintf("between %02d:00 and %02d:00", from, end%24))
	}
	if len(ranges) == 0 {
		return asks + "at " + raw
	}
	return asks + list(ranges)
}

// list joins words with commas and "and".
func list(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " and " + words[len(words)-1]
}

// SomeFeeds lists URLs in a sentence, the first few of them.
func SomeFeeds(urls []feedurl.Redacted) string {
	const most = 5
	var words []string
	for _, u := range urls[:min(len(urls), most)] {
		words = append(words, u.String())
	}
	if more := len(urls) - most; more > 0 {
		words = append(words, fmt.Sprintf("%d more", more))
	}
	return list(words)
}

// Short writes a length of time for a list, rounded to one unit: "43 min".
func Short(d time.Duration) string {
	const day = 24 * time.Hour
	d = max(d, -d)
	switch {
	case 0 < d && d < time.Second:
		return fmt.Sprintf("%d ms", max(d.Milliseconds(), 1))
	case d < 90*time.Second:
		return fmt.Sprintf("%d s", d.Round(time.Second)/time.Second)
	case d < 90*time.Minute && d.Round(time.Minute) != time.Hour:
		return fmt.Sprintf("%d min", d.Round(time.Minute)/time.Minute)
	case d < 36*time.Hour:
		return fmt.Sprintf("%d h", d.Round(time.Hour)/time.Hour)
	case d < 730*day:
		return Count(int64(d.Round(day)/day), "day")
	}
	return Count(int64(d/(365*day)), "year")
}

// Until describes a time in the future. It is "never" for the zero time, and "now" for
// one that has passed.
func Until(t, now time.Time) string {
	switch {
	case t.IsZero():
		return "never"
	case t.Sub(now) < time.Second:
		return "now"
	}
	return "in " + Short(t.Sub(now))
}

// Ago describes a time in the past. It is "never" for the zero time.
func Ago(t, now time.Time) string {
	switch d := now.Sub(t); {
	case t.IsZero():
		return "never"
	case d < 5*time.Second:
		return "just now"
	default:
		return Short(d) + " ago"
	}
}

// Count writes a number of things: "1 feed", "2,040 feeds". The plural of the noun ends
// in "s"; for others see [Plural].
func Count(n int64, noun string) string {
	return humanize.Comma(n) + " " + Plural(n, noun, noun+"s")
}

// Plural returns one if n is 1, otherwise many.
func Plural(n int64, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// Size writes a number of bytes: "96 GB".
func Size(n int64) string { return humanize.Bytes(uint64(max(n, 0))) }

// Percent writes a share of 0 to 1: "88 %".
func Percent(share float64) string {
	switch p := share * 100; {
	case p > 0 && p < 1:
		return "less than 1 %"
	case p > 99 && p < 100:
		return "more than 99 %"
	default:
		return fmt.Sprintf("%.0f %%", p)
	}
}

// Capitalize begins a text with a capital letter, unless it begins with a host or a URL.
func Capitalize(text string) string {
	if word, _, _ := strings.Cut(text, " "); strings.ContainsAny(word, ".:/") || text == "" {
		return text
	}
	return strings.ToUpper(text[:1]) + text[1:]
}
