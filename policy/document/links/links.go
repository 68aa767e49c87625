// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

// Package links makes the document that a gateway serves in place of a publisher's.
//
// Readers resolve relative URLs against the URL that they got the feed from, which is
// the gateway's: [Served] makes them absolute. It also removes what would lead readers
// past the gateway: the feed's own address, and push services.
//
// The document is not written again from a parsed form. Tokenizers find the places
// to change: encoding/xml by package markup (xml.go), golang.org/x/net/html for texts
// that hold HTML (html.go), encoding/json (json.go). Between them and the document
// are escapes (escape.go). All other bytes stay as they are. Nothing is fetched, and
// the cost is proportional to the size of the document.
//
// It relies on package document for whether the bytes are a feed at all.
package links

import (
	"bytes"
	"unicode/utf8"

	"github.com/feedpollard/pollard/policy/document"
	"github.com/feedpollard/pollard/policy/document/internal/markup"
)

// Report says what happened to the relative URLs of a document.
type Report struct {
	Rewritten int    // made absolute
	Problem   string // why the URLs of the whole document were left; empty: they were not
}

// The problems of a whole document.
const (
	problemBase     = "the URL of the document is not a plain http or https URL"
	problemEncoding = "markup cannot be found byte by byte in its encoding"
	problemMarkup   = "it cannot be read to its end, or has too many values of xml:base"
	problemGrowth   = "absolute URLs would make it more than twice as large"
)

// Served returns the document that a gateway serves in place of body, which came from
// the URL base with this contentType.
//
// Relative URLs become absolute, unless it is uncertain what they refer to: in links, enclosures and icons, in the HTML of entries,
// and in xml:base, which is obeyed. Identifiers (id of Atom and JSON Feed, rdf:about)
// are never changed, and a guid only if it says that it is a permalink.
//
// The following are removed from the feed (entries keep theirs). Hints have to be read
// from body, before:
//
//   - links with rel=self or rel=hub, or just these relations if there are others;
//   - itunes:new-feed-url, podcast:podping and RSS's cloud;
//   - feed_url and hubs of JSON Feed.
//
// The result is body itself if there is nothing to change or the encoding or markup
// cannot be read. Served of its own result changes nothing.
func Served(body []byte, contentType, base string) ([]byte, Report) {
	if !document.ASCIICompatible(body, contentType) {
		return body, Report{Problem: problemEncoding}
	}
	origin := parseBase(base)
	e := &editor{body: body}
	start := markup.Begin(body)
	complete := true
	switch {
	case start == len(body):
	case body[start] == '{' && !utf8.Valid(body):
		return body, Report{Problem: problemEncoding} // a quote may be half of a character
	case body[start] == '{':
		complete = rewriteJSON(e, start, origin)
	default:
		complete = rewriteXML(e, start, origin)
	}
	if !complete {
		return body, Report{Problem: problemMarkup}
	}
	return e.apply(origin)
}

// span is text[start:end].
type span struct{ start, end int }

// edit replaces body[start:end].
type edit struct {
	span
	text string
}

// editor collects edits of a document, in the order of the document.
type editor struct {
	body   []byte
	edits  []edit
	grown  int // bytes that the edits add, removals not counted
	text   text
	report Report
}

// Documents may grow to twice their size and this, in bytes.
const spareGrowth = 64 << 10

// replace plans to make a URL absolute.
func (e *editor) replace(s span, text string) {
	e.report.Rewritten++
	if e.grown += len(text); !e.tooLarge() {
		e.edits = append(e.edits, edit{s, text})
	}
}

// remove plans a removal.
func (e *editor) remove(s span) { e.edits = append(e.edits, edit{span: s}) }

func (e *editor) tooLarge() bool { return e.grown > len(e.body)+spareGrowth }

// apply returns the edited document.
func (e *editor) apply(origin *base) ([]byte, Report) {
	switch {
	case e.tooLarge():
		e.report = Report{Problem: problemGrowth}
	case origin == nil:
		e.report.Problem = problemBase
	}
	size := len(e.body) + min(e.grown, len(e.body)+spareGrowth)
	var result []byte
	at := 0
	for _, edit := range e.edits {
		if edit.text != "" && e.tooLarge() {
			continue
		}
		if result == nil {
			result = make([]byte, 0, size)
		}
		result = append(result, e.body[at:edit.start]...)
		result = append(result, edit.text...)
		at = edit.end
	}
	if result == nil {
		return e.body, e.report
	}
	return append(result, e.body[at:]...), e.report
}

// url makes the URL in pieces of the document absolute.
func (e *editor) url(pieces []piece, base *base) {
	e.text.decode(e.body, pieces)
	url := trimmed(e.text.decoded, span{0, len(e.text.decoded)})
	e.reference(url, base)
}

// reference makes a URL in the decoded text absolute. If that has an entity that is not known
// here, the entity may be all that makes the URL absolute.
func (e *editor) reference(url span, base *base) {
	if prefix, drop, ok := base.resolve(string(e.text.decoded[url.start:url.end])); ok && !e.text.unknown {
		e.rewrite(url.start, prefix, drop)
	}
}

// html makes the URLs in pieces of the document that hold HTML absolute.
func (e *editor) html(pieces []piece, base *base) {
	e.text.decode(e.body, pieces)
	findURLs(e.text.decoded, func(tag string, url span) {
		reference := string(e.text.decoded[url.start:url.end])
		if isDrawing(tag, reference) {
			return
		}
		if prefix, drop, ok := base.resolveHTML(reference); ok {
			e.rewrite(url.start, xmlEscapes.Replace(prefix), drop)
		}
	})
}

// isDrawing reports whether a reference points to a part of a drawing within the same
// text. SVG is full of such references, which must not become URLs of other documents.
func isDrawing(tag, reference string) bool {
	return len(reference) > 0 && reference[0] == '#' && tag != "a" && tag != "area"
}

// rewrite plans the edit that makes the URL at an offset of the decoded text absolute.
func (e *editor) rewrite(offset int, prefix string, drop int) {
	if place, in, ok := e.text.find(offset, offset+drop); ok {
		e.replace(place, in.escape(prefix))
	}
}

// trimmed is a span without white space around it.
func trimmed(text []byte, s span) span {
	for s.start < s.end && isSpace(text[s.start]) {
		s.start++
	}
	for s.end > s.start && isSpace(text[s.end-1]) {
		s.end--
	}
	return s
}

func isSpace(c byte) bool { return bytes.IndexByte([]byte(" \t\r\n\f"), c) >= 0 }
