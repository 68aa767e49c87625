// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package httpfield

import (
	"net/http"
	"strings"
	"time"
)

// Tag is an entity tag (RFC 9110 section 8.8.3). The zero Tag means that there is none.
type Tag struct {
	Opaque string // without the quotes; empty: no tag
	Weak   bool
	Any    bool // the "*" of a condition, which matches any current representation
}

// ParseTag reads the value of an ETag field.
func ParseTag(text string) Tag {
	tag, _ := CutTag(text)
	return tag
}

// CutTag cuts off the first entity tag of a list such as If-None-Match. If the rest is
// empty, it was the last one. CutTag accepts a lower-case w/ and tags without quotes,
// which some origins send and readers repeat.
func CutTag(list string) (tag Tag, rest string) {
	list = strings.TrimLeft(list, " \t,")
	if len(list) > 2 && list[0]|0x20 == 'w' && list[1] == '/' {
		tag.Weak = true
		list = list[2:]
	}
	if inner, quoted := strings.CutPrefix(list, `"`); quoted {
		// No escapes: a backslash is a character like any other (RFC 9110 section 8.8.3).
		tag.Opaque, rest, _ = strings.Cut(inner, `"`)
		if rest == "" || strings.IndexByte(" \t,", rest[0]) >= 0 {
			return tag, rest
		}
		// Such as "a"-gzip, which differs from "a".
	}
	bare, rest, _ := strings.Cut(list, ",")
	bare = strings.TrimRight(bare, " \t")
	if bare == "*" && !tag.Weak {
		return Tag{Any: true}, rest
	}
	tag.Opaque = bare
	return tag, rest
}

// Equal compares weakly (RFC 9110 section 8.8.3.2): only the opaque text counts.
func (t Tag) Equal(u Tag) bool { return t.Opaque == u.Opaque && t.Opaque != "" }

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
