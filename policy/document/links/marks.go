// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package links

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/feedpollard/pollard/policy/document"
	"github.com/feedpollard/pollard/policy/document/internal/namespace"
)

// Mark is a place in a document that concerns the way from a reader to the feed.
type Mark struct {
	Start int    `json:"start"` // offsets in the document, in bytes
	End   int    `json:"end"`
	As    string `json:"as"` // one of the constants below
}

// What is put in the place of a mark.
const (
	AsXML   = "xml"  // the address under which the document is served, in XML
	AsJSON  = "json" // the same in a JSON string
	AsEmpty = "none" // nothing
)

// Marks finds where a document names its own address (Atom's link with rel=self, also
// in RSS, itunes:new-feed-url and JSON Feed's feed_url) and its WebSub hubs. Readers
// that are told of a hub subscribe to it under the address that the document gives
// itself, and leave the gateway. The marks belong to the very bytes that they are of.
func Marks(body []byte, contentType string) []Mark {
	if !document.ASCIICompatible(body, contentType) {
		return nil
	}
	m := &marker{body: body}
	switch start := textStart(body); {
	case start == len(body):
	case body[start] == '{' && !utf8.Valid(body):
		return nil
	case body[start] == '{':
		j := &jsonMarker{marker: m}
		if !scanJSON(body, start, j) {
			return nil // what is behind the hubs is not known: a comma may have to go with them
		}
		j.cut(j.kept)
	default:
		if !scanXML(body, start, nil, m) {
			return nil
		}
	}
	slices.SortFunc(m.marks, func(a, b Mark) int { return cmp.Compare(a.Start, b.Start) })
	return m.marks
}

// Splice is a document with an address in the places of its marks, which are those of
// the very same bytes. Without marks it is the body itself.
func Splice(body []byte, marks []Mark, address string) []byte {
	edits := make([]edit, 0, len(marks))
	for _, m := range marks {
		switch m.As {
		case AsXML:
			edits = append(edits, edit{m.Start, m.End, xmlText.escape(address)})
		case AsJSON:
			edits = append(edits, edit{m.Start, m.End, jsonString.escape(address)})
		default:
			edits = append(edits, edit{m.Start, m.End, ""})
		}
	}
	return applied(body, edits)
}

// marker finds the marks of XML documents.
type marker struct {
	body  []byte
	marks []Mark
	named int // marks that are not empty
}

// maxNamed is in how many places a document may name its address. In further ones
// it is left out, so that no document grows without bound.
const maxNamed = 32

func (m *marker) mark(start, end int, as string) {
	if as != AsEmpty {
		if m.named++; m.named > maxNamed {
			as = AsEmpty
		}
	}
	m.marks = append(m.marks, Mark{start, end, as})
}

func (m *marker) open(e *element, attributes []attribute) {
	switch {
	case e.level != inFeed:
	case e.space == namespace.Atom && e.local == "link":
		m.link(e, attributes)
	case e.space == namespace.ITunes && e.local == "new-feed-url":
		e.task = selfTask
	}
}

func (m *marker) interrupt(e *element) {
	if e.task == selfTask {
		e.task = noTask // an address has no elements in it
	}
}

func (m *marker) close(e *element, end, after int) {
	switch {
	case e.task == hubTask && after > end:
		m.mark(e.start, after, AsEmpty)
	case e.task == hubTask:
		m.mark(e.start, e.content, AsEmpty) // the tag alone, where it has no end tag
	case after > end && end > e.content:
		m.mark(e.content, end, AsXML)
	}
}

// link marks a link. One that is to a hub and to the feed itself loses the relation to
// the hub.
func (m *marker) link(e *element, attributes []attribute) {
	var href span
	var hubs []span
	self, other := false, false
	for _, a := range attributes {
		switch {
		case a.prefix == "" && a.local == "href":
			href = a.value
		case a.prefix == "" && a.local == "rel":
			for at := a.value.start; at < a.value.end; {
				word := span{at, at}
				for at < a.value.end && !isSpace(m.body[at]) {
					at++
				}
				word.end = at
				switch relation(string(m.body[word.start:word.end])) {
				case "hub":
					hubs = append(hubs, word)
				case "self":
					self = true
				case "":
					at++
				default:
					other = true
				}
			}
		}
	}
	switch {
	case len(hubs) > 0 && !self && !other:
		e.task = hubTask
		return
	case self && href.start > 0: // it may be empty: the address is that of an xml:base then
		m.mark(href.start, href.end, AsXML)
	}
	for _, hub := range hubs {
		m.mark(hub.start, hub.end, AsEmpty)
	}
}

// relation is the short name of a link relation.
func relation(name string) string {
	name = strings.ToLower(name)
	if _, short, ok := strings.Cut(name, "//www.iana.org/assignments/relation/"); ok {
		return short
	}
	return name
}

// jsonMarker finds the marks of a JSON Feed.
type jsonMarker struct {
	*marker
	kept int // where the last member ends that is no hub's; 0: there was none
	from int // where the first of the members begins that are to be cut out; 0: none
	to   int // where the last of them ends
}

func (j *jsonMarker) text(path []string, value piece) {
	if len(path) == 1 && path[0] == "feed_url" {
		j.mark(value.start, value.end, AsJSON)
	}
}

func (j *jsonMarker) member(name string, key, value span) {
	if name == "hubs" {
		if j.from == 0 {
			j.from = key.start
		}
		j.to = value.end
		return
	}
	if j.from > 0 {
		j.to = key.start // with the comma and the space before this member
		j.cut(0)
	}
	j.kept = value.end
}

// cut cuts out the members that were found, and the comma before them where they are
// the last of all.
func (j *jsonMarker) cut(kept int) {
	if j.from == 0 {
		return
	}
	if kept > 0 {
		j.from = kept
	}
	j.mark(j.from, j.to, AsEmpty)
	j.from = 0
}
