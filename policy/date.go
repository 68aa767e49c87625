// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"strings"
	"time"
)

// maxDate is longer than any date in one of the layouts, in bytes.
const maxDate = 64

// ParseDate reads the date of an entry or of a Retry-After: RFC 3339 as in Atom and JSON
// Feed, RFC 822 as in RSS, the three forms of an HTTP-date (RFC 9110 section 5.6.7), and
// common deviations from them. The day of the week may be wrong. Without a zone it is UTC.
//
// It returns the zero time if the text has none of the layouts.
func ParseDate(text string) time.Time {
	if len(text) > maxDate {
		return time.Time{}
	}
	// The day of the week, in any language, right or wrong.
	if weekday, rest, found := strings.Cut(text, ","); found && !strings.ContainsAny(weekday, "0123456789") {
		text = rest
	}
	words := strings.Fields(text)
	if len(words) == 0 {
		return time.Time{}
	}
	last := len(words) - 1
	if last > 0 {
		words[last] = numericZone(words[last])
	}
	layouts := rfc822Layouts
	if startsWithYear(words[0]) {
		layouts = isoLayouts
		words[0] = strings.ToUpper(words[0]) // RFC 3339 section 5.6 allows t and z
	}
	text = strings.TrimSpace(strings.Join(words, " "))
	for _, layout := range layouts {
		// time.Parse would read abbreviations of zones by the zone of this machine.
		if t, err := time.ParseInLocation(layout, text, time.UTC); err == nil {
			return t
		}
	}
	return time.Time{}
}

// ParseISODate reads the dates of hints: W3CDTF, a profile of ISO 8601.
func ParseISODate(text string) time.Time {
	if !startsWithYear(text) {
		return time.Time{}
	}
	return ParseDate(text)
}

// isoLayouts are those of W3CDTF, with and without T. Fractions of a second need no
// layout of their own.
var isoLayouts = []string{
	time.RFC3339,
	"2006-01-02T15:04:05-0700",
	"2006-01-02T15:04:05",
	"2006-01-02T15:04Z07:00",
	"2006-01-02T15:04",
	"2006-01-02 15:04:05Z07:00",
	"2006-01-02 15:04:05 -0700",
	"2006-01-02 15:04:05",
	"2006-01-02 15:04",
	"2006-01-02",
	"2006-01",
}

// rfc822Layouts are those of RFC 822 as RSS 2.0 has it and of RFC 850, without the day of
// the week, and of the date command.
var rfc822Layouts = []string{
	"2 Jan 2006 15:04:05 -0700",
	"2 Jan 2006 15:04:05",
	"2 Jan 2006 15:04 -0700",
	"2 Jan 2006 15:04",
	"2 Jan 2006",
	"2 January 2006 15:04:05 -0700",
	"2 January 2006",
	"2 Jan 06 15:04:05 -0700",
	"2 Jan 06 15:04 -0700",
	"2-Jan-06 15:04:05 -0700",
	"2-Jan-2006 15:04:05 -0700",
	"Mon 2 Jan 2006 15:04:05 -0700",
	"Mon Jan 2 15:04:05 2006",
	"Mon Jan 2 15:04:05 -0700 2006",
	"January 2, 2006",
}

// startsWithYear reports whether a text starts with four digits and a dash.
func startsWithYear(text string) bool {
	return len(text) > 4 && text[4] == '-' && strings.Trim(text[:4], "0123456789") == ""
}

// numericZone writes a zone as an offset such as -0700, and leaves out an unknown
// abbreviation, which then counts as UTC. Any other word stays as it is.
func numericZone(word string) string {
	if offset, known := zones[strings.ToUpper(word)]; known {
		return offset
	}
	offset := strings.TrimPrefix(strings.TrimPrefix(word, "GMT"), "UTC")
	switch {
	case strings.HasPrefix(offset, "+"), strings.HasPrefix(offset, "-"):
		return strings.Replace(offset, ":", "", 1)
	case len(word) > 2 && strings.Trim(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == "":
		return ""
	}
	return word
}

// zones are those of RFC 822 section 5.1, and British Summer Time, whose
// abbreviation feeds do use.
var zones = map[string]string{
	"Z": "+0000", "UT": "+0000", "UTC": "+0000", "GMT": "+0000", "BST": "+0100",
	"EST": "-0500", "EDT": "-0400", "CST": "-0600", "CDT": "-0500",
	"MST": "-0700", "MDT": "-0600", "PST": "-0800", "PDT": "-0700",
}
