// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package markup

import (
	"bytes"
	"cmp"
	"mime"
	"regexp"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/ianaindex"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/encoding/unicode/utf32"
)

// declarationEncoding finds the encoding in an XML declaration (XML 1.0 section 4.3.3).
var declarationEncoding = regexp.MustCompile(`^\s*<\?xml\s[^>]*?\bencoding\s*=\s*["']\s*([A-Za-z0-9._:-]+)`)

// UTF8 returns a document in UTF-8: the document itself if it is in UTF-8. A byte order mark
// and an XML declaration, which may be wrong then, stay, see [Begin].
//
// The bytes themselves come first, because labels are often wrong: a byte order mark,
// then the zero bytes of UTF-16 and UTF-32, then UTF-8 if it is valid, because text in
// another encoding hardly ever is. Then come the charset of the Content-Type and the XML
// declaration, in this order (RFC 7303 section 3), and Windows-1252 if neither fits: any
// bytes are valid in it, and markup is ASCII.
func UTF8(body []byte, contentType string) []byte {
	if enc := wideEncoding(body); enc != nil {
		return decodeAll(enc, body)
	}
	if labels := declaredEncodings(body, contentType); !utf8.Valid(body) || looksLikeASCII(labels) {
		return decodeCharset(labels, body)
	}
	return body
}

// ASCIICompatible reports whether markup can be found in a document without decoding it,
// because bytes of ASCII punctuation mean nothing else. UTF-16, UTF-32 and encodings that
// switch between character sets are not compatible.
func ASCIICompatible(body []byte, contentType string) bool {
	return wideEncoding(body) == nil && !looksLikeASCII(declaredEncodings(body, contentType))
}

// Declared returns the encoding that an XML parser reads the document in if the
// Content-Type does not name one (XML 1.0 section 4.3.3): a wrong declaration that is
// repaired changes what readers see, although no character of the text changes here.
func Declared(body []byte) string {
	if bytes.HasPrefix(body, byteOrderMark) || wideEncoding(body) != nil {
		return "utf-8"
	}
	return cmp.Or(inDeclaration(body), "utf-8")
}

// inDeclaration returns the encoding that the XML declaration names; empty: none.
func inDeclaration(body []byte) string {
	if m := declarationEncoding.FindSubmatch(body[:min(len(body), 1024)]); m != nil {
		return string(m[1])
	}
	return ""
}

// wideEncoding recognises UTF-16 and UTF-32 by a mark or by the zeros in the first four
// bytes, which are ASCII characters in any feed (XML 1.0 appendix F.1).
func wideEncoding(body []byte) encoding.Encoding {
	if len(body) < 4 {
		return nil
	}
	zeros := [4]bool{body[0] == 0, body[1] == 0, body[2] == 0, body[3] == 0}
	switch {
	case bytes.HasPrefix(body, []byte{0xFF, 0xFE, 0, 0}), zeros == [4]bool{false, true, true, true}:
		return utf32.UTF32(utf32.LittleEndian, utf32.IgnoreBOM)
	case bytes.HasPrefix(body, []byte{0, 0, 0xFE, 0xFF}), zeros == [4]bool{true, true, true, false}:
		return utf32.UTF32(utf32.BigEndian, utf32.IgnoreBOM)
	case bytes.HasPrefix(body, []byte{0xFF, 0xFE}), zeros == [4]bool{false, true, false, true}:
		return unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM)
	case bytes.HasPrefix(body, []byte{0xFE, 0xFF}), zeros == [4]bool{true, false, true, false}:
		return unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM)
	}
	return nil
}

// declaredEncodings returns the names in the Content-Type and the XML declaration.
func declaredEncodings(body []byte, contentType string) []string {
	var labels []string
	if _, params, err := mime.ParseMediaType(contentType); err == nil && params["charset"] != "" {
		labels = append(labels, strings.Trim(params["charset"], `'" `))
	}
	if label := inDeclaration(body); label != "" {
		labels = append(labels, label)
	}
	return labels
}

// looksLikeASCII reports whether a label names an encoding whose bytes are all
// ASCII and which therefore looks like UTF-8.
func looksLikeASCII(labels []string) bool {
	for _, label := range labels {
		label = strings.ToLower(label)
		if strings.HasPrefix(label, "iso-2022-") || label == "csiso2022jp" || label == "hz-gb-2312" {
			return true
		}
	}
	return false
}

// decodeCharset decodes the body by the first label that fits all of it.
func decodeCharset(labels []string, body []byte) []byte {
	for _, label := range labels {
		enc := lookup(label)
		if enc == nil {
			continue
		}
		if text := decodeAll(enc, body); !bytes.ContainsRune(text, utf8.RuneError) {
			return text
		}
	}
	if utf8.Valid(body) {
		return body
	}
	return decodeAll(charmap.Windows1252, body)
}

// lookup finds an encoding by the names of the web, then by IANA's. It returns nil for
// unknown names and for UTF encodings, which UTF8 has ruled out. UTF-7 is unknown: it
// hides markup from filters.
func lookup(label string) encoding.Encoding {
	enc, err := htmlindex.Get(label)
	if err != nil {
		enc, err = ianaindex.IANA.Encoding(strings.ReplaceAll(label, "_", "-"))
	}
	if err != nil || enc == nil || enc == encoding.Replacement {
		return nil
	}
	if name, err := htmlindex.Name(enc); err == nil && strings.HasPrefix(name, "utf-") {
		return nil
	}
	return enc
}

// decodeAll decodes a text. Invalid bytes become U+FFFD.
func decodeAll(enc encoding.Encoding, body []byte) []byte {
	text, err := enc.NewDecoder().Bytes(body)
	if err != nil {
		return body
	}
	return text
}
