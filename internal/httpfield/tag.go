// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package httpfield

import "strings"

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
