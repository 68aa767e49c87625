// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package links

import (
	"net/url"
	"strings"

	"github.com/feedpollard/pollard/policy/document/internal/markup"
)

// maxBase bounds the length of a base URL, in bytes.
const maxBase = 2048

// base is a URL that references are resolved against (RFC 3986 section 5), in the
// pieces that can stand before a reference.
type base struct {
	url    *url.URL
	scheme string // with the colon
	origin string // scheme and authority
	path   string // origin and path
}

// parseBase reads a base URL. It returns nil if references cannot be resolved against it.
// User name, password and query are removed: they may be secrets, and links are public.
func parseBase(text string) *base {
	u, err := url.Parse(text)
	if err != nil || len(text) > maxBase {
		return nil
	}
	return newBase(u)
}

func newBase(u *url.URL) *base {
	plain := &url.URL{Scheme: strings.ToLower(u.Scheme), Host: u.Host, Path: u.Path, RawPath: u.RawPath}
	if plain.Scheme != "http" && plain.Scheme != "https" || plain.Host == "" || u.Opaque != "" {
		return nil
	}
	if plain.Path == "" {
		plain.Path = "/"
	}
	text := plain.String()
	for i := range len(text) {
		if c := text[i]; c <= ' ' || c >= 0x7f || strings.IndexByte("\"<>\\^`{|}", c) >= 0 {
			return nil
		}
	}
	b := &base{url: plain, scheme: plain.Scheme + ":", path: text}
	slash := len(b.scheme) + len("//")
	b.origin = text[:slash+strings.IndexByte(text[slash:], '/')]
	return b
}

// directory is the base up to its last slash, or to a directory above that.
func (b *base) directory(above int) string {
	end := strings.LastIndexByte(b.path, '/')
	for ; above > 0 && end > len(b.origin); above-- {
		end = strings.LastIndexByte(b.path[:end], '/')
	}
	return b.path[:end+1]
}

// below returns the base within an xml:base in this one, or nil if it cannot be used.
func (b *base) below(reference string) *base {
	reference = strings.Trim(reference, markup.Space)
	u, err := url.Parse(reference)
	switch {
	case err != nil || len(reference) > maxBase:
		return nil
	case b != nil:
		u = b.url.ResolveReference(u)
	}
	return newBase(u)
}

// resolve returns how a reference becomes absolute: without its first drop bytes, and with
// a prefix before the rest. The reference has no white space around it. Dot segments in
// its middle stay: clients resolve them. It is not ok if the reference is a URL of any
// scheme or empty, or if it is uncertain what it refers to.
func (b *base) resolve(reference string) (prefix string, drop int, ok bool) {
	if reference == "" || hasScheme(reference) || b == nil {
		return "", 0, false
	}
	for i := range len(reference) {
		if c := reference[i]; c < ' ' || c == 0x7f || c == '<' || c == '>' {
			return "", 0, false // parsers that drop it see a different URL
		}
	}
	switch {
	case strings.HasPrefix(reference, "//"):
		return b.scheme, 0, true
	case reference[0] == '/':
		return b.origin, 0, true
	case reference[0] == '?', reference[0] == '#':
		return b.path, 0, true
	case strings.ContainsRune(`{[\`, rune(reference[0])), // a template that was not filled in, a path of Windows
		len(reference) > 7 && strings.EqualFold(reference[:5], "http%"), len(reference) > 7 && strings.EqualFold(reference[:6], "https%"): // escaped as a whole
		return "", 0, false
	}
	for above := 0; ; {
		switch rest := reference[drop:]; {
		case strings.HasPrefix(rest, "./"):
			drop += 2
		case strings.HasPrefix(rest, "../"):
			drop += 3
			above++
		case rest == ".":
			return b.directory(above), drop + 1, true
		case rest == "..":
			return b.directory(above + 1), drop + 2, true
		case strings.HasPrefix(rest, "/"):
			// "./" followed by a slash: an empty segment, which would vanish here.
			return "", 0, false
		default:
			return b.directory(above), drop, true
		}
	}
}

// resolveHTML is resolve for the value of an attribute in HTML, which may contain
// character references. It is not ok if they decide whether the value is relative. An
// empty value is a link to the document itself.
func (b *base) resolveHTML(value string) (prefix string, drop int, ok bool) {
	if value == "" && b != nil {
		return b.path, 0, true
	}
	if start := strings.IndexAny(value, "/?#&"); start >= 0 && value[start] == '&' {
		return "", 0, false
	}
	return b.resolve(value)
}

// hasScheme reports whether a reference starts with a scheme (RFC 3986 section 3.1).
func hasScheme(reference string) bool {
	for i := range len(reference) {
		switch c := reference[i]; {
		case c|0x20 >= 'a' && c|0x20 <= 'z':
		case i > 0 && (c >= '0' && c <= '9' || c == '+' || c == '-' || c == '.'):
		default:
			return i > 0 && c == ':'
		}
	}
	return false
}
