// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"bytes"
	"cmp"
	"encoding/xml"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/feedpollard/pollard/internal/markup"
	"github.com/feedpollard/pollard/internal/namespace"
	"github.com/feedpollard/pollard/policy"
)

// readXML reads an XML document strictly, and if that fails, leniently: after what does not
// belong to it, without characters that XML forbids, and with wrong markup.
func readXML(text []byte, encoding string, now time.Time) (*policy.Document, error) {
	doc, err := newXMLReader(text, encoding, false).read(now)
	if err == nil || errors.Is(err, ErrTooComplex) {
		return doc, err
	}
	start := 0
	if errors.Is(err, ErrNotFeed) {
		start = markup.Start(text)
	}
	if start < 0 {
		return nil, err
	}
	text = text[start:]
	return newXMLReader(markup.Repair(text[markup.Begin(text):]), encoding, true).read(now)
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
	open    bool // the entry has not ended
	entries []entry
	found   bool // it has a channel or an entry, so it is a feed
}

func newXMLReader(text []byte, encoding string, lenient bool) *xmlReader {
	x := &xmlReader{source: text, scanner: markup.NewScanner(text, lenient), lenient: lenient, print: newFingerprinter()}
	x.doc.Lenient = lenient
	x.print.write(tokenEncoding, encoding)
	return x
}

// read reads to the end of the root element. Text around it says nothing about the feed.
func (x *xmlReader) read(now time.Time) (*policy.Document, error) {
	for {
		token, err := x.scanner.Next()
		switch {
		case errors.Is(err, ErrTooComplex):
			return nil, err
		case err != nil && x.root.Local == "":
			return nil, notMarkup(x.source)
		case err != nil && x.lenient:
			return x.unread(x.scanner.Span().Start, now)
		case err != nil:
			return nil, err
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
		case xml.EndElement:
			if x.end(); len(x.stack) > 0 {
				continue
			}
			if !x.scanner.Closed() {
				return x.unread(x.scanner.EndTag.Start, now)
			}
			rest := bytes.TrimLeft(x.source[x.scanner.Offset():], markup.Space)
			x.doc.Lenient = x.lenient || len(rest) > 0 && !bytes.HasPrefix(rest, []byte("<!--"))
			return x.finish(now)
		}
	}
}

// unread takes over the rest of a document whose markup cannot be read any further, as it ends early, or
// a wrong end tag has closed all elements. Some readers see entries there. So it is a part of the
// fingerprint as it is.
func (x *xmlReader) unread(from int, now time.Time) (*policy.Document, error) {
	rest := x.source[from:]
	more := markup.CountTags(rest, "item") + markup.CountTags(rest, "entry")
	if x.open {
		more++
	}
	x.doc.Unclosed = markup.CountTags(rest, "/"+x.root.Local) == 0
	if x.doc.Unclosed && len(x.entries)+more == 0 {
		return nil, fmt.Errorf("%w: %w after %s, before the end of <%s>", ErrBroken, markup.ErrTruncated,
			humanize.Bytes(uint64(len(x.source))), clip(x.root.Local))
	}
	x.print.rest(rest)
	doc, err := x.finish(now)
	if err == nil {
		doc.Rhythm.Entries += more
	}
	return doc, err
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
	x.print.open(t, space, parent.role == channel)
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
	case name == "rdf": // in any namespace: some forget to declare it
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
	case entryRole, fieldRole:
		switch {
		case isEntry && x.lenient: // the end tag of something before it is missing
			x.openEntry(t)
			return openElement{role: entryRole}
		case parent.role == entryRole:
			x.openField(space, t, parent, true)
		default:
			x.openChild(space, t)
		}
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

// openEntry begins an entry, which ends the one before.
func (x *xmlReader) openEntry(t xml.StartElement) {
	x.closeEntry()
	x.found, x.open, x.entry = true, true, entry{}
	for _, a := range t.Attr {
		if a.Name.Local == "about" && namespace.Of(a.Name.Space) == namespace.RDF {
			x.entry.identify(byAbout, []byte(a.Value))
		}
	}
	x.print.openEntry()
}

func (x *xmlReader) closeEntry() {
	if x.open {
		x.open = false
		x.print.closeEntry()
		x.entries = append(x.entries, x.entry)
	}
}

// end closes the innermost element.
func (x *xmlReader) end() {
	depth := len(x.stack)
	closed := x.stack[depth-1]
	x.stack = x.stack[:depth-1]
	x.print.close()
	switch {
	case closed.role == entryRole:
		x.closeEntry()
	case closed.role != fieldRole || depth < x.field.depth: // not the field, if an entry began in it
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

// finish returns the result at the end of the document.
func (x *xmlReader) finish(now time.Time) (*policy.Document, error) {
	if !x.found {
		return nil, fmt.Errorf("%w: <%s> without a channel or an entry in it", ErrNotFeed, clip(x.root.Local))
	}
	x.doc.Hints, x.doc.Malformed = x.hints.result()
	x.doc.Rhythm, x.doc.IDs = rhythm(x.entries, now)
	x.doc.Fingerprint = x.print.sum()
	return &x.doc, nil
}
