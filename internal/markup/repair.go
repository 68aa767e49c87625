// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package markup

import (
	"bytes"
	"encoding/xml"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// junkLimit is how far into a document a feed may begin: warnings of PHP and
// the like fit, a page that happens to quote a feed hardly does.
const junkLimit = 64 << 10

var (
	byteOrderMark  = []byte("\ufeff")
	declaration    = regexp.MustCompile(`^<\?xml\s[^>]*?\?>`)
	xmlDeclaration = regexp.MustCompile(`<\?xml\s`)
	feedRoot       = regexp.MustCompile(`(?i)<(?:rss|rdf:rdf|(?:\w+:)?feed)[\s>]`)
	// numberReference is a reference to a character by its number.
	numberReference = regexp.MustCompile(`^&#(?:[0-9]+|[xX][0-9a-fA-F]+);`)
	// tag begins an element in front of a feed, and finished ends one or has none to end.
	tag      = regexp.MustCompile(`<[A-Za-z]`)
	finished = regexp.MustCompile(`(?i)</|/>|<br>|<hr>|<p>`)
	page     = regexp.MustCompile(`(?i)<(?:!doctype\s+html|html|head|body)[\s>]`)
)

// Begin returns the offset after the byte order marks, white space and XML declaration
// at the start of a document. A site that joins files may put several marks in front.
func Begin(text []byte) int {
	rest := text
	for bytes.HasPrefix(rest, byteOrderMark) {
		rest = rest[len(byteOrderMark):]
	}
	rest = bytes.TrimLeft(rest, Space)
	rest = rest[len(declaration.Find(rest)):]
	return len(text) - len(rest)
}

// IsPage reports whether text begins as an HTML page does, or has the start of one in it.
func IsPage(text []byte) bool { return page.Match(text[:min(len(text), junkLimit)]) }

// Head is as much of a text as [Start] and [IsPage] look at.
func Head(text []byte) []byte { return text[:min(len(text), junkLimit)] }

// Start returns the offset of the feed in a document: 0 if its first element is the root
// of a feed. Otherwise something was put in front of the feed, such as a warning or a script, and it
// begins at an XML declaration or at its root. Start is negative if there is neither, if an HTML page
// begins before, or if the feed is within the element of another document.
func Start(text []byte) int {
	if startsWithRoot(text) {
		return 0
	}
	head := Head(text)
	at := xmlDeclaration.FindIndex(head)
	if at == nil {
		at = feedRoot.FindIndex(head)
	}
	if at == nil || page.Match(head[:at[0]]) || tag.Match(head[:at[0]]) && !finished.Match(head[:at[0]]) {
		return -1
	}
	return at[0]
}

// startsWithRoot reports whether the first element is the root of a feed, with nothing
// but what belongs there before it.
func startsWithRoot(text []byte) bool {
	for s := NewScanner(text, true); ; {
		token, err := s.Next()
		switch t := token.(type) {
		case xml.StartElement:
			switch strings.ToLower(t.Name.Local) {
			case "rss", "rdf", "feed":
				return true
			}
			return false
		case xml.CharData:
			if len(bytes.Trim(t, Space)) > 0 {
				return false
			}
		}
		if err != nil {
			return false
		}
	}
}

// CountTags counts the start tags of a name, or the end tags if that begins with a slash, where markup cannot
// be read: whatever their prefix, and in capitals too.
func CountTags(text []byte, name string) (n int) {
	local, end := strings.CutPrefix(name, "/")
	for i := bytes.IndexByte(text, '<'); i >= 0; i = bytes.IndexByte(text, '<') {
		text = text[i+1:]
		found, ends := bytes.CutPrefix(text[:min(len(text), maxTagName)], []byte("/"))
		if stop := bytes.IndexAny(found, Space+"/<>"); stop > 0 {
			found = found[bytes.LastIndexByte(found[:stop], ':')+1 : stop]
			if ends == end && bytes.EqualFold(found, []byte(local)) {
				n++
			}
		}
	}
	return n
}

// maxTagName is more than the names of elements in feeds have, with their prefix.
const maxTagName = 256

// Repair replaces by spaces what no XML parser accepts, lenient or not: characters that
// XML forbids (XML 1.0 section 2.2) and references to such. Offsets stay as they are.
// The result is text itself if there are none.
func Repair(text []byte) []byte {
	repaired := text
	blank := func(start, end int) {
		if &repaired[0] == &text[0] {
			repaired = bytes.Clone(text)
		}
		for i := start; i < end; i++ {
			repaired[i] = ' '
		}
	}
	for i := 0; i < len(text); {
		if c := text[i]; c == '&' {
			if !bytes.HasPrefix(text[i:], []byte("&#")) {
				i++
				continue // a search takes long, and there may be very many
			}
			if reference := numberReference.Find(text[i:]); reference != nil {
				if r, ok := Character(strings.Trim(string(reference), "&;")); !ok || !isChar(r) {
					blank(i, i+len(reference))
				}
			}
		} else if c < ' ' && !isSpace(c) {
			blank(i, i+1)
		} else if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRune(text[i:])
			if r == utf8.RuneError && size == 1 || !isChar(r) {
				blank(i, i+size)
			}
			i += size
			continue
		}
		i++
	}
	return repaired
}

// Character returns the character that a reference in XML stands for, by number or as one of XML's
// own entities (XML 1.0 section 4.1). The name is what stands between & and the semicolon.
func Character(name string) (rune, bool) {
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

// isChar reports whether XML 1.0 allows a character (section 2.2).
func isChar(r rune) bool {
	return r == '\t' || r == '\n' || r == '\r' ||
		r >= 0x20 && r <= 0xD7FF || r >= 0xE000 && r <= 0xFFFD || r >= 0x10000 && r <= 0x10FFFF
}
