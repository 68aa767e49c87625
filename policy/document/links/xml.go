// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package links

import (
	"bytes"
	"encoding/xml"
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/feedpollard/pollard/internal/markup"
	"github.com/feedpollard/pollard/internal/namespace"
)

// maxBases bounds the different values of xml:base, or the same within others.
const maxBases = 20_000

// element is an open element.
type element struct {
	name   string // local, in lower case
	parent string // name of the element around it
	space  namespace.Vocabulary
	level  level
	tag    span
	task   task
	texts  []piece // of an element with a task for them
	outer  *base   // xml:base in force around it; nil: one that cannot be used
	base   *base   // and within it
	html   bool    // it is markup within a text of HTML
}

// level is where an element stands in a feed.
type level byte

const (
	inDocument level = iota
	inRoot           // a child of the root of RSS
	inFeed           // a child of a channel or of the root of Atom
	inEntry          // a child of an item or entry
	deeper
)

// task is what is done with the content of an element.
type task byte

const (
	noTask      task = iota
	urlTask          // it is a URL
	guidTask         // it is a guid that claims to be a URL
	addressTask      // it may be the address of an entry, and stays as it is
	htmlTask         // it is HTML
	textTask         // it is HTML if its type says so
	removeTask       // it is removed, with its tags
)

// xmlRewriter edits an XML document.
type xmlRewriter struct {
	*editor
	tokens  *markup.Scanner
	start   int // of the scanned text in the body
	stack   []element
	removed int // open elements with a removeTask
	bases   map[nested]*base
}

// nested is an xml:base within another.
type nested struct {
	outer *base
	value string
}

// rewriteXML edits a document that begins at start, as far as its markup can be read: some readers read
// further. It reports whether the document is not too complex.
func rewriteXML(e *editor, start int) bool {
	text := ascii(e.body[start:])
	if feed := max(markup.Start(text), 0); feed > 0 {
		begin := feed + markup.Begin(text[feed:]) // behind the XML declaration
		if e.declared {
			feed = begin
		}
		e.remove(span{Start: start, End: start + feed})
		start, text = start+begin, text[begin:]
	}
	repaired := markup.Repair(text)
	if !bytes.Equal(repaired, text) {
		e.body = blanked(e.body, start, repaired)
	}
	// A lenient scanner reads a well-formed document just as a strict one does.
	x := &xmlRewriter{editor: e, tokens: markup.NewScanner(repaired, true), start: start, bases: map[nested]*base{}}
	for {
		token, err := x.tokens.Next()
		if err != nil || len(x.bases) > maxBases {
			return !errors.Is(err, markup.ErrTooComplex) && len(x.bases) <= maxBases
		}
		at := x.tokens.Span()
		at.Start, at.End = start+at.Start, start+at.End
		switch t := token.(type) {
		case xml.StartElement:
			x.open(t, at)
		case xml.ProcInst:
			if t.Target == "xml-stylesheet" {
				x.remove(at)
			}
		case xml.CharData:
			x.characters(at)
		case xml.EndElement:
			if x.close(at.End); len(x.stack) == 0 {
				if rest := e.body[at.End:]; x.tokens.Closed() && len(bytes.Trim(rest, markup.Space)) > 0 {
					x.remove(span{Start: at.End, End: len(e.body)})
				}
				return true
			}
		}
	}
}

// blanked returns a copy of body with the spaces that were put into its text, which begins at start.
func blanked(body []byte, start int, text []byte) []byte {
	body = bytes.Clone(body)
	for i, c := range text {
		if c == ' ' {
			body[start+i] = c
		}
	}
	return body
}

// ascii returns text, or if it is not UTF-8 a text of the same length in which markup
// stands at the same places: all bytes that are not ASCII are letters.
func ascii(text []byte) []byte {
	if utf8.Valid(text) {
		return text
	}
	masked := bytes.Clone(text)
	for i, c := range masked {
		if c >= utf8.RuneSelf {
			masked[i] = 'x'
		}
	}
	return masked
}

