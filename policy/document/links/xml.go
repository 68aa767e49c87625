// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package links

import (
	"bytes"
	"strings"

	"github.com/feedpollard/pollard/policy/document/internal/namespace"
)

// Limits that no feed comes near which package document accepts.
const (
	maxDepth      = 256
	maxNamespaces = 256    // declared in scope
	maxBases      = 20_000 // different values of xml:base, or the same within others
)

// element is an open element.
type element struct {
	qualified span // its name as written
	local     string
	parent    string               // the local name of the element around it
	space     namespace.Vocabulary // RSS or Atom for all that belongs to the format itself
	level     level
	around    *base // xml:base in force around it; nil: one that cannot be used
	base      *base // and within it
	declared  int   // namespaces in scope around it
	html      bool  // it is within a text that holds HTML
	start     int   // where its start tag begins
	content   int   // where that ends

	// What the visitor wants to do with the text.
	task  task
	texts []piece
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

// attribute is an attribute of a start tag.
type attribute struct {
	prefix, local string
	value         span // without quotes
}

// visitor is told what a document holds.
type visitor interface {
	// open is called for each start tag. It may set the task of the element: then the
	// element gathers the pieces of its text.
	open(e *element, attributes []attribute)
	// interrupt is called where another element begins within an element with a task.
	// The pieces of text are forgotten after it.
	interrupt(e *element)
	// close is called at the end of an element with a task. End is where its content
	// ends, and after where its end tag does; the same where it has none of its own.
	close(e *element, end, after int)
}

// xmlScanner scans an XML document. It takes markup as it comes, so that it reads
// what is broken in the way of feeds: names are compared, but nothing is required.
type xmlScanner struct {
	body       []byte
	visitor    visitor
	stack      []element
	scope      []declaration
	attributes []attribute
	names      namespace.Names
	opened     map[string]int // how many elements of a name are open
	bases      map[nested]*base
	root       string // local name of the root element
	rootSpace  string
	base       *base // of the document
}

// nested is an xml:base within another.
type nested struct {
	around *base
	value  string
}

// declaration is a namespace in scope.
type declaration struct{ prefix, uri string }

// scanXML scans a document from start on; false where it is too complex. What is not
// closed ends it.
func scanXML(body []byte, start int, around *base, v visitor) bool {
	x := &xmlScanner{body: body, visitor: v, base: around, names: namespace.Names{}, opened: map[string]int{}, bases: map[nested]*base{}}
	for at := start; at < len(body); {
		open := bytes.IndexByte(body[at:], '<')
		if open < 0 {
			return true
		}
		x.text(piece{at, at + open, xmlText})
		at += open
		rest := body[at:]
		end := -1
		switch {
		case bytes.HasPrefix(rest, []byte("<!--")):
			end = after(rest, len("<!--"), "-->")
		case bytes.HasPrefix(rest, []byte("<![CDATA[")):
			if end = after(rest, len("<![CDATA["), "]]>"); end > 0 {
				x.text(piece{at + len("<![CDATA["), at + end - len("]]>"), cdata})
			}
		case bytes.HasPrefix(rest, []byte("<?")):
			end = after(rest, len("<?"), "?>")
		case bytes.HasPrefix(rest, []byte("<!")):
			end = directive(rest)
		case bytes.HasPrefix(rest, []byte("</")):
			if end = after(rest, len("</"), ">"); end > 0 {
				x.close(trimmed(body, span{at + 2, at + end - 1}), at, at+end)
			}
		case len(rest) > 1 && isNameStart(rest[1]):
			if end = x.open(at); end > 0 {
				end -= at
			}
		default:
			x.text(piece{at, at + 1, xmlText})
			end = 1
		}
		if end < 0 {
			return true
		}
		if len(x.stack) > maxDepth || len(x.scope) > maxNamespaces || len(x.bases) > maxBases {
			return false
		}
		at += end
	}
	return true
}

// after is the offset behind a mark; negative where there is none.
func after(text []byte, from int, mark string) int {
	if i := bytes.Index(text[from:], []byte(mark)); i >= 0 {
		return from + i + len(mark)
	}
	return -1
}

// directive is the length of a document type, with its internal subset.
func directive(text []byte) int {
	depth := 0
	var quote byte
	for i, c := range text {
		switch {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case c == '<':
			depth++
		case c == '>':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return -1
}

func (x *xmlScanner) text(p piece) {
	if n := len(x.stack); n > 0 && x.stack[n-1].task != noTask && p.end > p.start {
		x.stack[n-1].texts = append(x.stack[n-1].texts, p)
	}
}

// open reads a start tag and returns where it ends; negative where it does not.
func (x *xmlScanner) open(start int) int {
	body, at := x.body, start+1
	for at < len(body) && !isSpace(body[at]) && body[at] != '/' && body[at] != '>' {
		at++
	}
	e := element{qualified: span{start + 1, at}, start: start, declared: len(x.scope), around: x.base}
	x.attributes = x.attributes[:0]
	empty := false
	for ; ; at++ {
		for at < len(body) && (isSpace(body[at]) || body[at] == '/') {
			empty = body[at] == '/'
			at++
		}
		if at == len(body) {
			return -1
		}
		if body[at] == '>' {
			break
		}
		empty = false
		name, value, end := scanAttribute(body, at)
		if end < 0 {
			return -1
		}
		x.attribute(name, value)
		at = end - 1
	}
	e.content = at + 1
	x.place(&e)
	if n := len(x.stack); n > 0 && x.stack[n-1].task != noTask {
		x.visitor.interrupt(&x.stack[n-1])
		x.stack[n-1].texts = x.stack[n-1].texts[:0]
	}
	x.visitor.open(&e, x.attributes)
	if empty {
		if e.task != noTask {
			x.visitor.close(&e, e.content, e.content)
		}
		x.scope = x.scope[:e.declared]
		return e.content
	}
	x.stack = append(x.stack, e)
	x.opened[string(body[e.qualified.start:e.qualified.end])]++
	return e.content
}

// attribute takes an attribute, and the namespace that it may declare.
func (x *xmlScanner) attribute(name, value span) {
	prefix, local, found := strings.Cut(string(x.body[name.start:name.end]), ":")
	if !found {
		prefix, local = "", prefix
	}
	if prefix == "xmlns" || prefix == "" && local == "xmlns" {
		declared := declaration{uri: string(decode(nil, x.body, []piece{{value.start, value.end, xmlText}}))}
		if prefix != "" {
			declared.prefix = local
		}
		x.scope = append(x.scope, declared)
		return
	}
	x.attributes = append(x.attributes, attribute{prefix, local, value})
}

// place finds out what an element is.
func (x *xmlScanner) place(e *element) {
	prefix, local, found := strings.Cut(string(x.body[e.qualified.start:e.qualified.end]), ":")
	if !found {
		prefix, local = "", prefix
	}
	e.local = strings.ToLower(local)
	uri := x.uri(prefix)
	e.space = x.names.Of(uri)
	if len(x.stack) == 0 {
		x.root, x.rootSpace = e.local, uri
	} else {
		outer := &x.stack[len(x.stack)-1]
		e.parent, e.around, e.level = outer.local, outer.base, outer.below()
		e.html = outer.html || outer.task == htmlTask
	}
	switch native := uri == x.rootSpace && e.space != namespace.RDF; {
	case x.root == "feed" && native:
		e.space = namespace.Atom
	case x.root != "feed" && (native || e.space == namespace.Unqualified):
		e.space = namespace.RSS
	}
	e.base = e.around
	for _, a := range x.attributes {
		if a.prefix == "xml" && a.local == "base" {
			value := string(decode(nil, x.body, []piece{{a.value.start, min(a.value.end, a.value.start+2*maxBase), xmlText}}))
			e.base = x.below(e.around, value)
		}
	}
}

// below is [base.below], remembered.
func (x *xmlScanner) below(around *base, value string) *base {
	b, known := x.bases[nested{around, value}]
	if !known {
		b = around.below(value)
		x.bases[nested{around, value}] = b
	}
	return b
}

// below is the level of an element's children.
func (e *element) below() level {
	switch {
	case e.level == inDocument && e.local == "feed":
		return inFeed
	case e.level == inDocument:
		return inRoot
	case e.level == inRoot && e.local == "channel":
		return inFeed
	case (e.level == inRoot || e.level == inFeed) && (e.local == "item" || e.local == "entry"):
		return inEntry
	}
	return deeper
}

// uri is the namespace that a prefix stands for.
func (x *xmlScanner) uri(prefix string) string {
	for i := len(x.scope) - 1; i >= 0; i-- {
		if x.scope[i].prefix == prefix {
			return x.scope[i].uri
		}
	}
	return ""
}

// close reads an end tag. One that belongs to no open element is passed over; one
// that belongs to an outer element closes those within as well.
func (x *xmlScanner) close(name span, end, after int) {
	if x.opened[string(x.body[name.start:name.end])] == 0 {
		return
	}
	for found := false; !found; {
		e := x.stack[len(x.stack)-1]
		q := x.body[e.qualified.start:e.qualified.end]
		found = bytes.Equal(q, x.body[name.start:name.end])
		switch {
		case e.task == noTask:
		case found:
			x.visitor.close(&e, end, after)
		default:
			x.visitor.close(&e, end, end)
		}
		x.opened[string(q)]--
		x.scope = x.scope[:e.declared]
		x.stack = x.stack[:len(x.stack)-1]
	}
}

// isNameStart reports whether a byte can begin the name of an element.
func isNameStart(c byte) bool { return isLetter(c) || c == '_' || c == ':' || c >= 0x80 }
