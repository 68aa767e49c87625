// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

// Package markup reads the XML of feeds and subscription lists as tokens with their offsets,
// under limits. It is the only XML reader for hints, fingerprints and links, so that they
// agree about what a document contains. It is encoding/xml with what feeds need in addition:
// encodings ([UTF8]), documents that are not quite XML ([Start], [Repair]), entities that a
// document declares, and bounds ([Scanner]).
package markup

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/feedpollard/pollard/internal/namespace"
)

// Limits that no honest feed comes near and that keep 10 MB of malice cheap.
// Of some 5,000 feeds measured, the richest has 25,000 elements, the deepest 56
// levels, and none more than 18 namespaces or attributes at once (thousands of
// namespaces one after another do occur, if each entry declares its own).
// Small items that fill 10 MB are 300,000 elements.
const (
	MaxDepth      = 256
	MaxElements   = 650_000
	maxNamespaces = 256  // in scope at one place
	maxAttributes = 1000 // of one element
	maxEntities   = 1000 // declared
)

var (
	// ErrTooComplex: the document exceeds a limit.
	ErrTooComplex = errors.New("too complex a document")
	// ErrTruncated: the end is missing, and entries may be missing with it.
	ErrTruncated = errors.New("truncated")
)

// Space is white space as XML and JSON define it.
const Space = " \t\r\n"

// Scanner reads an XML document as tokens.
type Scanner struct {
	// Root is the name of the root element, once it was read.
	Root xml.Name
	// EndTag is where the last end tag stands. Empty elements have none, nor have elements that the
	// end tag of another one closes, as a lenient scanner lets it.
	EndTag Span

	text     []byte
	decoder  *xml.Decoder
	start    int  // of the last token
	root     Span // the start tag of the root element
	elements int
	scopes   []int // number of namespaces declared at each open element and around it
}

// NewScanner returns a scanner of text, which is UTF-8 without XML declaration. A lenient
// scanner accepts bare ampersands, unknown entities, attributes without quotes and
// wrong end tags.
//
// Entities of HTML, which feeds use without declaring them, have their meaning.
// Entities that the document itself declares are kept as they are written, because
// they could be made to grow without bound.
func NewScanner(text []byte, lenient bool) *Scanner {
	decoder := xml.NewDecoder(bytes.NewReader(text))
	decoder.Strict = !lenient
	decoder.Entity = xml.HTMLEntity
	// A late declaration does not change that the text is UTF-8 by now.
	decoder.CharsetReader = func(_ string, r io.Reader) (io.Reader, error) { return r, nil }
	return &Scanner{text: text, decoder: decoder}
}

// Next returns the next token, valid until the next call. Empty elements have an end
// element with an empty span. The error is io.EOF at the end of the text outside of any
// element; otherwise [ErrTruncated], [ErrTooComplex] or a syntax error.
func (s *Scanner) Next() (xml.Token, error) {
	s.start = s.Offset()
	// The decoder collects a whole tag before it returns it.
	if tooManyAttributes(s.text[s.start:]) {
		return nil, fmt.Errorf("%w: more than %d attributes in one element", ErrTooComplex, maxAttributes)
	}
	token, err := s.decoder.Token()
	if err != nil {
		if syntax, ok := errors.AsType[*xml.SyntaxError](err); ok && strings.HasPrefix(syntax.Msg, "unexpected EOF") {
			err = ErrTruncated
		}
		return nil, err
	}
	switch t := token.(type) {
	case xml.StartElement:
		return token, s.open(t)
	case xml.EndElement:
		if s.Offset() > s.start {
			s.EndTag = s.Span()
		}
		s.scopes = s.scopes[:len(s.scopes)-1]
	case xml.Directive:
		s.declare(t)
	}
	return token, nil
}

// Offset is where the next token begins.
func (s *Scanner) Offset() int { return int(s.decoder.InputOffset()) }

// Span is where the last token began and ended.
func (s *Scanner) Span() Span { return Span{s.start, s.Offset()} }

// Closes reports whether the last end tag is that of the element with a start tag.
func (s *Scanner) Closes(tag Span) bool {
	name := s.text[tag.Start+1 : tag.End-1]
	if i := bytes.IndexAny(name, Space+"/"); i >= 0 {
		name = name[:i]
	}
	return s.EndTag.Start >= tag.End && bytes.Equal(name, bytes.TrimRight(s.text[s.EndTag.Start+2:s.EndTag.End-1], Space))
}

// Closed reports whether the root element, which has ended, has its own end tag, or is empty. A wrong
// end tag in the middle of a document closes all elements for a lenient scanner.
func (s *Scanner) Closed() bool { return s.Closes(s.root) || s.Offset() == s.root.End }

