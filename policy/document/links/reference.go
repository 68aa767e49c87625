// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package links

import (
	"net/url"
	"strings"

	"github.com/feedpollard/pollard/internal/markup"
)

// maxBase bounds the length of a base URL, in bytes.
const maxBase = 2048

// base is a URL that references are resolved against (RFC 3986 section 5), in the
// pieces that can stand before a reference.
type base struct {
	url    *url.URL
	scheme string // with the colon
	origin string // scheme and authority
	path   string // origin and path; empty: the URL is not known

	relative  bool  // it was resolved against the document's own URL
	noQuery   bool  // it is that URL: a query alone is not written after it
	otherwise *base // what counts if the URL is not known at the end of the document
	html      *base // the same for references in HTML
}

// known returns the base, or the one that counts instead of it. Nil: there is none.
func (b *base) known() *base {
	for b != nil && b.path == "" {
		b = b.otherwise
	}
	return b
}

// inHTML returns the base for references in HTML. On the document's own host it has the scheme by
// which the document was fetched: readers show no pictures of http in a page of https.
func (b *base) inHTML(own *base) *base {
	if b == nil || own == nil || b.scheme == own.scheme || !strings.EqualFold(b.url.Host, own.url.Host) {
		return b
	}
	if b.html == nil {
		same := *b
		same.url = &url.URL{Scheme: own.url.Scheme, Host: b.url.Host, Path: b.url.Path, RawPath: b.url.RawPath}
		same.scheme, same.origin, same.path = own.scheme, own.scheme+b.origin[len(b.scheme):], own.scheme+b.path[len(b.scheme):]
		b.html = &same
	}
	return b.html
}

// is reports whether two bases are one URL, whatever its scheme.
func (b *base) is(other *base) bool {
	return b != nil && other != nil && strings.EqualFold(b.path[len(b.scheme):], other.path[len(other.scheme):])
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
	if strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r >= 0x7f || strings.ContainsRune("\"<>\\^`{|}", r) }) {
		return nil
	}
	b := &base{url: plain, scheme: plain.Scheme + ":", path: text}
	slash := len(b.scheme) + len("//")
	b.origin = text[:slash+strings.IndexByte(text[slash:], '/')]
	return b
}

// below returns the base within an xml:base in this one, or nil if it cannot be used.
func (b *base) below(reference string) *base {
	reference = strings.Trim(reference, markup.Space)
	u, err := url.Parse(reference)
	switch {
	case err != nil || len(reference) > maxBase:
		return nil
	case b != nil:
		relative := b.relative && !u.IsAbs()
		if b = newBase(b.url.ResolveReference(u)); b != nil {
			b.relative = relative
		}
		return b
	}
	return newBase(u)
}

// prefix is what of a base makes a reference absolute: one of these, or from 0 on its directory or
// as many directories above.
type prefix int

const (
	wholePath prefix = -1 - iota
	onlyOrigin
	onlyScheme
)

// before returns a prefix of the base.
func (b *base) before(p prefix) string {
	switch p {
	case onlyScheme:
		return b.scheme
	case onlyOrigin:
		return b.origin
	case wholePath:
		return b.path
	}
	end := strings.LastIndexByte(b.path, '/')
	for ; p > 0 && end > len(b.origin); p-- {
		end = strings.LastIndexByte(b.path[:end], '/')
	}
	return b.path[:end+1]
}

// takes reports whether references that need a prefix may be resolved against the base.
func (b *base) takes(p prefix) bool { return p != wholePath || !b.noQuery }

// resolve returns how a reference becomes absolute: without its first drop bytes, and with
// a prefix before the rest. The reference has no white space around it. Dot segments in
// its middle stay: clients resolve them. It is not ok if the reference is a URL of any
// scheme, empty or only a fragment, or if it is uncertain what it refers to.
func (b *base) resolve(reference string) (p prefix, drop int, ok bool) {
	if reference == "" || hasScheme(reference) || b == nil {
		return 0, 0, false
	}
	if strings.ContainsFunc(reference, func(r rune) bool { return r < ' ' || r == 0x7f || r == '<' || r == '>' }) {
		return 0, 0, false // parsers that drop it see a different URL
	}
	switch {
	case strings.HasPrefix(reference, "//"):
		return onlyScheme, 0, true
	case reference[0] == '/':
		return onlyOrigin, 0, true
	case reference[0] == '?':
		return wholePath, 0, true
	case strings.ContainsRune(`#{[\`, rune(reference[0])), // a place in the same text, a template that was not filled in, a path of Windows
		len(reference) > 7 && strings.EqualFold(reference[:5], "http%"), len(reference) > 7 && strings.EqualFold(reference[:6], "https%"): // escaped as a whole
		return 0, 0, false
	}
	for {
		switch rest := reference[drop:]; {
		case strings.HasPrefix(rest, "./"):
			drop += 2
		case strings.HasPrefix(rest, "../"):
			drop += 3
			p++
		case rest == ".":
			return p, drop + 1, true
		case rest == "..":
			return p + 1, drop + 2, true
		case strings.HasPrefix(rest, "/"):
			// "./" followed by a slash: an empty segment, which would vanish here.
			return 0, 0, false
		default:
			return p, drop, true
		}
	}
}

// resolveHTML is resolve for the value of an attribute in HTML, which may contain
// character references. It is not ok if they decide whether the value is relative.
func (b *base) resolveHTML(value string) (p prefix, drop int, ok bool) {
	if start := strings.IndexAny(value, "/?#&"); start >= 0 && value[start] == '&' {
		return 0, 0, false
	}
	return b.resolve(value)
}

// hasScheme reports whether a reference begins with a scheme (RFC 3986 section 3.1).
func hasScheme(reference string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	scheme, _, found := strings.Cut(reference, ":")
	return found && strings.TrimLeft(scheme, letters) != scheme && strings.Trim(scheme, letters+"0123456789+.-") == ""
}
