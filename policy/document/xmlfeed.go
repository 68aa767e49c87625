// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"bytes"
	"cmp"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/feedpollard/pollard/internal/markup"
	"github.com/feedpollard/pollard/internal/namespace"
	"github.com/feedpollard/pollard/policy"
)

// readXML reads an XML document strictly, and if that fails, leniently: after text that
// does not belong to it, without characters that XML forbids, and with wrong markup. A
// document that ends early is broken.
func readXML(text []byte, encoding string, now time.Time) (*policy.Document, error) {
	doc, err := newXMLReader(text, encoding, false).read(now)
	if err == nil || errors.Is(err, ErrTooComplex) {
		return doc, err
	}
	start := 0
	if errors.Is(err, ErrNotFeed) {
		start = markup.Start(text)
	}
	if errors.Is(err, markup.ErrTruncated) || errors.Is(err, ErrNotFeed) && start <= 0 {
		return nil, err
	}
	doc, lenientErr := newXMLReader(markup.Repair(text[start:]), encoding, true).read(now)
	if lenientErr == nil {
		doc.Lenient, doc.Lossy = true, doc.Lossy || start > 0
		return doc, nil
	}
	if errors.Is(lenientErr, ErrNotFeed) && errors.Is(err, ErrNotFeed) {
		return nil, err
	}
	return nil, lenientErr
}

// role is the role of an open element in a feed.
type role byte

const (
	ignored   role = iota
	wrapper        // the root of RSS, around the channel and, in RSS 1.0, items
	channel        // an RSS channel or an Atom feed: its children are hints
	entryRole      // an item or entry
	fieldRole      // a child of a channel or entry, and its descendants
)

// openElement is an open element.
type openElement struct {
	role role
	base *url.URL // nil: none
}

// xmlReader reads RSS and Atom.
type xmlReader struct {
	source  []byte
	scanner *markup.Scanner
	lenient bool
	doc     policy.Document
	root    xml.Name
	stack   []openElement
	field   field
	hints   hintReader
	print   fingerprinter
	entry   entry
	entries []entry
	found   bool   // it has a channel or an entry, so it is a feed
	nested  string // an element of a channel or an entry that contains an entry; empty: none does
}

func newXMLReader(text []byte, encoding string, lenient bool) *xmlReader {
	x := &xmlReader{source: text, scanner: markup.NewScanner(text, lenient), lenient: lenient, print: newFingerprinter()}
	x.print.misc(tokenEncoding, encoding)
	return x
}

// read reads to the end of the root element.
func (x *xmlReader) read(now time.Time) (*policy.Document, error) {
	for {
		token, err := x.scanner.Next()
		if err == io.EOF {
			return nil, notMarkup(x.source)
		}
		if err != nil {
			return nil, x.failure(err)
		}
		switch t := token.(type) {
		case xml.StartElement:
			if err := x.start(t); err != nil {
				return nil, err
			}
		case xml.CharData:
			if len(x.stack) == 0 && len(bytes.Trim(t, markup.Space)) > 0 {
				return nil, notMarkup(x.source)
			}
			x.print.addText(t)
			x.text(t)
		case xml.ProcInst:
			x.print.misc(tokenInstruction, t.Target, string(t.Inst))
		case xml.Directive:
			x.print.misc(tokenDirective, string(t))
		case xml.EndElement:
			x.end()
			if len(x.stack) == 0 {
				return x.finish(now)
			}
		}
	}
}

// failure returns an error that says where and why the markup cannot be read.
func (x *xmlReader) failure(err error) error {
	if errors.Is(err, ErrTooComplex) {
		return err
	}
	if x.root.Local == "" {
		return notMarkup(x.source)
	}
	if errors.Is(err, markup.ErrTruncated) {
		return fmt.Errorf("%w: %w after %s, before the end of <%s>", ErrBroken, markup.ErrTruncated,
			humanize.Bytes(uint64(len(x.source))), clip(x.root.Local))
	}
	return fmt.Errorf("%w: %s", ErrBroken, clip(strings.TrimPrefix(err.Error(), "XML syntax error ")))
}

func (x *xmlReader) start(t xml.StartElement) error {
	var parent, f openElement
	space := namespace.Of(t.Name.Space)
	if len(x.stack) == 0 {
		r, err := x.identify(t)
		if err != nil {
			return err
		}
		f = openElement{role: r, base: baseWithin(nil, t.Attr)}
	} else {
		parent = x.stack[len(x.stack)-1]
		space = x.scanner.Vocabulary(t.Name)
		f = x.child(parent, t, space)
	}
	x.stack = append(x.stack, f)
	x.print.open(x.scanner, t, space, parent.role == channel)
	return nil
}

// identify recognises a feed by its root element.
func (x *xmlReader) identify(t xml.StartElement) (role, error) {
	x.root = t.Name
	space := namespace.Of(t.Name.Space)
	name := strings.ToLower(t.Name.Local)
	version := clip(strings.TrimSpace(markup.Attribute(t.Attr, "version")))
	switch {
	case name == "rss":
		x.doc.Format, x.doc.Version = "rss", version
		return wrapper, nil
	case name == "rdf" && (space == namespace.RDF || space == namespace.RSS):
		x.doc.Format, x.doc.Version = "rss", "1.0"
		return wrapper, nil
	case name == "feed" && (space == namespace.Atom || space == namespace.None):
		x.doc.Format, x.doc.Version = "atom", version
		if space == namespace.Atom {
			x.doc.Version, x.found = "1.0", true
		}
		if strings.Contains(strings.ToLower(t.Name.Space), "purl.org/atom/ns") {
			x.doc.Version = "0.3"
		}
		return channel, nil
	}
	return ignored, otherRoot(t.Name, x.source)
}