// open counts an element.
func (s *Scanner) open(t xml.StartElement) error {
	if s.elements++; s.elements == 1 {
		s.Root, s.root = t.Name, s.Span()
	}
	inScope := 0
	if n := len(s.scopes); n > 0 {
		inScope = s.scopes[n-1]
	}
	for _, a := range t.Attr {
		if IsDeclaration(a.Name) {
			inScope++
		}
	}
	s.scopes = append(s.scopes, inScope)
	switch {
	case len(s.scopes) > MaxDepth:
		return fmt.Errorf("%w: elements nested more than %d deep", ErrTooComplex, MaxDepth)
	case s.elements > MaxElements:
		return fmt.Errorf("%w: more than %d elements", ErrTooComplex, MaxElements)
	case inScope > maxNamespaces:
		return fmt.Errorf("%w: more than %d namespaces at once", ErrTooComplex, maxNamespaces)
	}
	return nil
}

// entityDeclaration finds the name of a general entity (XML 1.0 section 4.2).
var entityDeclaration = regexp.MustCompile(`<!ENTITY\s+([^\s%"'<>&;]+)\s`)

// declare makes the entities that a document type declares known to the decoder. Each
// stands for its own reference.
func (s *Scanner) declare(directive xml.Directive) {
	if !bytes.HasPrefix(directive, []byte("DOCTYPE")) {
		return
	}
	for _, m := range entityDeclaration.FindAllSubmatch(directive, maxEntities) {
		name := string(m[1])
		if _, known := s.decoder.Entity[name]; known {
			continue
		}
		if len(s.decoder.Entity) == len(xml.HTMLEntity) {
			s.decoder.Entity = maps.Clone(xml.HTMLEntity)
		}
		s.decoder.Entity[name] = "&" + name + ";"
	}
}

// Vocabulary returns the vocabulary of an element. The elements of the format itself are
// all in [namespace.RSS] or [namespace.Atom]: RSS 2.0 has no namespace, and publishers
// put it into various ones.
func (s *Scanner) Vocabulary(name xml.Name) namespace.Vocabulary {
	space := namespace.Of(name.Space)
	switch root := strings.ToLower(s.Root.Local); {
	case root == "feed" && (name.Space == s.Root.Space || space == namespace.Atom):
		return namespace.Atom
	case root != "feed" && (space == namespace.None || root == "rss" && name.Space == s.Root.Space):
		return namespace.RSS
	}
	return space
}

// Attribute returns the value of an attribute without namespace.
func Attribute(attributes []xml.Attr, name string) string {
	for _, a := range attributes {
		if a.Name.Space == "" && a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

// Relation returns the short name of a link relation: IANA's may be written as URIs.
func Relation(name string) string {
	name = strings.ToLower(name)
	if _, short, ok := strings.Cut(name, "//www.iana.org/assignments/relation/"); ok {
		return short
	}
	return name
}

// NamesAddress reports whether a link relation leads to the feed's own address or a push service.
func NamesAddress(relation string) bool {
	name := Relation(relation)
	return name == "self" || name == "hub"
}

// IsAddress reports whether a link names nothing but the feed's own address or a push service.
func IsAddress(attributes []xml.Attr) bool {
	words := strings.Fields(Attribute(attributes, "rel"))
	return len(words) > 0 && !slices.ContainsFunc(words, func(word string) bool { return !NamesAddress(word) })
}

// IsAlternate reports whether a link of Atom leads to the page that an entry or a feed is about
// (RFC 4287 section 4.2.7.2).
func IsAlternate(attributes []xml.Attr) bool {
	rel := strings.TrimSpace(Attribute(attributes, "rel"))
	return rel == "" || Relation(rel) == "alternate"
}

// IsDeclaration reports whether an attribute declares a namespace.
func IsDeclaration(name xml.Name) bool {
	return name.Space == "xmlns" || name.Space == "" && name.Local == "xmlns"
}

// tooManyAttributes looks ahead in a start tag. It counts equals signs and words
// outside of quotes, so at least as many as there are attributes, with or without values.
func tooManyAttributes(tag []byte) bool {
	if len(tag) < 2 || tag[0] != '<' || tag[1] == '/' || tag[1] == '!' || tag[1] == '?' {
		return false
	}
	count, quote, space := 0, byte(0), false
	for _, c := range tag {
		switch {
		case quote != 0:
			if c == quote {
				quote = 0
			}
			continue
		case c == '>':
			return false
		case c == '"' || c == '\'':
			quote = c
		case c == '=' || space && !isSpace(c):
			count++
		}
		space = isSpace(c)
		if count > 2*maxAttributes {
			return true
		}
	}
	return false
}

// isSpace reports white space as XML defines it (section 2.3).
func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }
