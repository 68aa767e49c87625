// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/xml"
	"hash"
	"slices"
	"strings"

	"github.com/feedpollard/pollard/internal/markup"
	"github.com/feedpollard/pollard/internal/namespace"
	"github.com/feedpollard/pollard/policy"
)

// fingerprinter computes the fingerprint of a feed: a hash of its root element without its
// volatile parts. Two documents that differ in nothing else are one version; any other
// difference is a change for readers. Text around the root has no part in it.
//
// Volatile are the elements and attributes of [volatileElement] and
// [volatileAttribute]: dates at which the document was built, the generator, schedule
// hints, and counters; and the feed's own address and push services, which are among its hints
// and which readers of a gateway do not get. Comments, white space between elements, the prefixes of
// namespaces, the order of attributes, and the escapes of characters do not count.
//
// The order of the entries does not count, because some publishers build a feed from an
// unordered set at each request. Everything else is in document order.
//
// A document with a forged fingerprint would keep a change from readers. The hash is
// therefore SHA-256, and each text is preceded by its length, so that different documents
// are different input. Entries are hashed one by one, and their sorted hashes become part
// of the feed's.
type fingerprinter struct {
	feed    hash.Hash // of what is outside of entries
	entry   hash.Hash // of the open entry; nil outside of entries
	entries []policy.Fingerprint
	encoded []byte // of one token, reused

	volatile int    // open elements from the volatile one on; 0 outside of such
	xhtml    int    // open elements of XHTML, in which white space counts
	text     []byte // since the last tag
	sorted   []xml.Attr
}

func newFingerprinter() fingerprinter {
	return fingerprinter{feed: sha256.New()}
}

// volatileInChannel are the names of children of the channel that say when and how the document was
// built. Those of entries do count.
var volatileInChannel = map[namespace.Vocabulary][]string{
	namespace.RSS:        {"lastbuilddate", "pubdate", "generator", "ttl", "skiphours", "skipdays"},
	namespace.Atom:       {"updated", "modified", "generator"},
	namespace.DublinCore: {"date", "modified"},
}

// volatile are the names of elements that count something, wherever they stand.
var volatile = map[namespace.Vocabulary][]string{
	namespace.Slash:     {"comments", "hit_parade"},
	namespace.Threading: {"total"},
	namespace.Media:     {"community", "statistics", "starrating"}, // YouTube's views and ratings, deep within media:group
}

// volatileElement reports whether a change of an element is not a change of the feed.
func volatileElement(space namespace.Vocabulary, name string, inChannel bool) bool {
	return slices.Contains(volatile[space], name) ||
		inChannel && (space == namespace.Syndication || slices.Contains(volatileInChannel[space], name))
}

// volatileAttribute is like volatileElement, for attributes: the number of comments at a
// link, and the date of the last one (RFC 4685 section 4).
func volatileAttribute(space namespace.Vocabulary, name string) bool {
	return space == namespace.Threading && (name == "count" || name == "updated")
}

// The kinds of token in the encoding that is hashed.
const (
	tokenStart = iota + 1
	tokenEnd
	tokenText
	tokenString   // an attribute, or a member of a JSON object that is a string
	tokenJSON     // a member that is something else
	tokenElement  // an element of a JSON array that is not an object
	tokenEntry    // the place of an entry
	tokenList     // hashes in their own order
	tokenEncoding // of the document, as [declared] returns it
	tokenRest     // of a document that cannot be read to its end
)

// write hashes a token: its kind, and its parts with their lengths.
func (m *fingerprinter) write(kind byte, parts ...string) {
	b := append(m.encoded[:0], kind)
	b = binary.AppendUvarint(b, uint64(len(parts)))
	for _, part := range parts {
		b = binary.AppendUvarint(b, uint64(len(part)))
		b = append(b, part...)
	}
	m.encoded = b
	m.hash(b)
}

// hash adds to the hash of the open entry, or to the feed's.
func (m *fingerprinter) hash(b []byte) {
	if m.entry != nil {
		m.entry.Write(b)
	} else {
		m.feed.Write(b)
	}
}

