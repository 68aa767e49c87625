// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"bytes"
	"regexp"
	"strconv"
)

// junkLimit is how far into a document a feed may begin: warnings of PHP and
// the like fit, a page that happens to quote a feed hardly does.
const junkLimit = 64 << 10

var (
	xmlDeclaration = regexp.MustCompile(`<\?xml\s`)
	feedRoot       = regexp.MustCompile(`(?i)<(?:rss|rdf:rdf|(?:\w+:)?feed)[\s>]`)
	page           = regexp.MustCompile(`(?i)<(?:!doctype\s+html|html|head|body)[\s>]`)
)

// feedStart finds where a feed begins that has something in front: an XML
// declaration, which may stand nowhere else, or the first tag if it is a feed's
// root. It is negative where there is none, and behind the start of an HTML page.
func feedStart(text []byte) int {
	head := text[:min(len(text), junkLimit)]
	at := xmlDeclaration.FindIndex(head)
	if at == nil {
		at = feedRoot.FindIndex(head)
		if at == nil || at[0] != bytes.IndexByte(head, '<') {
			return -1
		}
	}
	if page.Match(head[:at[0]]) {
		return -1
	}
	return at[0]
}

// characterReference is a numeric one (XML 1.0 section 4.1).
var characterReference = regexp.MustCompile(`&#(?:[0-9]+|[xX][0-9a-fA-F]+);`)

// repair drops what no XML parser accepts, lenient or not: characters outside of
// XML's range (section 2.2) and references to such.
func repair(text []byte) []byte {
	text = characterReference.ReplaceAllFunc(text, func(ref []byte) []byte {
		digits, base := ref[2:len(ref)-1], 10
		if digits[0] == 'x' || digits[0] == 'X' {
			digits, base = digits[1:], 16
		}
		n, err := strconv.ParseInt(string(digits), base, 32)
		if err != nil || !isXMLChar(rune(n)) {
			return nil
		}
		return ref
	})
	return bytes.Map(func(r rune) rune {
		if !isXMLChar(r) {
			return -1
		}
		return r
	}, text)
}

// isXMLChar reports whether XML 1.0 allows a character (section 2.2).
func isXMLChar(r rune) bool {
	return r == '\t' || r == '\n' || r == '\r' ||
		r >= 0x20 && r <= 0xD7FF || r >= 0xE000 && r <= 0xFFFD || r >= 0x10000 && r <= 0x10FFFF
}

// closedBy reports whether text ends with the end tag of an element, or with
// its start tag if it is empty.
func closedBy(text []byte, name string) bool {
	tag := text[bytes.LastIndexByte(text, '<')+1:]
	if bytes.HasSuffix(tag, []byte("/>")) {
		return true
	}
	tag = bytes.TrimRight(bytes.TrimSuffix(tag, []byte(">")), xmlSpace)
	return bytes.HasPrefix(tag, []byte("/")) && bytes.HasSuffix(tag, []byte(name))
}

// withoutMisc drops white space, comments and processing instructions from the
// front of what follows a root element (XML 1.0 section 2.8): what is left does not belong there.
func withoutMisc(rest []byte) []byte {
	for {
		rest = bytes.TrimLeft(rest, xmlSpace)
		end := -1
		switch {
		case bytes.HasPrefix(rest, []byte("<!--")):
			end = bytes.Index(rest, []byte("-->"))
		case bytes.HasPrefix(rest, []byte("<?")) && !xmlDeclaration.Match(rest[:min(len(rest), 6)]):
			end = bytes.Index(rest, []byte("?>"))
		}
		if end < 0 {
			return rest
		}
		rest = rest[end+bytes.IndexByte(rest[end:], '>')+1:]
	}
}
