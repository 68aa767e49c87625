// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

// Package links rewrites the URLs in a feed document so that they work from
// wherever the document is served.
//
// [Absolute] makes relative URLs absolute: readers resolve them against the address
// at which they got the feed, which behind a gateway is not the publisher's. [Marks]
// and [Splice] put the gateway's own address where a document names its own, and
// leave out WebSub hubs, so that readers stay with the gateway.
//
// The document is not parsed and written anew. It is scanned once as bytes: as XML
// (xml.go) or JSON (json.go), and the HTML within texts (html.go) through the
// escapes that it is wrapped in (view.go). What is found leads to edits of single
// attributes and texts; each other byte stays. Nothing is fetched, and a document
// costs time in proportion to its bytes, whoever wrote it.
//
// URLs are made absolute once, when a version of a feed is made; its fingerprint and
// its hints are those of the original document. Marks belong to the result and are
// kept with it, so that a document for one more address costs a copy.
//
// It relies on package document for whether the bytes are a feed at all.
package links

import (
	"bytes"
	"unicode/utf8"

	"github.com/feedpollard/pollard/policy/document"
)

// Report says what has become of a document's relative URLs.
type Report struct {
	Rewritten int    // made absolute
	Left      int    // left, because it is not certain what they mean
	Problem   string // why the document was left as it is; empty: it was not
}

// The problems of a whole document.
const (
	problemBase     = "the address of the document is no plain http or https URL"
	problemEncoding = "the encoding is not one in which markup can be found byte by byte"
	problemComplex  = "elements or namespaces are nested too deep, or there are too many values of xml:base"
	problemGrowth   = "absolute URLs would make it more than twice as large"
)

// Absolute makes the relative URLs in a feed document absolute: in links,
// enclosures and icons, in the HTML of entries and in xml:base. The contentType is
// that of the answer that brought the document, and base its URL. Values of xml:base
// are obeyed. Identifiers (Atom's and JSON Feed's id, rdf:about) are never touched,
// and a guid only if it says that it is a permalink.
//
// Without relative URLs the body itself is returned, and so it is where the Report
// names a problem. Absolute of its own result changes nothing.
func Absolute(body []byte, contentType, base string) ([]byte, Report) {
	origin := parseBase(base)
	if origin == nil {
		return body, Report{Problem: problemBase}
	}
	if !document.ASCIICompatible(body, contentType) {
		return body, Report{Problem: problemEncoding}
	}
	e := &editor{body: body}
	a := &absoluter{editor: e}
	start := textStart(body)
	switch {
	case start == len(body):
	case body[start] == '{' && !utf8.Valid(body):
		return body, Report{Problem: problemEncoding} // a quote may be half of a character
	case body[start] == '{':
		scanJSON(body, start, &jsonAbsoluter{absoluter: a, base: origin})
	default:
		if !scanXML(body, start, origin, a) {
			return body, Report{Problem: problemComplex}
		}
	}
	rewritten, ok := e.apply()
	if !ok {
		return body, Report{Problem: problemGrowth}
	}
	return rewritten, e.report
}

// textStart is where the document begins, behind byte order marks and white space.
func textStart(body []byte) int {
	rest := body
	for {
		before := len(rest)
		rest = bytes.TrimLeft(bytes.TrimPrefix(rest, []byte("\xef\xbb\xbf")), xmlSpace)
		if len(rest) == before {
			return len(body) - before
		}
	}
}

// xmlSpace is white space as XML and JSON define it.
const xmlSpace = " \t\r\n"

// edit replaces body[start:end].
type edit struct {
	start, end int
	text       string
}

// editor collects edits of a document, in the order of the document.
type editor struct {
	body   []byte
	edits  []edit
	grown  int
	report Report
}

// Documents may grow to twice their size and this, in bytes.
const spareGrowth = 64 << 10

// replace plans an edit.
func (e *editor) replace(start, end int, text string) {
	e.report.Rewritten++
	e.grown += len(text)
	if e.grown <= len(e.body)+spareGrowth {
		e.edits = append(e.edits, edit{start, end, text})
	}
}

// apply carries the edits out, unless they are too much.
func (e *editor) apply() (body []byte, ok bool) {
	if e.grown > len(e.body)+spareGrowth {
		return nil, false
	}
	return applied(e.body, e.edits), true
}

func applied(body []byte, edits []edit) []byte {
	if len(edits) == 0 {
		return body
	}
	size := len(body)
	for _, e := range edits {
		size += len(e.text) - (e.end - e.start)
	}
	result, at := make([]byte, 0, size), 0
	for _, e := range edits {
		result = append(result, body[at:e.start]...)
		result = append(result, e.text...)
		at = e.end
	}
	return append(result, body[at:]...)
}
