// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"strconv"
	"strings"
	"time"
	"unicode"
)

// maxDate is longer than any date with the names of its zone written out.
const maxDate = 100

// parseDate reads the date of an entry, whatever its notation: RFC 822 as RSS
// asks for, RFC 3339 as Atom and JSON Feed do, and what else publishers write.
// Instead of trying layouts it recognises the parts, which may come in nearly
// any order. Without a zone it is UTC. The zero time: not understood, or
// ambiguous as 02/03/2024 is.
func parseDate(text string) time.Time {
	if len(text) > maxDate {
		return time.Time{}
	}
	text = strings.TrimSpace(text)
	if t, ok := unixDate(text); ok {
		return t
	}
	d := dateParts{}
	parts := strings.FieldsFunc(splitISO(text), func(r rune) bool { return unicode.IsSpace(r) || r == ',' })
	for _, part := range parts {
		if !d.take(part) {
			return time.Time{}
		}
	}
	return d.time()
}

// parseISO reads the dates that hints may have: W3CDTF, a profile of ISO 8601.
func parseISO(text string) time.Time {
	if digits(text) < 4 {
		return time.Time{}
	}
	return parseDate(text)
}

// unixDate reads seconds or milliseconds since 1970, of dates since 2001.
func unixDate(text string) (time.Time, bool) {
	if digits(text) != len(text) || len(text) != 10 && len(text) != 13 {
		return time.Time{}, false
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if len(text) == 13 {
		return time.UnixMilli(n), err == nil
	}
	return time.Unix(n, 0), err == nil
}

// splitISO parts date and time of ISO 8601 by a space.
func splitISO(text string) string {
	if digits(text) < 4 {
		return text
	}
	if i := strings.IndexAny(text, "Tt"); i > 0 && digits(text[i-1:i]) == 1 && digits(strings.TrimLeft(text[i+1:], " ")) > 0 {
		return text[:i] + " " + text[i+1:]
	}
	return text
}

// dateParts are the parts of a date found so far; 0 and false: not yet.
type dateParts struct {
	year, month, day     int
	hour, minute, second int
	clock, afternoon, am bool
	offset               int // of the zone, seconds east of Greenwich
	zone                 bool
}

// take recognises one part. It reports false where the part makes no sense.
func (d *dateParts) take(part string) bool {
	n := digits(part)
	switch first := part[0]; {
	case first == '(' || part == "-":
		return true // a zone's name, behind its offset; a dash between date and time
	case n > 0 && n <= 2 && strings.HasPrefix(part[n:], ":"):
		return !d.clock && d.takeClock(part)
	case n > 0 && n == len(part):
		return d.takeNumber(part)
	case n > 4: // the time in ISO 8601's basic format, with its zone: 135153Z
		return d.takeNumber(part[:n]) && d.takeZone(part[n:])
	case n > 0:
		return d.takeDay(part, n)
	case first == '+' || first == '-':
		return d.takeOffset(part)
	}
	return d.takeWord(part)
}

// takeNumber takes a day, a year, or both with a month between (20240129), or a
// time behind such (135153).
func (d *dateParts) takeNumber(part string) bool {
	n, err := strconv.Atoi(part)
	if err != nil {
		return false
	}
	switch {
	case len(part) == 8 && d.year == 0:
		d.year, d.month, d.day = n/10000, n/100%100, n%100
	case len(part) == 6 && d.year != 0 && !d.clock:
		d.hour, d.minute, d.second, d.clock = n/10000, n/100%100, n%100, true
	case len(part) == 4 && d.year == 0:
		d.year = n
	case len(part) <= 2 && d.day == 0:
		d.day = n
	case len(part) == 2 && d.year == 0:
		d.year = century(n)
	default:
		return false
	}
	return true
}

// takeDay takes a part that starts with a number: 29th, 29-Jan-24, 2024-01-29, 29.01.2024.
func (d *dateParts) takeDay(part string, n int) bool {
	switch suffix := strings.ToLower(part[n:]); suffix {
	case "st", "nd", "rd", "th", ".":
		return d.takeNumber(part[:n])
	case "am", "pm":
		d.hour, d.clock = smallNumber(part[:n]), true
		return d.takeWord(suffix)
	}
	separator := part[n : n+1]
	fields := strings.Split(strings.TrimRight(part, "."), separator)
	if !strings.Contains("-/.", separator) || len(fields) > 3 || d.year != 0 {
		return false
	}
	if n == 4 { // year first; W3CDTF lets the day be absent
		fields = append(fields, "1")[:3]
		d.year, d.month, d.day = smallNumber(fields[0]), smallNumber(fields[1]), smallNumber(fields[2])
		return true
	}
	if len(fields) != 3 {
		return false
	}
	if month := monthOf(fields[1]); month != 0 {
		d.day, d.month = smallNumber(fields[0]), month
	} else if a, b := smallNumber(fields[0]), smallNumber(fields[1]); separator != "/" && b <= 12 || a > 12 || a == b {
		d.day, d.month = a, b // with dots and dashes the day is first
	} else if b > 12 {
		d.day, d.month = b, a
	} else {
		return false
	}
	d.year = smallNumber(fields[2])
	if len(fields[2]) == 2 {
		d.year = century(d.year)
	}
	return true
}

// takeClock takes a time of day, and what is attached to it: pm, Z, +01:00.
func (d *dateParts) takeClock(part string) bool {
	values := []*int{&d.hour, &d.minute, &d.second}
	for i, value := range values {
		n := digits(part)
		if n == 0 || n > 2 {
			return false
		}
		*value = smallNumber(part[:n])
		part = part[n:]
		if i == len(values)-1 || !strings.HasPrefix(part, ":") {
			break
		}
		part = part[1:]
	}
	d.clock = true
	if strings.HasPrefix(part, ".") {
		part = part[1+digits(part[1:]):]
	}
	return part == "" || d.takeZone(part)
}

// takeZone takes an offset or a word.
func (d *dateParts) takeZone(part string) bool {
	if part[0] == '+' || part[0] == '-' {
		return d.takeOffset(part)
	}
	return d.takeWord(part)
}

// takeOffset takes +0100, +01:00, -5 and the like.
func (d *dateParts) takeOffset(part string) bool {
	sign := 1
	if part[0] == '-' {
		sign = -1
	}
	part = strings.TrimLeft(part, "+-")
	hours, minutes, colon := strings.Cut(part, ":")
	if !colon && len(part) > 2 {
		hours, minutes = part[:len(part)-2], part[len(part)-2:]
	}
	minutes, _, _ = strings.Cut(minutes, ":")
	h, m := smallNumber(hours), 0
	if minutes != "" {
		m = smallNumber(minutes)
	}
	// The Line Islands are at +14.
	if h < 0 || h > 14 || m < 0 || m > 59 {
		return false
	}
	d.offset, d.zone = sign*(h*60+m)*60, true
	return true
}

// takeWord takes a month or a zone; other words are weekdays and the like.
func (d *dateParts) takeWord(word string) bool {
	word = strings.ToLower(strings.TrimRight(word, "."))
	switch word {
	case "am", "a.m":
		d.am = true
		return true
	case "pm", "p.m":
		d.afternoon = true
		return true
	case "daylight", "summer":
		d.offset += 3600
		return true
	}
	// The last month counts: "mar" is also Tuesday in French, Italian and Spanish.
	if month := monthOf(word); month != 0 {
		d.month = month
		return true
	}
	name := word
	if i := strings.IndexAny(word, "+-"); i > 0 { // GMT+01:00
		name = word[:i]
		if _, known := zones[name]; known {
			return d.takeOffset(word[i:])
		}
		return false
	}
	if offset, known := zones[name]; known && !d.zone {
		d.offset, d.zone = int(offset*3600), true
	}
	return strings.IndexAny(word, "0123456789") < 0
}

// time puts the parts together, if they are all there and make sense.
func (d *dateParts) time() time.Time {
	if d.year < 1 || d.year > 9999 || d.month < 1 || d.month > 12 || d.day < 1 {
		return time.Time{}
	}
	hour := d.hour
	if d.afternoon && hour < 12 {
		hour += 12
	} else if d.am && hour == 12 {
		hour = 0
	}
	// ISO 8601's midnight at the end of a day, and leap seconds.
	midnight := hour == 24 && d.minute == 0 && d.second == 0
	if hour < 0 || hour > 23 && !midnight || d.minute < 0 || d.minute > 59 || d.second < 0 || d.second > 60 {
		return time.Time{}
	}
	if time.Date(d.year, time.Month(d.month), d.day, 0, 0, 0, 0, time.UTC).Day() != d.day {
		return time.Time{}
	}
	t := time.Date(d.year, time.Month(d.month), d.day, hour, d.minute, d.second, 0, time.UTC)
	return t.Add(-time.Duration(d.offset) * time.Second)
}

// digits counts the ASCII digits that text starts with.
func digits(text string) int {
	n := 0
	for n < len(text) && text[n] >= '0' && text[n] <= '9' {
		n++
	}
	return n
}

// smallNumber reads a short number; -1, which no part of a date can be, if it is none.
func smallNumber(text string) int {
	if len(text) == 0 || len(text) > 4 || digits(text) != len(text) {
		return -1
	}
	n, _ := strconv.Atoi(text)
	return n
}

// century completes a year of two digits (RFC 5322 section 4.3).
func century(year int) int {
	if year < 50 {
		return 2000 + year
	}
	return 1900 + year
}

// monthOf recognises a month by the first three letters of its name in the
// languages in which feeds were seen to write dates.
func monthOf(word string) int {
	word = strings.ToLower(word)
	letters := []rune(word)
	if len(letters) < 3 {
		return 0
	}
	if strings.HasPrefix(word, "juil") {
		return 7
	}
	return months[string(letters[:3])]
}

var months = map[string]int{
	"jan": 1, "gen": 1, "ene": 1, // English, Italian, Spanish
	"feb": 2, "fév": 2, "fev": 2,
	"mar": 3, "mär": 3, "mrz": 3, "mrt": 3, // and French, German, Dutch
	"apr": 4, "avr": 4, "abr": 4,
	"may": 5, "mai": 5, "mei": 5, "mag": 5,
	"jun": 6, "jui": 6, "giu": 6,
	"jul": 7, "lug": 7,
	"aug": 8, "aoû": 8, "aou": 8, "ago": 8,
	"sep": 9, "set": 9,
	"oct": 10, "okt": 10, "ott": 10, "out": 10,
	"nov": 11,
	"dec": 12, "déc": 12, "dez": 12, "dic": 12,
}

// zones are hours east of Greenwich. Of an ambiguous name (CST, BST, IST) the
// reading is the one that RFC 822 or most feeds give it. The words are those of
// "Eastern Standard Time". An unknown name counts as UTC, like none.
var zones = map[string]float64{
	"z": 0, "ut": 0, "utc": 0, "gmt": 0, "wet": 0, "west": 1, "bst": 1,
	"cet": 1, "mez": 1, "cest": 2, "mesz": 2, "eet": 2, "eest": 3, "msk": 3, "msd": 4,
	"est": -5, "edt": -4, "cst": -6, "cdt": -5, "mst": -7, "mdt": -6, "pst": -8, "pdt": -7,
	"akst": -9, "akdt": -8, "hst": -10, "nst": -3.5, "ndt": -2.5, "ast": -4, "adt": -3,
	"eastern": -5, "central": -6, "mountain": -7, "pacific": -8,
	"ist": 5.5, "sgt": 8, "jst": 9, "kst": 9, "aest": 10, "aedt": 11, "acst": 9.5, "acdt": 10.5,
	"nzst": 12, "nzdt": 13,
}
