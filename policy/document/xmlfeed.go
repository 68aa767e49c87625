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
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/feedpollard/pollard/policy"
	"github.com/feedpollard/pollard/policy/document/internal/namespace"
)

// readXML reads an XML document strictly and, where that fails, with leniency:
// behind text that does not belong to it, with characters that XML forbids
// dropped, and with wrong markup excused. A document that ends early stays broken.
func readXML(text []byte, encoding string, now time.Time) (*policy.Document, error) {
	doc, err := newXMLReader(text, encoding, false).read(now)
	if err == nil || errors.Is(err, ErrTooComplex) {
		return doc, err
	}
	start := feedStart(text)
	if errors.Is(err, errTruncated) || errors.Is(err, ErrNotFeed) && start <= 0 {
		return nil, err
	}
	doc, lenientErr := newXMLReader(repair(text[max(start, 0):]), encoding, true).read(now)
	if lenientErr == nil {
		doc.Lenient = true
		return doc, nil
	}
	if errors.Is(lenientErr, ErrNotFeed) && errors.Is(err, ErrNotFeed) {
		return nil, err
	}
	return nil, lenientErr
}

// role is what an open element is to a feed.
type role byte

const (
	ignored   role = iota
	wrapper        // the root of RSS, around channel and, in RSS 1.0, items
	channel        // where the hints stand: an RSS channel, an Atom feed
	entryRole      // an item or entry
	fieldRole      // a child of a channel or entry, and all within it
)

// frame is an open element.
type frame struct {
	role role
	base *base // nil: there is none
}

// xmlReader reads RSS and Atom.
type xmlReader struct {
	scanner *scanner
	lenient bool
	doc     policy.Document
	root    xml.Name
	native  string // a namespace that the root of RSS was put in, whatever it is
	stack   []frame
	field   field
	hints   hintReader
	meaning meaning
	entry   entry
	entries []entry
	found   bool // a channel or an entry: without one it is no feed
	nested  bool // an entry stood within another
}

func newXMLReader(text []byte, encoding string, lenient bool) *xmlReader {
	x := &xmlReader{scanner: newScanner(text, lenient), lenient: lenient, meaning: newMeaning()}
	x.meaning.aside(tokenEncoding, encoding)
	return x
}

// read reads to the end of the root element and says what it was.
func (x *xmlReader) read(now time.Time) (*policy.Document, error) {
	for {
		token, err := x.scanner.next()
		if err == io.EOF {
			return nil, notMarkup(x.scanner.text)
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
			if len(x.stack) == 0 && len(bytes.Trim(t, xmlSpace)) > 0 {
				return nil, notMarkup(x.scanner.text)
			}
			x.meaning.addText(t)
			x.text(t)
		case xml.ProcInst:
			x.meaning.aside(tokenInstruction, t.Target, string(t.Inst))
		case xml.Directive:
			x.meaning.aside(tokenDirective, string(t))
		case xml.EndElement:
			x.end()
			if len(x.stack) == 0 {
				return x.finish(now)
			}
		}
	}
}

// failure says where and why the markup could not be read.
func (x *xmlReader) failure(err error) error {
	if errors.Is(err, ErrTooComplex) {
		return err
	}
	if x.root.Local == "" {
		return notMarkup(x.scanner.text)
	}
	if errors.Is(err, errTruncated) {
		return fmt.Errorf("%w: %w after %s, before the end of <%s>", ErrBroken, errTruncated,
			humanize.Bytes(uint64(len(x.scanner.text))), clip(x.root.Local))
	}
	return fmt.Errorf("%w: %s", ErrBroken, clip(strings.TrimPrefix(err.Error(), "XML syntax error ")))
}

func (x *xmlReader) start(t xml.StartElement) error {
	var parent, f frame
	space := x.scanner.names.Of(t.Name.Space)
	if len(x.stack) == 0 {
		r, err := x.identify(t)
		if err != nil {
			return err
		}
		f = frame{role: r, base: (*base)(nil).within(t.Attr)}
	} else {
		parent = x.stack[len(x.stack)-1]
		core := x.isCore(space, t.Name.Space)
		if core {
			space = x.coreVocabulary()
		}
		f = x.child(parent, t, space, core)
	}
	x.stack = append(x.stack, f)
	x.meaning.open(x.scanner, t, space, parent.role == channel)
	return nil
}

