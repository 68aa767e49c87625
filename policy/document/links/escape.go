// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package links

import (
	"bytes"
	"encoding/xml"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"
)

// syntax is how a piece of text is written, which decides about its escapes.
type syntax byte

const (
	xmlText    syntax = iota // text or the value of an attribute in XML
	cdata                    // a CDATA section: no escapes
	jsonString               // a string in JSON
)

// piece is a part of the document in one syntax.
type piece struct {
	span
	in syntax
}

// escape writes ASCII text in a syntax.
func (s syntax) escape(text string) string {
	switch s {
	case xmlText:
		return xmlEscapes.Replace(text)
	case jsonString:
		return jsonEscapes.Replace(text)
	}
	return text
}

var (
	xmlEscapes  = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "'", "&#39;")
	jsonEscapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`)
)

// text is what pieces of a document say, with the place of each byte in the document.
type text struct {
	decoded  []byte
	segments []segment
	unknown  bool // it has a reference to an entity that is not known here
}

// segment is a run of plain bytes, or one escape.
type segment struct {
	at      int // offset in the decoded text
	place   span
	escaped bool
	piece   int
	in      syntax
}

// decode reads pieces of a document.
func (t *text) decode(body []byte, pieces []piece) {
	t.decoded, t.segments, t.unknown = t.decoded[:0], t.segments[:0], false
	for i, p := range pieces {
		for at := p.Start; at < p.End; {
			raw := body[at:p.End]
			s := segment{at: len(t.decoded), place: span{at, at + p.in.plain(raw)}, piece: i, in: p.in}
			if s.place.End > at {
				t.decoded = append(t.decoded, body[at:s.place.End]...)
			} else {
				s.place.End = at + t.unescape(raw, p.in)
				s.escaped = s.place.End > at+1
			}
			at = s.place.End
			if n := len(t.segments); n > 0 && !s.escaped && !t.segments[n-1].escaped && t.segments[n-1].piece == i {
				t.segments[n-1].place.End = at
			} else {
				t.segments = append(t.segments, s)
			}
		}
	}
}

// find returns where text from one offset to another stands in the document. It is not
// ok if an end is within an escape, or if they are in different pieces. Of an offset
// between two pieces, it returns the place in the second.
func (t *text) find(start, end int) (place span, in syntax, ok bool) {
	from, first := t.locate(start)
	to, last := from, first
	if end > start {
		to, last = t.locate(end)
	}
	if first < 0 || last < 0 || t.segments[first].piece != t.segments[last].piece {
		return span{}, 0, false
	}
	return span{from, to}, t.segments[first].in, true
}

// locate returns the place of an offset, and its segment, which is negative if there is
// no such place.
func (t *text) locate(offset int) (place, index int) {
	index = sort.Search(len(t.segments), func(i int) bool { return t.segments[i].at > offset }) - 1
	if index < 0 {
		return 0, -1
	}
	switch s := t.segments[index]; {
	case offset == s.at:
		return s.place.Start, index
	case offset == len(t.decoded):
		return s.place.End, index
	case s.escaped:
		return 0, -1
	default:
		return s.place.Start + offset - s.at, index
	}
}

// plain counts the bytes before the next escape.
func (s syntax) plain(raw []byte) int {
	escape := byte('&')
	switch s {
	case cdata:
		return len(raw)
	case jsonString:
		escape = '\\'
	}
	if i := bytes.IndexByte(raw, escape); i >= 0 {
		return i
	}
	return len(raw)
}

// unescape appends what the escape at the start of raw stands for, and returns the
// escape's length. Bytes that are not an escape stand for themselves.
func (t *text) unescape(raw []byte, in syntax) (length int) {
	if in == jsonString {
		t.decoded, length = unescapeJSON(t.decoded, raw)
		return length
	}
	end := bytes.IndexByte(raw[:min(len(raw), 12)], ';')
	if end > 0 {
		if r, ok := character(string(raw[1:end])); ok {
			t.decoded = utf8.AppendRune(t.decoded, r)
			return end + 1
		}
	}
	if name := entityName(raw); name != "" {
		if _, known := xml.HTMLEntity[name]; !known {
			t.unknown = true
		}
	}
	t.decoded = append(t.decoded, raw[0])
	return 1
}

// entityName returns the name in an entity reference at the start of raw, or "" (XML 1.0
// section 4.1).
func entityName(raw []byte) string {
	const longest = 100
	raw = raw[1:min(len(raw), longest)]
	end := bytes.IndexByte(raw, ';')
	if end < 0 || bytes.ContainsAny(raw[:end], " \t\r\n&<>#=/?\"'") {
		return ""
	}
	return string(raw[:end])
}

// character returns the character that a reference in XML stands for, by number or as
// one of XML's own entities. Other entities, HTML's among them, stay as they are written.
func character(name string) (rune, bool) {
	if r, own := xmlEntities[name]; own {
		return r, true
	}
	digits, number := strings.CutPrefix(name, "#")
	radix := 10
	if hex, ok := strings.CutPrefix(strings.ToLower(digits), "x"); ok {
		digits, radix = hex, 16
	}
	n, err := strconv.ParseUint(digits, radix, 21)
	return rune(n), number && err == nil && n != 0
}

var xmlEntities = map[string]rune{"amp": '&', "lt": '<', "gt": '>', "quot": '"', "apos": '\''}

// unescapeJSON appends what an escape in a JSON string stands for (RFC 8259 section 7),
// and returns its length.
func unescapeJSON(dst, raw []byte) (result []byte, length int) {
	if len(raw) < 2 {
		return append(dst, raw[0]), 1
	}
	text := string(raw[:min(len(raw), 6)])
	if r, _, rest, err := strconv.UnquoteChar(text, '"'); err == nil {
		return utf8.AppendRune(dst, r), len(text) - len(rest)
	}
	return append(dst, raw[1]), 2 // a slash, or half of a surrogate pair: URLs have none
}