// openEntry begins an entry. The feed's own hash contains only its place.
func (m *fingerprinter) openEntry() {
	m.endText()
	m.volatile, m.xhtml = 0, 0 // it may begin in an element without an end tag
	m.write(tokenEntry)
	m.entry = sha256.New()
}

func (m *fingerprinter) closeEntry() {
	m.endText()
	m.entries = append(m.entries, sum(m.entry))
	m.entry = nil
}

// open begins an element.
func (m *fingerprinter) open(t xml.StartElement, space namespace.Vocabulary, inChannel bool) {
	m.endText()
	address := inChannel && space == namespace.Atom && t.Name.Local == "link" && markup.IsAddress(t.Attr)
	if m.volatile > 0 || address || volatileElement(space, strings.ToLower(t.Name.Local), inChannel) {
		m.volatile++
		return
	}
	if m.xhtml > 0 || space == namespace.XHTML {
		m.xhtml++
	}
	m.write(tokenStart, t.Name.Space, t.Name.Local)
	m.sorted = append(m.sorted[:0], t.Attr...)
	slices.SortFunc(m.sorted, func(a, b xml.Attr) int {
		return cmp.Or(cmp.Compare(a.Name.Space, b.Name.Space), cmp.Compare(a.Name.Local, b.Name.Local))
	})
	for _, a := range m.sorted {
		if markup.IsDeclaration(a.Name) || volatileAttribute(namespace.Of(a.Name.Space), a.Name.Local) {
			continue
		}
		m.write(tokenString, a.Name.Space, a.Name.Local, a.Value)
	}
}

// close ends the innermost element.
func (m *fingerprinter) close() {
	m.endText()
	if m.volatile > 0 {
		m.volatile--
		return
	}
	if m.xhtml > 0 {
		m.xhtml--
	}
	m.write(tokenEnd)
}

// addText adds a piece of text: comments and CDATA sections split a text into several.
func (m *fingerprinter) addText(piece []byte) {
	if m.volatile == 0 {
		m.text = append(m.text, piece...)
	}
}

// endText hashes the text since the last tag.
func (m *fingerprinter) endText() {
	if len(m.text) > 0 && (m.xhtml > 0 || len(bytes.Trim(m.text, markup.Space)) > 0) {
		var length [binary.MaxVarintLen64 + 1]byte
		length[0] = tokenText
		m.hash(length[:1+binary.PutUvarint(length[1:], uint64(len(m.text)))])
		m.hash(m.text)
	}
	m.text = m.text[:0]
}

// memberSum returns the hash of a member of a JSON object. The kind says whether the value is
// a string.
func memberSum(kind byte, name string, value []byte) policy.Fingerprint {
	b := binary.AppendUvarint([]byte{kind}, uint64(len(name)))
	digest := sha256.Sum256(append(append(b, name...), value...))
	return policy.Fingerprint(digest[:len(policy.Fingerprint{})])
}

// rest adds the rest of a document that cannot be read.
func (m *fingerprinter) rest(text []byte) {
	m.endText()
	m.volatile = 0
	m.write(tokenRest, string(text))
	if m.entry != nil {
		m.closeEntry()
	}
}

// sum returns the fingerprint of a document that was read to its end.
func (m *fingerprinter) sum() policy.Fingerprint {
	m.endText()
	m.writeSorted(m.entries)
	return sum(m.feed)
}

// writeSorted hashes a list of hashes whose order does not count.
func (m *fingerprinter) writeSorted(list []policy.Fingerprint) {
	slices.SortFunc(list, func(a, b policy.Fingerprint) int { return bytes.Compare(a[:], b[:]) })
	m.hash(binary.AppendUvarint([]byte{tokenList}, uint64(len(list))))
	for i := range list {
		m.hash(list[i][:])
	}
}

// sum returns the first half of a hash: to find two documents with the same one takes
// 2^64 attempts.
func sum(h hash.Hash) (f policy.Fingerprint) {
	copy(f[:], h.Sum(nil))
	return f
}
