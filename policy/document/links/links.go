// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

// Package links makes the document that a gateway serves in place of a publisher's.
//
// Readers resolve relative URLs against the URL that they got the feed from, which is
// the gateway's: [Served] makes them absolute, as most readers would at the publisher's. It also
// removes what would lead readers past the gateway: the feed's own address, and push services.
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
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/feedpollard/pollard/internal/markup"
)

// Report says what happened to the relative URLs of a document.
type Report struct {
	Rewritten int    // made absolute
	Own       bool   // some of them by the document's own URL
	Problem   string // why the URLs of the whole document were left; empty: they were not
}

// The problems of a whole document.
const (
	problemBase     = "the URL of the document is not a plain http or https URL"
	problemEncoding = "markup cannot be found byte by byte in its encoding"
	problemMarkup   = "it is too complex, or has too many values of xml:base"
	problemGrowth   = "absolute URLs would make it more than twice as large"
)

// Served returns the document that a gateway serves in place of body, which came from
// the URL own with this contentType. If the URL is secret, its path is written into no link.
//
// Relative URLs become absolute, unless it is uncertain what they refer to. In links, enclosures
// and icons, and in xml:base, they refer to xml:base or to the document's own URL; in the HTML of
// an entry to xml:base, otherwise to the entry's own address (address.go), otherwise to the
// channel's, otherwise to the document's. Of a secret URL only the host counts. Identifiers
// (id of Atom and JSON Feed, rdf:about) are never changed, and a guid only if it says that it is a
// permalink. References within a page, such as "#note", stay as they are.
//
// The following are removed from the feed (entries keep theirs). Hints have to be read
// from body, before:
//
//   - links with rel=self or rel=hub, or just these relations if there are others;
//   - itunes:new-feed-url, podcast:podping and RSS's cloud;
//   - feed_url and hubs of JSON Feed;
//   - links to the document's own URL, if that is secret.
//
// So is what stands around the root, such as a warning or a script, and an xml-stylesheet, which a browser
// would ask for at the gateway. Characters that XML forbids become spaces. Strict readers get such a
// document, which they could not read at the publisher's.
//
// The result is body itself if there is nothing to change, or the encoding cannot be read. Served of its own result changes nothing.
func Served(body []byte, contentType, own string, secret bool) ([]byte, Report) {
	if !markup.ASCIICompatible(body, contentType) {
		return body, Report{Problem: problemEncoding}
	}
	e := newEditor(body, own, secret)
	start := e.begin()
	complete := true
	switch {
	case start == len(body):
		return body, Report{}
	case body[start] == '{' && !utf8.Valid(body):
		return body, Report{Problem: problemEncoding} // a quote may be half of a character
	case body[start] == '{':
		complete = rewriteJSON(e, start)
	default:
		complete = rewriteXML(e, start)
	}
	if !complete {
		return body, Report{Problem: problemMarkup}
	}
	return e.apply()
}

// span is text[Start:End].
type span = markup.Span

// edit replaces body[start:end].
type edit struct {
	span
	base   *base // that a reference is relative to; nil: the edit is a removal
	prefix prefix
	in     syntax
	inHTML bool // the reference is in HTML that is text of the document
}

// editor collects edits of a document, in the order of the document.
type editor struct {
	body     []byte
	own      *base // the URL of the document; nil: it cannot be used
	query    bool  // which has a query
	secret   bool
	declared bool     // it has an XML declaration
	origin   *base    // what the document is relative to
	channel  address  // of the feed's site
	entry    *address // of the open entry; nil outside of entries
	edits    []edit
	text     text
	planned  int // bytes by which the edits make the document larger, roughly
}

// Documents may grow to twice their size and this, in bytes.
const spareGrowth = 64 << 10

// leastGrowth is what an edit counts before its base is known. No honest document has a relative URL
// in each nine bytes.
const leastGrowth = len("http://a/")

func newEditor(body []byte, own string, secret bool) *editor {
	e := &editor{body: body, own: parseBase(own), query: strings.Contains(own, "?")}
	if e.own != nil {
		e.own.relative = true
		e.secret = secret && e.own.path != e.own.origin+"/"
		e.own.noQuery = e.secret || !strings.HasSuffix(e.own.path, "/")
	}
	e.origin = e.own
	if e.secret {
		host := *e.own
		host.url = &url.URL{Scheme: host.url.Scheme, Host: host.url.Host, Path: "/"}
		host.path = host.origin + "/"
		e.origin = &host
	}
	e.channel.otherwise = e.origin
	return e
}

