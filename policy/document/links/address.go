// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package links

import (
	"strings"

	"github.com/feedpollard/pollard/internal/markup"
)

// address is the page that an entry or a channel is about, as far as it is known by now: relative
// URLs in HTML refer to it, as most readers take it. It may stand behind the HTML. No
// specification of RSS says so; xml:base, which does, comes before it.
type address struct {
	base
	by source
}

// source is where an address was found. Greater ones are better, and of equal ones the first.
type source byte

const (
	byNothing  source = iota
	byGUID            // a guid that is a permalink
	byAtomLink        // a link of Atom in RSS
	byLink            // link of RSS, the link rel=alternate of Atom, url of JSON Feed
	byOriginal        // feedburner:origLink, as the link then leads to a counter
)

// found sets the address to a reference within around, unless a better one is known.
func (a *address) found(by source, reference string, around, own *base) {
	if a == nil || by <= a.by {
		return
	}
	relative := !hasScheme(reference)
	if relative {
		p, drop, ok := around.resolve(reference)
		if !ok || !around.takes(p) {
			return
		}
		text := around.before(p)
		if p == onlyScheme && own != nil {
			text = own.scheme
		}
		reference = text + reference[drop:]
	}
	if page := parseBase(reference).inHTML(own); page != nil {
		a.by, page.otherwise = by, a.otherwise
		page.relative = relative && around.relative
		a.base = *page
	}
}

// isOwn reports whether a reference is to the document's own secret URL. Without the query that this
// has, it is to another page.
func (e *editor) isOwn(reference string, around *base) bool {
	if !e.secret || e.query && !strings.Contains(reference, "?") {
		return false
	}
	if around == e.origin {
		around = e.own
	}
	return around.below(reference).is(e.own)
}

// within returns the base within an xml:base. Of the document's own secret URL only the host counts,
// as without one.
func (e *editor) within(outer *base, reference string) *base {
	if e.isOwn(strings.Trim(reference, markup.Space), outer) {
		return e.origin
	}
	b := outer.below(reference)
	if b != nil && b.relative && (b.is(e.own) || b.is(e.origin)) {
		b.noQuery = e.own.noQuery
	}
	return b
}

// htmlBase returns the base of HTML, where an xml:base or nothing else but that of the document is in
// force.
func (e *editor) htmlBase(inForce *base) *base {
	switch {
	case inForce != e.origin:
		return inForce.inHTML(e.own)
	case e.entry != nil:
		return &e.entry.base
	}
	return &e.channel.base
}
