// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package httpfield

import "strings"

// Tag is an entity tag (RFC 9110 section 8.8.3). The zero Tag is none.
type Tag struct {
	Opaque string // without the quotes; empty: no tag, nothing that it says could tell two versions apart
	Weak   bool
	Any    bool // the "*" of a condition, which matches any current representation
}

// ParseTag reads the value of an ETag field.
func ParseTag(text string) Tag {
	tag, _ := CutTag(text)
	return tag
}

// CutTag takes the first entity tag off a list such as If-None-Match; where the
// rest is empty it was the last one. A lower-case w/ and tags without quotes,
// which some origins send and readers repeat, are tolerated.
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
		// Such as "a"-gzip, which is not the same as "a": taken as it stands.
	}
	bare, rest, _ := strings.Cut(list, ",")
	bare = strings.TrimRight(bare, " \t")
	if bare == "*" && !tag.Weak {
		return Tag{Any: true}, rest
	}
	tag.Opaque = bare
	return tag, rest
}

// Equal is the weak comparison of RFC 9110 section 8.8.3.2: the same opaque text.
func (t Tag) Equal(u Tag) bool { return t.Opaque == u.Opaque && t.Opaque != "" }

// EqualStrong is the strong comparison: in addition, neither tag is weak.
func (t Tag) EqualStrong(u Tag) bool { return t.Equal(u) && !t.Weak && !u.Weak }