// begin returns where the document begins, behind its XML declaration. Text in front of that is
// removed, but for a byte order mark.
func (e *editor) begin() int {
	begin := markup.Begin(e.body)
	lead := e.body[:begin]
	if i := bytes.IndexByte(lead, '<'); i >= 0 {
		lead, e.declared = lead[:i], true
	}
	if rest := bytes.TrimPrefix(lead, []byte("\ufeff")); len(rest) > 0 {
		e.remove(span{Start: len(lead) - len(rest), End: len(lead)})
	}
	return begin
}

// replace plans to put a prefix of a base in the place of the start of a reference.
func (e *editor) replace(s span, edit edit) {
	if e.planned += leastGrowth; edit.base != nil && e.planned <= e.largest() {
		edit.span = s
		e.edits = append(e.edits, edit)
	}
}

// remove plans a removal.
func (e *editor) remove(s span) { e.edits = append(e.edits, edit{span: s}) }

// largest is by how much the document may grow.
func (e *editor) largest() int { return len(e.body) + spareGrowth }

// apply returns the edited document. If absolute URLs would make it too large, only the removals
// are made.
func (e *editor) apply() ([]byte, Report) {
	result, report, ok := e.edited()
	if !ok || e.planned > e.largest() {
		e.edits = slices.DeleteFunc(e.edits, func(edit edit) bool { return edit.base != nil })
		result, _, _ = e.edited()
		return result, Report{Problem: problemGrowth}
	}
	if e.own == nil {
		report.Problem = problemBase
	}
	return result, report
}

// edited makes the edits. It is not ok if the document becomes too large.
func (e *editor) edited() (result []byte, report Report, ok bool) {
	result, at, grown := e.body, 0, 0
	for _, edit := range e.edits {
		base, text := edit.base.known(), ""
		if edit.base != nil {
			if base == nil || !base.takes(edit.prefix) {
				continue
			}
			report.Rewritten++
			report.Own = report.Own || base.relative || edit.prefix == onlyScheme
			text = e.written(base, edit)
		}
		if grown += len(text); grown > e.largest() {
			return nil, Report{}, false
		}
		if at == 0 {
			result = make([]byte, 0, len(e.body)+min(len(e.edits)*64, e.largest()))
		}
		result = append(append(result, e.body[at:edit.Start]...), text...)
		at = edit.End
	}
	if at == 0 {
		return e.body, report, true
	}
	return append(result, e.body[at:]...), report, true
}

// written returns the text of an edit.
func (e *editor) written(b *base, edit edit) string {
	text := b.before(edit.prefix)
	if edit.prefix == onlyScheme && e.own != nil {
		text = e.own.scheme
	}
	if edit.inHTML {
		text = xmlEscapes.Replace(text)
	}
	return edit.in.escape(text)
}

// url makes the URL in pieces of the document absolute.
func (e *editor) url(pieces []piece, base *base) {
	e.text.decode(e.body, pieces)
	url := trimmed(e.text.decoded, span{Start: 0, End: len(e.text.decoded)})
	e.reference(url, base)
}

// reference makes a URL in the decoded text absolute. If that has an entity that is not known
// here, the entity may be all that makes the URL absolute.
func (e *editor) reference(url span, base *base) {
	if prefix, drop, ok := base.resolve(string(e.text.decoded[url.Start:url.End])); ok && !e.text.unknown {
		e.rewrite(url.Start, drop, edit{base: base, prefix: prefix})
	}
}

// html makes the URLs in pieces of the document that hold HTML absolute.
func (e *editor) html(pieces []piece, base *base) {
	e.text.decode(e.body, pieces)
	findURLs(e.text.decoded, func(url span) {
		if prefix, drop, ok := base.resolveHTML(string(e.text.decoded[url.Start:url.End])); ok {
			e.rewrite(url.Start, drop, edit{base: base, prefix: prefix, inHTML: true})
		}
	})
}

// rewrite plans the edit of the URL at an offset of the decoded text.
func (e *editor) rewrite(offset, drop int, edit edit) {
	if place, in, ok := e.text.find(offset, offset+drop); ok {
		edit.in = in
		e.replace(place, edit)
	}
}

// trimmed is a span without white space around it.
func trimmed(text []byte, s span) span {
	for s.Start < s.End && markup.IsHTMLSpace(text[s.Start]) {
		s.Start++
	}
	for s.End > s.Start && markup.IsHTMLSpace(text[s.End-1]) {
		s.End--
	}
	return s
}
