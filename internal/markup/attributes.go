// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package markup

import "bytes"

// Span is text[Start:End].
type Span struct{ Start, End int }

// AttributeSpan is where the name and the value of an attribute stand, without quotes.
type AttributeSpan struct{ Name, Value Span }

// Attributes finds the attributes of a start tag of HTML or XML.
func Attributes(text []byte, tag Span) []AttributeSpan {
	var list []AttributeSpan
	at, end := tag.Start+1, tag.End-1
	for at < end && !IsHTMLSpace(text[at]) && text[at] != '/' {
		at++
	}
	for at < end {
		if IsHTMLSpace(text[at]) || text[at] == '/' {
			at++
			continue
		}
		var a AttributeSpan
		a, at = readAttribute(text[:end], at)
		list = append(list, a)
	}
	return list
}

// readAttribute reads the attribute at an offset and returns where it ends.
func readAttribute(text []byte, at int) (a AttributeSpan, end int) {
	a.Name.Start = at
	for at++; at < len(text) && !IsHTMLSpace(text[at]) && text[at] != '/' && text[at] != '='; {
		at++
	}
	a.Name.End = at
	after := skipSpace(text, at)
	if after == len(text) || text[after] != '=' {
		return a, at
	}
	at = skipSpace(text, after+1)
	if at < len(text) && (text[at] == '"' || text[at] == '\'') {
		if length := bytes.IndexByte(text[at+1:], text[at]); length >= 0 {
			a.Value = Span{at + 1, at + 1 + length}
			return a, a.Value.End + 1
		}
	}
	a.Value.Start = at
	for at < len(text) && !IsHTMLSpace(text[at]) {
		at++
	}
	a.Value.End = at
	return a, at
}

func skipSpace(text []byte, at int) int {
	for at < len(text) && IsHTMLSpace(text[at]) {
		at++
	}
	return at
}

// IsHTMLSpace reports white space as HTML defines it.
func IsHTMLSpace(c byte) bool { return isSpace(c) || c == '\f' }
