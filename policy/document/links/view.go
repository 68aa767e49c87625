// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package links

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf8"
)

// syntax is what a piece of text is written in, which decides about its escapes.
type syntax byte

const (
	xmlText    syntax = iota // text or the value of an attribute in XML
	cdata                    // a CDATA section: no escapes
	jsonString               // a string in JSON
)

// piece is body[start:end], which is written in one syntax.
type piece struct {
	start, end int
	in         syntax
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

// decode appends what pieces of a document say.
func decode(dst, body []byte, pieces []piece) []byte {
	for _, p := range pieces {
		raw := body[p.start:p.end]
		for len(raw) > 0 {
			plain := p.in.plain(raw)
			dst = append(dst, raw[:plain]...)
			if raw = raw[plain:]; len(raw) > 0 {
				var width int
				dst, width = p.in.unescape(dst, raw)
				raw = raw[width:]
			}
		}
	}
	return dst
}

// plain counts the bytes in front of the next escape.
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

// unescape appends what the escape in front of raw stands for, and says how many
// bytes it has. What is no escape stands for itself.
func (s syntax) unescape(dst, raw []byte) (result []byte, width int) {
	if s == jsonString {
		return unescapeJSON(dst, raw)
	}
	return unescapeXML(dst, raw)
}

// unescapeXML reads a reference (XML 1.0 section 4.1) to a character or to one of
// XML's own entities. Others, HTML's among them, stay as they are.
func unescapeXML(dst, raw []byte) (result []byte, width int) {
	end := bytes.IndexByte(raw[:min(len(raw), 12)], ';')
	if end < 0 {
		return append(dst, raw[0]), 1
	}
	switch name := string(raw[1:end]); name {
	case "amp":
		dst = append(dst, '&')
	case "lt":
		dst = append(dst, '<')
	case "gt":
		dst = append(dst, '>')
	case "quot":
		dst = append(dst, '"')
	case "apos":
		dst = append(dst, '\'')
	default:
		digits, number := strings.CutPrefix(name, "#")
		radix := 10
		if hex, ok := strings.CutPrefix(strings.ToLower(digits), "x"); ok {
			digits, radix = hex, 16
		}
		n, err := strconv.ParseUint(digits, radix, 21)
		if !number || err != nil || n == 0 {
			return append(dst, raw[0]), 1
		}
		dst = utf8.AppendRune(dst, rune(n))
	}
	return dst, end + 1
}

// unescapeJSON reads an escape in a JSON string (RFC 8259 section 7).
func unescapeJSON(dst, raw []byte) (result []byte, width int) {
	if len(raw) < 2 {
		return append(dst, raw[0]), 1
	}
	switch raw[1] {
	case 'n':
		return append(dst, '\n'), 2
	case 't':
		return append(dst, '\t'), 2
	case 'r':
		return append(dst, '\r'), 2
	case 'b':
		return append(dst, '\b'), 2
	case 'f':
		return append(dst, '\f'), 2
	case 'u':
		if len(raw) >= 6 {
			if n, err := strconv.ParseUint(string(raw[2:6]), 16, 16); err == nil {
				return utf8.AppendRune(dst, rune(n)), 6 // halves of a surrogate pair: nothing that matters here
			}
		}
	}
	return append(dst, raw[1]), 2
}

// locator finds places in a document by their offsets in what [decode] made of it.
// Each offset that it is asked for must not be below the one before.
type locator struct {
	body    []byte
	pieces  []piece
	at      int // in the document, within pieces[0]
	decoded int // offset of at
	scratch []byte
}

func newLocator(body []byte, pieces []piece) *locator {
	l := &locator{body: body, pieces: pieces}
	if len(pieces) > 0 {
		l.at = pieces[0].start
	}
	return l
}

// find returns where an offset is, and in which piece; at the border of two in the
// second. It is not ok where the offset is within an escape.
func (l *locator) find(offset int) (at int, in piece, ok bool) {
	for len(l.pieces) > 0 {
		p := l.pieces[0]
		for l.at < p.end && l.decoded < offset {
			raw := l.body[l.at:p.end]
			if plain := min(p.in.plain(raw[:min(len(raw), offset-l.decoded)]), offset-l.decoded); plain > 0 {
				l.at += plain
				l.decoded += plain
				continue
			}
			var width int
			l.scratch, width = p.in.unescape(l.scratch[:0], raw)
			l.at += width
			l.decoded += len(l.scratch)
		}
		if l.at < p.end || len(l.pieces) == 1 {
			return l.at, p, l.decoded == offset
		}
		l.pieces = l.pieces[1:]
		l.at = l.pieces[0].start
	}
	return 0, piece{}, false
}
