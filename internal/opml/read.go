// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package opml

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
)

// ErrInvalid reports that a document is not OPML. The error that wraps it says why.
var ErrInvalid = errors.New("not OPML")

// maxDepth is how many elements may be nested: folders within folders.
const maxDepth = 100

// outline is an outline element: of a feed, or of a folder if it has no URL.
type outline struct {
	url         string
	text, title string
	depth       int // how many elements it is in
	start, end  int // of the URL in the document's text, without its quotes
}

// read finds the outlines of a document. It accepts what readers accept: names in
// any case, a bare &, unclosed elements.
func read(in []byte) (*document, []outline, error) {
	if len(in) > MaxSize {
		return nil, nil, fmt.Errorf("%w: it is larger than %d MiB", ErrInvalid, MaxSize>>20)
	}
	doc, err := decode(in)
	if err != nil {
		return nil, nil, err
	}
	// The decoder finds the elements, and this package the values within a tag: a
	// token of package xml does not say where in the document its attributes are.
	dec := xml.NewDecoder(bytes.NewReader(masked(doc.text)))
	dec.Strict = false
	dec.CharsetReader = func(label string, r io.Reader) (io.Reader, error) {
		return r, doc.setCharset(label)
	}
	var outlines []outline
	rooted, depth := false, 0
	for {
		start := dec.InputOffset()
		token, err := dec.Token()
		if errors.Is(err, io.EOF) && rooted {
			return doc, outlines, nil
		}
		if err != nil {
			return nil, nil, fmt.Errorf("%w: %w", ErrInvalid, err)
		}
		switch e := token.(type) {
		case xml.EndElement:
			depth--
		case xml.StartElement:
			if depth++; depth > maxDepth {
				return nil, nil, fmt.Errorf("%w: more than %d elements are nested", ErrInvalid, maxDepth)
			}
			if !rooted && !strings.EqualFold(e.Name.Local, "opml") {
				return nil, nil, fmt.Errorf("%w: the document is <%.40s>, expected <opml>", ErrInvalid, e.Name.Local)
			}
			rooted = true
			if !strings.EqualFold(e.Name.Local, "outline") {
				continue
			}
			o := doc.outline(int(start), int(dec.InputOffset()))
			o.depth = depth
			outlines = append(outlines, o)
		}
	}
}

// masked returns a copy of a text for the XML decoder, of the same length: letters replace
// characters outside of ASCII, control characters and references, which the decoder would
// decode or refuse. In all possible encodings the bytes <, > and quotes are markup.
func masked(text []byte) []byte {
	mask := bytes.Clone(text)
	for i, c := range mask {
		if c >= 0x7f || c == '&' || c < ' ' && c != '\t' && c != '\n' && c != '\r' {
			mask[i] = 'x'
		}
	}
	for i := range bom(text) {
		mask[i] = ' '
	}
	return mask
}

// outline reads the tag of an outline element at text[start:end].
func (d *document) outline(start, end int) (o outline) {
	tag := d.text[start:end]
	page := false
	for at := 0; ; {
		a, next, more := nextAttribute(tag, at)
		if !more && page {
			o.url = ""
		}
		if !more {
			return o
		}
		at = next
		value := tag[a.start:a.end]
		switch name := strings.ToLower(a.name); {
		case name == "type":
			page = page || isPage(string(value))
		case name == "text" && o.text == "":
			o.text, _ = d.unescape(value)
		case name == "title" && o.title == "":
			o.title, _ = d.unescape(value)
		case name == "xmlurl" && o.url == "":
			url, err := d.unescape(value)
			if url = strings.TrimSpace(url); err == nil && url != "" {
				o.url, o.start, o.end = url, start+a.start, start+a.end
			}
		}
	}
}

// isPage reports whether an outline's URL is a page or document from which the reader
// makes a feed itself (FreshRSS's HTML+XPath, XML+XPath and JSON+DotNotation).
func isPage(outlineType string) bool {
	outlineType = strings.ToLower(outlineType)
	return strings.Contains(outlineType, "xpath") || strings.Contains(outlineType, "dotnotation")
}

// attribute is an attribute of a tag, its value at tag[start:end].
type attribute struct {
	name       string // without a prefix
	start, end int
}

// nextAttribute finds the first quoted attribute of a tag from a position on.
func nextAttribute(tag []byte, at int) (a attribute, next int, ok bool) {
	for {
		equals := bytes.IndexByte(tag[at:], '=')
		if equals < 0 {
			return attribute{}, len(tag), false
		}
		equals += at
		before := bytes.TrimRight(tag[at:equals], space)
		name := string(before[bytes.LastIndexAny(before, space+"<:")+1:])
		at = equals + 1
		for at < len(tag) && strings.IndexByte(space, tag[at]) >= 0 {
			at++
		}
		if at == len(tag) || tag[at] != '"' && tag[at] != '\'' {
			continue // a bare word is never a URL
		}
		length := bytes.IndexByte(tag[at+1:], tag[at])
		if length < 0 {
			return attribute{}, len(tag), false
		}
		a = attribute{name, at + 1, at + 1 + length}
		return a, a.end + 1, true
	}
}

// space is the white space of XML.
const space = " \t\r\n"
