// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/xml"
	"slices"
	"strings"

	"github.com/cespare/xxhash/v2"
)

// meaning computes the fingerprint of a feed: a hash over what a reader would
// show, so that two documents which differ only in volatile parts are one version.
//
// What counts is listed, in [counts]; anything else may change at will:
// lastBuildDate, the channel's pubDate and the feed's updated, generator, ttl,
// cloud, counters of comments and views, white space between elements, the
// prefixes of namespaces, CDATA or entities, the notation of dates.
//
// The sums make the order irrelevant, of entries and of the fields in each:
// publishers who build a feed out of an unordered set would otherwise have a new
// version at every poll, and a reader sorts by date anyway.
type meaning struct {
	feed    uint64 // sum of the hashes of the feed's own fields
	entries uint64 // sum of the hashes of the entries
	count   uint64
	entry   uint64 // sum of the hashes of the fields of the open entry

	digest   xxhash.Digest
	ignoring int    // open elements within the field from the first one that does not count
	writing  bool   // text was written since the last tag
	space    []byte // white space that counts if more text follows
	sorted   []xml.Attr
}

// These bytes separate the parts of a field in the hash, so that no two fields
// with different parts look the same: XML text holds none of them (XML 1.0 section 2.2).
const (
	markElement = 0x01
	markName    = 0x02
	markValue   = 0x03
	markText    = 0x04
	markEnd     = 0x05
)

// counts reports whether a child of a channel or entry belongs to the fingerprint.
func counts(space vocabulary, name string, attributes []xml.Attr, inEntry bool) bool {
	switch {
	case !inEntry && space == rss:
		return name == "title" || name == "link" || name == "image"
	case !inEntry && space == atom:
		return name == "title" || name == "logo" || name == "icon" || name == "link" && isAlternate(attributes)
	case !inEntry:
		// A move may be the last change that a feed ever sees.
		return space == itunes && (name == "image" || name == "new-feed-url")
	}
	switch space {
	case rss:
		switch name {
		case "title", "link", "guid", "description", "pubdate", "author", "category", "enclosure", "source":
			return true
		}
	case atom:
		switch name {
		case "id", "title", "updated", "published", "issued", "modified", "created",
			"summary", "content", "author", "contributor", "category":
			return true
		case "link":
			return !strings.EqualFold(attribute(attributes, "rel"), "replies")
		}
	case content, dublinCore, itunes, podcasting:
		return true
	case media:
		return !isVolatile(space, name)
	}
	return false
}

// isVolatile reports what changes without a change: YouTube counts views and
// ratings in media:community, deep within media:group.
func isVolatile(space vocabulary, name string) bool {
	return space == media && (name == "community" || name == "statistics" || name == "starrating")
}

func (m *meaning) openEntry() { m.entry = 0 }

// closeEntry adds the entry. It hashes the sum once more, lest a field that
// moves from one entry to another leave the total as it was.
func (m *meaning) closeEntry() {
	var b [8]byte
	m.entries += xxhash.Sum64(binary.LittleEndian.AppendUint64(b[:0], m.entry))
	m.count++
}

// openField begins a child of a channel or entry.
func (m *meaning) openField(s *scanner, space vocabulary, name string, attributes []xml.Attr) {
	m.digest.Reset()
	m.ignoring = 0
	m.write(s, space, name, attributes)
}

// openElement begins an element within a field.
func (m *meaning) openElement(s *scanner, space vocabulary, name string, attributes []xml.Attr) {
	if m.ignoring > 0 || isVolatile(space, name) {
		m.ignoring++
		return
	}
	m.write(s, space, name, attributes)
}

// write hashes a start tag.
func (m *meaning) write(s *scanner, space vocabulary, name string, attributes []xml.Attr) {
	m.mark()
	_, _ = m.digest.Write([]byte{markElement, byte(space)})
	_, _ = m.digest.WriteString(name)
	m.sorted = append(m.sorted[:0], attributes...)
	slices.SortFunc(m.sorted, func(a, b xml.Attr) int { return cmp.Compare(a.Name.Local, b.Name.Local) })
	for _, a := range m.sorted {
		// Of attributes with a namespace, only RDF's point at something: others
		// are counters (thr:count), or say how to read a text (xml:lang).
		if isDeclaration(a.Name) || a.Name.Space != "" && s.vocabulary(a.Name.Space) != rdf {
			continue
		}
		_, _ = m.digest.Write([]byte{markName})
		_, _ = m.digest.WriteString(a.Name.Local)
		_, _ = m.digest.Write([]byte{markValue})
		_, _ = m.digest.WriteString(a.Value)
	}
}

// text hashes a piece of text. White space next to a tag does not count.
func (m *meaning) text(piece []byte) {
	if m.ignoring > 0 {
		return
	}
	if !m.writing {
		piece = bytes.TrimLeft(piece, xmlSpace)
		if len(piece) == 0 {
			return
		}
		m.writing = true
		_, _ = m.digest.Write([]byte{markText})
	}
	inner := bytes.TrimRight(piece, xmlSpace)
	if len(inner) > 0 {
		_, _ = m.digest.Write(m.space)
		m.space = m.space[:0]
		_, _ = m.digest.Write(inner)
	}
	m.space = append(m.space, piece[len(inner):]...)
}

// mark ends a run of text.
func (m *meaning) mark() {
	m.writing = false
	m.space = m.space[:0]
}

// closeElement ends an element within a field.
func (m *meaning) closeElement() {
	if m.ignoring > 0 {
		m.ignoring--
		return
	}
	m.mark()
	_, _ = m.digest.Write([]byte{markEnd})
}

// closeField ends a child of an entry or else of the feed.
func (m *meaning) closeField(inEntry bool) {
	m.mark()
	if inEntry {
		m.entry += m.digest.Sum64()
	} else {
		m.feed += m.digest.Sum64()
	}
}

// member hashes a member of a JSON object: its name, and its value with the length before it.
func (m *meaning) member(name string, value []byte, inEntry bool) {
	m.openField(nil, foreign, name, nil)
	var b [9]byte
	b[0] = markValue
	binary.LittleEndian.PutUint64(b[1:], uint64(len(value)))
	_, _ = m.digest.Write(b[:])
	_, _ = m.digest.Write(value)
	m.closeField(inEntry)
}

// sum returns the fingerprint of the whole feed.
func (m *meaning) sum() uint64 {
	var b [24]byte
	binary.LittleEndian.PutUint64(b[0:], m.feed)
	binary.LittleEndian.PutUint64(b[8:], m.count)
	binary.LittleEndian.PutUint64(b[16:], m.entries)
	return xxhash.Sum64(b[:])
}
