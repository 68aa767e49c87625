// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package links

import (
	"bytes"
	"encoding/xml"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/feedpollard/pollard/internal/markup"
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
	decoded []byte
	places  []int32 // where each byte stands, or the escape that it comes from; and where the last piece ends
	pieces  []piece
	unknown bool // it has a reference to an entity that is not known here
}

// decode reads pieces of a document, which are in order.
func (t *text) decode(body []byte, pieces []piece) {
	t.decoded, t.places, t.pieces, t.unknown = t.decoded[:0], t.places[:0], pieces, false
	end := 0
	for _, p := range pieces {
		for at := p.Start; at < p.End; end = at {
			raw := body[at:p.End]
			plain := p.in.plain(raw)
			t.decoded = append(t.decoded, raw[:plain]...)
			for i := range plain {
				t.places = append(t.places, int32(at+i))
			}
			if at += plain; at < p.End {
				length := t.unescape(raw[plain:], p.in)
				for len(t.places) < len(t.decoded) {
					t.places = append(t.places, int32(at))
				}
				at += length
			}
		}
	}
	t.places = append(t.places, int32(end))
}

// find returns where text from one offset to another stands in the document. It is not
// ok if an end is within an escape, or if they are in different pieces. Of an offset
// between two pieces, it returns the place in the second.
func (t *text) find(start, end int) (place span, in syntax, ok bool) {
	for _, offset := range []int{start, end} {
		if offset > 0 && t.places[offset] == t.places[offset-1] {
			return span{}, 0, false
		}
	}
	place = span{Start: int(t.places[start]), End: int(t.places[end])}
	i := sort.Search(len(t.pieces), func(i int) bool { return t.pieces[i].End >= place.End })
	return place, t.pieces[i].in, place.Start >= t.pieces[i].Start
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

// entity is a reference to an entity (XML 1.0 section 4.1). Other entities than XML's own, HTML's
// among them, stay as they are written.
var entity = regexp.MustCompile(`^&([^\s&<>#=/?"';]{1,98});`)

// unescape appends what the escape at the start of raw stands for, and returns the
// escape's length. Bytes that are not an escape stand for themselves.
func (t *text) unescape(raw []byte, in syntax) (length int) {
	if in == jsonString {
		t.decoded, length = unescapeJSON(t.decoded, raw)
		return length
	}
	end := bytes.IndexByte(raw[:min(len(raw), 12)], ';')
	if end > 0 {
		if r, ok := markup.Character(string(raw[1:end])); ok {
			t.decoded = utf8.AppendRune(t.decoded, r)
			return end + 1
		}
	}
	if bytes.IndexByte(raw[:min(len(raw), 400)], ';') > 0 { // a search takes longer, and there may be very many &
		if m := entity.FindSubmatch(raw); m != nil && xml.HTMLEntity[string(m[1])] == "" {
			t.unknown = true
		}
	}
	t.decoded = append(t.decoded, raw[0])
	return 1
}

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
