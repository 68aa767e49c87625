// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/feedpollard/pollard/policy/document/internal/namespace"
)

// Limits that no honest feed comes near and that keep 10 MB of malice cheap.
// Of some 5,000 feeds measured, the richest has 25,000 elements, the deepest 56
// levels, and none more than 18 namespaces or attributes at once (thousands of
// namespaces one after another do occur, where each entry declares its own).
// Small items that fill 10 MB are 300,000 elements.
const (
	maxDepth      = 256
	maxElements   = 650_000
	maxNamespaces = 256  // in scope at one place
	maxAttributes = 1000 // of one element
)

// errTruncated is the one breakage that no leniency mends: the end is missing,
// and entries may be missing with it. It goes out as ErrBroken.
var errTruncated = errors.New("truncated")

// scanner reads an XML document as tokens, under limits.
type scanner struct {
	text     []byte
	decoder  *xml.Decoder
	elements int
	scopes   []int // namespaces declared at each open element and around it

	// names remembers the vocabularies of this document's namespace names.
	names namespace.Names
}

// newScanner reads text, which is UTF-8 without XML declaration. A lenient
// scanner lets bare ampersands, unknown entities, attributes without quotes
// and wrong end tags pass.
//
// Neither knows the entities of a document's own DTD (they can be made to grow
// without bound), but both know those of HTML, which feeds use undeclared.
func newScanner(text []byte, lenient bool) *scanner {
	decoder := xml.NewDecoder(bytes.NewReader(text))
	decoder.Strict = !lenient
	decoder.Entity = xml.HTMLEntity
	// A late declaration does not change that the text is UTF-8 by now.
	decoder.CharsetReader = func(_ string, r io.Reader) (io.Reader, error) { return r, nil }
	return &scanner{text: text, decoder: decoder, names: namespace.Names{}}
}

// next returns the next token, valid until the call after. The error is io.EOF
// at the end of the text outside any element; otherwise errTruncated,
// ErrTooComplex or a syntax error.
func (s *scanner) next() (xml.Token, error) {
	// The decoder collects a whole tag before it returns it.
	if tooManyAttributes(s.text[s.offset():]) {
		return nil, fmt.Errorf("%w: more than %d attributes in one element", ErrTooComplex, maxAttributes)
	}
	token, err := s.decoder.Token()
	if err != nil {
		if syntax, ok := errors.AsType[*xml.SyntaxError](err); ok && strings.HasPrefix(syntax.Msg, "unexpected EOF") {
			err = errTruncated
		}
		return nil, err
	}
	switch t := token.(type) {
	case xml.StartElement:
		return token, s.open(t)
	case xml.EndElement:
		s.scopes = s.scopes[:len(s.scopes)-1]
	}
	return token, nil
}

// open counts an element.
func (s *scanner) open(t xml.StartElement) error {
	s.elements++
	inScope := 0
	if n := len(s.scopes); n > 0 {
		inScope = s.scopes[n-1]
	}
	for _, a := range t.Attr {
		if isDeclaration(a.Name) {
			inScope++
		}
	}
	s.scopes = append(s.scopes, inScope)
	switch {
	case len(s.scopes) > maxDepth:
		return fmt.Errorf("%w: elements nested more than %d deep", ErrTooComplex, maxDepth)
	case s.elements > maxElements:
		return fmt.Errorf("%w: more than %d elements", ErrTooComplex, maxElements)
	case inScope > maxNamespaces:
		return fmt.Errorf("%w: more than %d namespaces at once", ErrTooComplex, maxNamespaces)
	}
	return nil
}

// offset is where the next token begins.
func (s *scanner) offset() int64 { return s.decoder.InputOffset() }

// isDeclaration reports whether an attribute declares a namespace.
func isDeclaration(name xml.Name) bool {
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

// xmlSpace is white space as XML defines it.
const xmlSpace = " \t\r\n"