// characters keeps a piece of text for the end of its element.
func (x *xmlRewriter) characters(at span) {
	if len(x.stack) == 0 {
		return
	}
	switch e := &x.stack[len(x.stack)-1]; e.task {
	case urlTask, guidTask, addressTask, htmlTask:
		const open, end = "<![CDATA[", "]]>"
		p := piece{at, xmlText}
		if bytes.HasPrefix(x.body[at.Start:at.End], []byte(open)) {
			p = piece{span{Start: at.Start + len(open), End: at.End - len(end)}, cdata}
		}
		e.texts = append(e.texts, p)
	}
}

func (x *xmlRewriter) open(t xml.StartElement, tag span) {
	e := element{name: strings.ToLower(t.Name.Local), space: x.tokens.Vocabulary(t.Name), tag: tag, outer: x.origin}
	if n := len(x.stack); n > 0 {
		outer := &x.stack[n-1]
		e.parent, e.outer, e.level = outer.name, outer.base, outer.below()
		e.html = outer.html || outer.task == htmlTask
		x.interrupt(outer)
	}
	values := x.values(t, tag)
	e.base = x.baseOf(e.outer, t, values)
	switch {
	case x.leadsAway(&e, t, values):
		e.task = removeTask
		x.removed++
	case x.removed == 0:
		x.attributes(&e, t, values)
		e.task = taskOf(&e, t.Attr)
	}
	if e.below() == inEntry {
		x.entry = &address{base: base{otherwise: &x.channel.base}}
	}
	x.stack = append(x.stack, e)
}

// interrupt ends a piece of an element's text, because another element begins in it.
func (x *xmlRewriter) interrupt(e *element) {
	switch e.task {
	case htmlTask:
		x.html(e.texts, x.htmlBase(e.base))
	case urlTask, guidTask, addressTask:
		e.task = noTask // a URL has no elements in it
	}
	e.texts = e.texts[:0]
}

// close ends the innermost element.
func (x *xmlRewriter) close(end int) {
	e := &x.stack[len(x.stack)-1]
	switch e.task {
	case htmlTask:
		x.html(e.texts, x.htmlBase(e.base))
	case urlTask, guidTask, addressTask:
		x.elementURL(e, end)
	case removeTask:
		x.removed--
		x.remove(x.whole(e, end))
	}
	if e.below() == inEntry {
		x.entry = nil
	}
	x.stack = x.stack[:len(x.stack)-1]
}

// whole is where an element stands that ends at end.
func (x *xmlRewriter) whole(e *element, end int) span {
	if x.start+x.tokens.EndTag.End == end && x.tokens.Closes(span{Start: e.tag.Start - x.start, End: e.tag.End - x.start}) {
		return span{Start: e.tag.Start, End: end}
	}
	return e.tag
}

// elementURL makes the text of an element absolute that ends at end, or removes the element.
func (x *xmlRewriter) elementURL(e *element, end int) {
	x.text.decode(x.body, e.texts)
	text := x.text.decoded
	place := trimmed(text, span{Start: 0, End: len(text)})
	if words := len(bytes.Fields(text)); x.text.unknown || words == 0 || words > 1 && text[place.Start] != '/' || e.task == guidTask && bytes.IndexByte(text, '/') < 0 {
		return
	}
	reference := string(text[place.Start:place.End])
	if e.level == inFeed && e.name == "link" && x.isOwn(reference, e.base) {
		x.remove(x.whole(e, end))
		return
	}
	switch {
	case e.name == "link":
		x.addressOf(e).found(byLink, reference, e.base, x.own)
	case e.name == "guid" && (e.task == guidTask || hasScheme(reference)):
		x.addressOf(e).found(byGUID, reference, e.base, x.own)
	case e.name == "origlink":
		x.addressOf(e).found(byOriginal, reference, e.base, x.own)
	}
	if e.task != addressTask {
		x.reference(place, e.base)
	}
}

// addressOf returns the address that a child of an entry or a channel may give; otherwise nil.
func (x *xmlRewriter) addressOf(e *element) *address {
	switch e.level {
	case inEntry:
		return x.entry
	case inFeed:
		return &x.channel
	}
	return nil
}

