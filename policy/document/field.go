// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"bytes"
	"encoding/xml"
	"net/url"
	"strings"

	"github.com/feedpollard/pollard/internal/markup"
	"github.com/feedpollard/pollard/internal/namespace"
)

// field is the child element of a channel or entry that is being read.
type field struct {
	vocabulary namespace.Vocabulary
	name       string // in lower case: the names of RSS are written in any
	attributes []xml.Attr
	base       *url.URL // nil: none
	depth      int      // of the element
	text       []byte   // its own text, up to maxFieldText

	// Its last child element, for skipHours and skipDays, and their number.
	child           string
	childVocabulary namespace.Vocabulary
	childText       []byte
	children        int
}

// maxFieldText is more than any hint, date or identifier has.
const maxFieldText = 4096

// openField opens a child of a channel or entry.
func (x *xmlReader) openField(space namespace.Vocabulary, t xml.StartElement, parent openElement, inEntry bool) {
	name := strings.ToLower(t.Name.Local)
	x.field = field{
		vocabulary: space, name: name, attributes: t.Attr, depth: len(x.stack) + 1,
		text: x.field.text[:0], childText: x.field.childText[:0],
	}
	if !inEntry {
		x.field.base = baseWithin(parent.base, t.Attr)
	}
}

// openChild opens an element anywhere within a field.
func (x *xmlReader) openChild(space namespace.Vocabulary, t xml.StartElement) {
	name := strings.ToLower(t.Name.Local)
	if len(x.stack) == x.field.depth {
		x.field.child, x.field.childVocabulary = name, space
		x.field.childText = x.field.childText[:0]
		x.field.children++
	}
}

// text adds a piece of an element's text.
func (x *xmlReader) text(piece []byte) {
	if len(x.stack) == 0 || x.stack[len(x.stack)-1].role != fieldRole {
		return
	}
	f := &x.field
	switch len(x.stack) {
	case f.depth:
		f.text = append(f.text, piece[:min(len(piece), maxFieldText-len(f.text))]...)
	case f.depth + 1:
		f.childText = append(f.childText, piece[:min(len(piece), maxFieldText-len(f.childText))]...)
	}
}

// closeEntryField ends a child of an entry.
func (x *xmlReader) closeEntryField() {
	f := &x.field
	text := bytes.Trim(f.text, markup.Space)
	setDate(x.entry.date(f.vocabulary, f.name), string(text))
	switch {
	case f.vocabulary == namespace.RSS && f.name == "guid", f.vocabulary == namespace.Atom && f.name == "id":
		x.entry.identify(byID, text)
	case f.vocabulary == namespace.RSS && f.name == "link":
		x.entry.identify(byLink, text)
	case f.vocabulary == namespace.Atom && f.name == "link" && markup.IsAlternate(f.attributes):
		x.entry.identify(byLink, []byte(markup.Attribute(f.attributes, "href")))
	}
}

// baseWithin returns the xml:base in force within an element (XML Base section 4). An invalid or too
// long one is ignored.
func baseWithin(outer *url.URL, attributes []xml.Attr) *url.URL {
	for _, a := range attributes {
		if a.Name.Local != "base" || namespace.Of(a.Name.Space) != namespace.XML || len(a.Value) > maxURL {
			continue
		}
		base, err := url.Parse(strings.TrimSpace(a.Value))
		if err == nil && outer != nil {
			base = outer.ResolveReference(base)
		}
		if err == nil && len(base.Path) <= maxURL {
			return base
		}
	}
	return outer
}
