// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package links

import (
	"bytes"
	"encoding/xml"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/feedpollard/pollard/policy/document/internal/markup"
	"github.com/feedpollard/pollard/policy/document/internal/namespace"
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
	noTask     task = iota
	urlTask         // it is a URL
	guidTask        // it is a guid that claims to be a URL
	htmlTask        // it is HTML
	removeTask      // it is removed, with its tags
)

// xmlRewriter edits an XML document.
type xmlRewriter struct {
	*editor
	tokens  *markup.Scanner
	start   int // of the scanned text in the body
	origin  *base
	stack   []element
	removed int  // open elements with a removeTask
	endTag  span // the last end tag that is in the document
	bases   map[nested]*base
}

// nested is an xml:base within another.
type nested struct {
	outer *base
	value string
}

// rewriteXML edits a document that begins at start. It reports whether it read the
// document to its end.
func rewriteXML(e *editor, start int, origin *base) bool {
	text := ascii(e.body[start:])
	if feed := markup.Start(text); feed > 0 {
		start, text = start+feed, text[feed:]
	}
	// A lenient scanner reads a well-formed document just as a strict one does.
	x := &xmlRewriter{editor: e, tokens: markup.NewScanner(markup.Repair(text), true), start: start, origin: origin, bases: map[nested]*base{}}
	for {
		token, err := x.tokens.Next()
		if err != nil || len(x.bases) > maxBases {
			return false
		}
		from, to := x.tokens.Span()
		at := span{start + from, start + to}
		switch t := token.(type) {
		case xml.StartElement:
			x.open(t, at)
		case xml.CharData:
			x.characters(at)
		case xml.EndElement:
			if at.end > at.start {
				x.endTag = at
			}
			if x.close(at.end); len(x.stack) == 0 {
				return true
			}
		}
	}
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
	case urlTask, guidTask, htmlTask:
		const open, end = "<![CDATA[", "]]>"
		p := piece{at, xmlText}
		if bytes.HasPrefix(x.body[at.start:at.end], []byte(open)) {
			p = piece{span{at.start + len(open), at.end - len(end)}, cdata}
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
	words, remove := x.relations(&e, t, values)
	switch {
	case remove:
		e.task = removeTask
		x.removed++
	case x.removed == 0:
		x.attributes(&e, t, values, words)
		e.task = taskOf(&e, t.Attr)
	}
	x.stack = append(x.stack, e)
}

// interrupt ends a piece of an element's text, because another element begins in it.
func (x *xmlRewriter) interrupt(e *element) {
	switch e.task {
	case htmlTask:
		x.html(e.texts, e.base)
	case urlTask, guidTask:
		e.task = noTask // a URL has no elements in it
	}
	e.texts = e.texts[:0]
}

// close ends the innermost element.
func (x *xmlRewriter) close(end int) {
	e := &x.stack[len(x.stack)-1]
	switch e.task {
	case htmlTask:
		x.html(e.texts, e.base)
	case urlTask, guidTask:
		x.elementURL(e)
	case removeTask:
		x.removed--
		place := e.tag
		if x.closes(e, end) {
			place.end = end
		}
		x.remove(place)
	}
	x.stack = x.stack[:len(x.stack)-1]
}

// closes reports whether the last end tag, at end, is that of an element: empty elements
// have none, nor have elements that the end tag of another element closes.
func (x *xmlRewriter) closes(e *element, end int) bool {
	name := x.body[e.tag.start+1 : e.tag.end-1]
	if i := bytes.IndexAny(name, markup.Space+"/"); i >= 0 {
		name = name[:i]
	}
	return x.endTag.end == end && x.endTag.start >= e.tag.end &&
		bytes.Equal(name, bytes.TrimRight(x.body[x.endTag.start+2:x.endTag.end-1], markup.Space))
}

// elementURL makes the text of an element absolute.
func (x *xmlRewriter) elementURL(e *element) {
	x.text.decode(x.body, e.texts)
	if len(bytes.Fields(x.text.decoded)) < 2 && (e.task == urlTask || bytes.IndexByte(x.text.decoded, '/') >= 0) {
		x.url(e.texts, e.base)
	}
}

// values finds the values of attributes in the document, in the order of t.Attr.
func (x *xmlRewriter) values(t xml.StartElement, tag span) []piece {
	if len(t.Attr) == 0 {
		return nil
	}
	found := attributes(x.body, tag)
	if len(found) != len(t.Attr) {
		return make([]piece, len(t.Attr)) // empty: nothing is to be rewritten
	}
	values := make([]piece, len(found))
	for i, a := range found {
		values[i] = piece{a.value, xmlText}
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
				b = outer.below(a.Value)
			}
			x.bases[key] = b
		}
		return b
	}
	return outer
}

// relations reports whether an element is removed because it names the feed's own address
// or a push service. A link with other relations as well loses just these words.
func (x *xmlRewriter) relations(e *element, t xml.StartElement, values []piece) (words []span, remove bool) {
	if e.level != inFeed {
		return nil, false
	}
	switch {
	case e.space == namespace.ITunes && e.name == "new-feed-url",
		e.space == namespace.Podcasting && e.name == "podping",
		e.space == namespace.RSS && e.name == "cloud":
		return nil, true
	case e.space != namespace.Atom || e.name != "link":
		return nil, false
	}
	rel := slices.IndexFunc(t.Attr, func(a xml.Attr) bool { return a.Name.Space == "" && a.Name.Local == "rel" })
	if rel < 0 {
		return nil, false
	}
	value, others := values[rel].span, 0
	for at := skipSpace(x.body[:value.end], value.start); at < value.end; at = skipSpace(x.body[:value.end], at) {
		word := span{at, at}
		for at < value.end && !isSpace(x.body[at]) {
			at++
		}
		word.end = at
		switch markup.Relation(string(x.body[word.start:word.end])) {
		case "self", "hub":
			words = append(words, word)
		default:
			others++
		}
	}
	return words, len(words) > 0 && others == 0
}

// attributes rewrites the attributes of an element, and removes words of its rel.
func (x *xmlRewriter) attributes(e *element, t xml.StartElement, values []piece, words []span) {
	if e.space == namespace.RDF {
		return // identifiers
	}
	for i, a := range t.Attr {
		switch {
		case a.Name.Local == "base" && namespace.Of(a.Name.Space) == namespace.XML:
			x.url(values[i:i+1], e.outer)
		case a.Name.Space != "" || a.Name.Local == "xmlns":
		case a.Name.Local == "rel":
			for _, word := range words {
				x.remove(word)
			}
		case e.space == namespace.XHTML || e.html:
			x.htmlAttribute(e, strings.ToLower(a.Name.Local), values[i])
		case isURL(e, a.Name.Local):
			x.url(values[i:i+1], e.base)
		}
	}
}

// htmlAttribute makes the URLs in an attribute of XHTML absolute.
func (x *xmlRewriter) htmlAttribute(e *element, name string, value piece) {
	x.text.decode(x.body, []piece{value})
	whole := span{0, len(x.text.decoded)}
	var urls []span
	switch {
	case e.name == "base":
	case name == "srcset" || name == "imagesrcset":
		urls = candidates(x.text.decoded, whole)
	case isURLAttribute(name, e.name):
		urls = []span{trimmed(x.text.decoded, whole)}
	}
	for _, url := range urls {
		if !isDrawing(e.name, string(x.text.decoded[url.start:url.end])) {
			x.reference(url, e.base)
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