// identify recognises a feed by its root element.
func (x *xmlReader) identify(t xml.StartElement) (role, error) {
	x.root = t.Name
	space := x.scanner.names.Of(t.Name.Space)
	name := strings.ToLower(t.Name.Local)
	version := clip(strings.TrimSpace(attribute(t.Attr, "version")))
	switch {
	case name == "rss":
		// Some put the whole of RSS 2.0, which has no namespace, into one of their own.
		x.native = t.Name.Space
		x.doc.Format, x.doc.Version = "rss", version
		return wrapper, nil
	case name == "rdf" && (space == namespace.RDF || space == namespace.RSS):
		x.doc.Format, x.doc.Version = "rss", "1.0"
		return wrapper, nil
	case name == "feed" && (space == namespace.Atom || space == namespace.Unqualified):
		x.doc.Format, x.doc.Version = "atom", version
		if space == namespace.Atom {
			x.doc.Version, x.found = "1.0", true
		}
		if strings.Contains(strings.ToLower(t.Name.Space), "purl.org/atom/ns") {
			x.doc.Version = "0.3"
		}
		return channel, nil
	}
	return ignored, otherRoot(t.Name, x.scanner.text)
}

// child opens an element inside of another; core tells whether its namespace is that
// of the format itself.
func (x *xmlReader) child(parent frame, t xml.StartElement, space namespace.Vocabulary, core bool) frame {
	named := func(name string) bool { return core && strings.EqualFold(t.Name.Local, name) }
	isEntry := x.doc.Format == "rss" && named("item") || x.doc.Format == "atom" && named("entry")

	switch parent.role {
	case wrapper, channel:
		switch {
		case isEntry:
			x.foundRSS(t.Name.Space)
			x.openEntry(t)
			return frame{role: entryRole}
		case parent.role == wrapper && named("channel"):
			x.foundRSS(t.Name.Space)
			return frame{role: channel, base: parent.base.within(t.Attr)}
		case parent.role == channel || named("image"): // RSS 1.0 has the image beside the channel
			x.openField(space, t, parent, false)
			return frame{role: fieldRole}
		}
	case entryRole:
		x.nested = x.nested || isEntry
		x.openField(space, t, parent, true)
		return frame{role: fieldRole}
	case fieldRole:
		x.nested = x.nested || isEntry
		x.openPart(space, t)
		return frame{role: fieldRole}
	}
	return frame{role: ignored}
}

// isCore reports whether a namespace is that of the format itself.
func (x *xmlReader) isCore(space namespace.Vocabulary, uri string) bool {
	if x.doc.Format == "atom" {
		return uri == x.root.Space || space == namespace.Atom
	}
	return space == namespace.Unqualified || space == namespace.RSS || uri == x.native
}

// coreVocabulary is what isCore's namespaces count as.
func (x *xmlReader) coreVocabulary() namespace.Vocabulary {
	if x.doc.Format == "atom" {
		return namespace.Atom
	}
	return namespace.RSS
}

// foundRSS notes that the root does hold RSS, and which if it is RDF.
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
		if a.Name.Local == "about" && x.scanner.names.Of(a.Name.Space) == namespace.RDF {
			x.entry.identify(byAbout, []byte(a.Value))
		}
	}
	x.meaning.openEntry()
}

// end closes the innermost element.
func (x *xmlReader) end() {
	depth := len(x.stack)
	closed := x.stack[depth-1]
	x.stack = x.stack[:depth-1]
	x.meaning.close()
	switch {
	case closed.role == entryRole:
		x.meaning.closeEntry()
		x.entries = append(x.entries, x.entry)
	case closed.role != fieldRole:
	case depth > x.field.depth:
		if depth == x.field.depth+1 && x.stack[x.field.depth-2].role == channel {
			x.hints.part(&x.field)
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

// finish gives the verdict at the end of the root element.
func (x *xmlReader) finish(now time.Time) (*policy.Document, error) {
	rest := x.scanner.text[x.scanner.offset():]
	if x.lenient && !closedBy(x.scanner.text[:x.scanner.offset()], x.root.Local) {
		// A wrong end tag inside has closed everything around it: what follows is lost.
		return nil, fmt.Errorf("%w: an end tag in the middle closes the whole document", ErrBroken)
	}
	if x.lenient && x.nested {
		return nil, fmt.Errorf("%w: the end tag of an entry is missing", ErrBroken)
	}
	if !x.found {
		return nil, fmt.Errorf("%w: <%s> without a channel or an entry in it", ErrNotFeed, clip(x.root.Local))
	}
	doc := x.doc
	doc.Hints, doc.Malformed = x.hints.result()
	doc.Rhythm = rhythm(x.entries, now)
	doc.Fingerprint = x.meaning.sum()
	doc.Lenient = len(withoutMisc(rest)) > 0
	return &doc, nil
}