// values finds the values of attributes in the document, in the order of t.Attr.
func (x *xmlRewriter) values(t xml.StartElement, tag span) []piece {
	if len(t.Attr) == 0 {
		return nil
	}
	found := markup.Attributes(x.body, tag)
	if len(found) != len(t.Attr) {
		return make([]piece, len(t.Attr)) // empty: nothing is to be rewritten
	}
	values := make([]piece, len(found))
	for i, a := range found {
		values[i] = piece{a.Value, xmlText}
	}
	return values
}

// baseOf returns the base URL within an element.
func (x *xmlRewriter) baseOf(outer *base, t xml.StartElement, values []piece) *base {
	for i, a := range t.Attr {
		if a.Name.Local != "base" || namespace.Of(a.Name.Space) != namespace.XML {
			continue
		}
		key := nested{outer, a.Value}
		b, known := x.bases[key]
		if !known {
			if x.text.decode(x.body, values[i:i+1]); !x.text.unknown {
				b = x.within(outer, a.Value)
			}
			x.bases[key] = b
		}
		return b
	}
	return outer
}

// leadsAway reports whether an element is removed because it names the feed's own address or a push
// service.
func (x *xmlRewriter) leadsAway(e *element, t xml.StartElement, values []piece) bool {
	link := e.space == namespace.Atom && e.name == "link"
	if e.level == inFeed && (away[place{e.space, "", e.name}] || link && markup.IsAddress(t.Attr)) {
		return true
	}
	if !link || e.level != inFeed && e.parent != "source" {
		return false
	}
	for i, a := range t.Attr {
		if a.Name.Space == "" && a.Name.Local == "href" {
			x.text.decode(x.body, values[i:i+1])
			return x.isOwn(strings.Trim(string(x.text.decoded), markup.Space), e.base)
		}
	}
	return false
}

// addresses finds the relations self and hub in a link's rel.
func (x *xmlRewriter) addresses(rel span) (words []span) {
	at := rel.Start
	for word := range bytes.FieldsSeq(x.body[rel.Start:rel.End]) {
		at += bytes.Index(x.body[at:], word)
		if markup.NamesAddress(string(word)) {
			words = append(words, span{Start: at, End: at + len(word)})
		}
		at += len(word)
	}
	return words
}

// attributes rewrites the attributes of an element. A link that has other relations besides self and hub
// loses just these.
func (x *xmlRewriter) attributes(e *element, t xml.StartElement, values []piece) {
	if e.space == namespace.RDF {
		return // identifiers
	}
	for i, a := range t.Attr {
		switch {
		case a.Name.Local == "base" && namespace.Of(a.Name.Space) == namespace.XML:
			if x.secret && e.base == x.origin {
				x.remove(values[i].span)
				continue
			}
			x.url(values[i:i+1], e.outer)
		case a.Name.Space != "" || a.Name.Local == "xmlns":
		case a.Name.Local == "rel" && e.space == namespace.Atom && e.name == "link" && e.level == inFeed:
			for _, word := range x.addresses(values[i].span) {
				x.remove(word)
			}
		case e.space == namespace.XHTML || e.html:
			x.text.decode(x.body, values[i:i+1])
			for _, url := range urlsOf(x.text.decoded, e.name, strings.ToLower(a.Name.Local), span{Start: 0, End: len(x.text.decoded)}) {
				x.reference(url, x.htmlBase(e.base))
			}
		case isURL(e, a.Name.Local):
			x.url(values[i:i+1], e.base)
			if e.space == namespace.Atom && e.name == "link" && markup.IsAlternate(t.Attr) && !x.text.unknown {
				by := byAtomLink
				if strings.EqualFold(x.tokens.Root.Local, "feed") {
					by = byLink
				}
				x.addressOf(e).found(by, strings.Trim(string(x.text.decoded), markup.Space), e.base, x.own)
			}
		}
	}
}

// below is the level of an element's children.
func (e *element) below() level {
	switch {
	case e.level == inDocument && e.name == "feed":
		return inFeed
	case e.level == inDocument:
		return inRoot
	case e.level == inRoot && e.name == "channel":
		return inFeed
	case (e.level == inRoot || e.level == inFeed) && (e.name == "item" || e.name == "entry"):
		return inEntry
	}
	return deeper
}