// child opens an element inside of another.
func (x *xmlReader) child(parent openElement, t xml.StartElement, space namespace.Vocabulary) openElement {
	core := space == namespace.RSS && x.doc.Format == "rss" || space == namespace.Atom && x.doc.Format == "atom"
	named := func(name string) bool { return core && strings.EqualFold(t.Name.Local, name) }
	isEntry := x.doc.Format == "rss" && named("item") || x.doc.Format == "atom" && named("entry")

	switch parent.role {
	case wrapper, channel:
		switch {
		case isEntry:
			x.foundRSS(t.Name.Space)
			x.openEntry(t)
			return openElement{role: entryRole}
		case parent.role == wrapper && named("channel"):
			x.foundRSS(t.Name.Space)
			return openElement{role: channel, base: baseWithin(parent.base, t.Attr)}
		case parent.role == channel || named("image"): // RSS 1.0 has the image beside the channel
			x.openField(space, t, parent, false)
			return openElement{role: fieldRole}
		}
	case entryRole:
		if isEntry {
			x.nested = cmp.Or(x.nested, t.Name.Local)
		}
		x.openField(space, t, parent, true)
		return openElement{role: fieldRole}
	case fieldRole:
		if isEntry {
			x.nested = cmp.Or(x.nested, x.field.name)
		}
		x.openChild(space, t)
		return openElement{role: fieldRole}
	}
	return openElement{role: ignored}
}

// foundRSS records that the document is RSS, and the version of RSS if its root is RDF.
func (x *xmlReader) foundRSS(uri string) {
	x.found = true
	if strings.Contains(uri, "netscape.com/rdf/simple/0.9") && x.doc.Version == "1.0" {
		x.doc.Version = "0.90"
	}
}

func (x *xmlReader) openEntry(t xml.StartElement) {
	x.found = true
	x.entry = entry{}
	for _, a := range t.Attr {
		if a.Name.Local == "about" && namespace.Of(a.Name.Space) == namespace.RDF {
			x.entry.identify(byAbout, []byte(a.Value))
		}
	}
	x.print.openEntry()
}

// end closes the innermost element.
func (x *xmlReader) end() {
	depth := len(x.stack)
	closed := x.stack[depth-1]
	x.stack = x.stack[:depth-1]
	x.print.close()
	switch {
	case closed.role == entryRole:
		x.print.closeEntry()
		x.entries = append(x.entries, x.entry)
	case closed.role != fieldRole:
	case depth > x.field.depth:
		if depth == x.field.depth+1 && x.stack[x.field.depth-2].role == channel {
			x.hints.child(&x.field)
		}
	case x.stack[depth-2].role == entryRole:
		x.closeEntryField()
	default:
		if x.stack[depth-2].role == channel {
			x.hints.field(&x.field)
			x.doc.Title = cmp.Or(x.doc.Title, titleOf(&x.field))
		}
	}
}

// finish returns the result at the end of the root element.
func (x *xmlReader) finish(now time.Time) (*policy.Document, error) {
	if x.lenient && !closedBy(x.source[:x.scanner.Offset()], x.root.Local) {
		// A wrong end tag has closed all elements, and the rest of the document is lost.
		return nil, fmt.Errorf("%w: an end tag in the middle closes the whole document", ErrBroken)
	}
	if x.lenient && x.nested != "" {
		return nil, fmt.Errorf("%w: an entry begins before the end tag of <%s>", ErrBroken, clip(x.nested))
	}
	if !x.found {
		return nil, fmt.Errorf("%w: <%s> without a channel or an entry in it", ErrNotFeed, clip(x.root.Local))
	}
	doc := x.doc
	doc.Hints, doc.Malformed = x.hints.result()
	doc.Rhythm = rhythm(x.entries, now)
	x.print.sums(&doc)
	doc.Lenient = !x.ends()
	doc.Lossy = doc.Lenient || x.scanner.Misread
	return &doc, nil
}

// closedBy reports whether text ends with the end tag of an element, or with its start tag if it
// is empty.
func closedBy(text []byte, name string) bool {
	tag := text[bytes.LastIndexByte(text, '<')+1:]
	if bytes.HasSuffix(tag, []byte("/>")) {
		return true
	}
	tag = bytes.TrimRight(bytes.TrimSuffix(tag, []byte(">")), markup.Space)
	return bytes.HasPrefix(tag, []byte("/")) && bytes.HasSuffix(tag, []byte(name))
}

// ends reports whether nothing follows the root element but white space, comments and processing
// instructions (XML 1.0 section 2.8).
func (x *xmlReader) ends() bool {
	for {
		token, err := x.scanner.Next()
		switch t := token.(type) {
		case xml.Comment:
		case xml.CharData:
			if len(bytes.Trim(t, markup.Space)) > 0 {
				return false
			}
		case xml.ProcInst:
			if t.Target == "xml" {
				return false // another document
			}
		default:
			return err == io.EOF
		}
	}
}
