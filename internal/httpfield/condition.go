// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package httpfield

import (
	"net/http"
	"strings"
	"time"
)

// ParseDate reads a date of a request as the instant that it means. Some readers write the zone as
// UTC or by numbers (RFC 5322 section 3.3), and some add parameters behind a semicolon.
func ParseDate(date string) (t time.Time, ok bool) {
	if t, err := http.ParseTime(date); err == nil {
		return t, true
	}
	date, _, _ = strings.Cut(date, ";")
	date = strings.TrimSpace(date)
	if bare, found := strings.CutSuffix(date, " UTC"); found {
		date = bare + " GMT"
	}
	t, err := http.ParseTime(date)
	if err != nil {
		t, err = time.Parse(time.RFC1123Z, date)
	}
	return t.UTC(), err == nil
}

// NotModified evaluates the conditions of a GET or HEAD (RFC 9110 section 13.2.2)
// in the lines of its If-None-Match and If-Modified-Since. The second is ignored if the
// first is present. The function named reports whether a tag is the current
// representation's, by weak comparison; unmodified, whether it has not changed since a
// date.
func NotModified(ifNoneMatch, ifModifiedSince []string, named func(Tag) bool, unmodified func(date string) bool) bool {
	if len(ifNoneMatch) > 0 {
		return HasTag(ifNoneMatch, named)
	}
	// RFC 9110 section 13.1.3: a field that is not one date is ignored.
	return len(ifModifiedSince) == 1 && unmodified(ifModifiedSince[0])
}

// HasTag reports whether the lines of If-None-Match contain "*", or a tag for which named
// returns true (RFC 9110 section 13.1.2).
func HasTag(lines []string, named func(Tag) bool) bool {
	for _, list := range lines {
		for list != "" {
			var tag Tag
			tag, list = CutTag(list)
			if tag.Any || tag.Opaque != "" && named(tag) {
				return true
			}
		}
	}
	return false
}
