// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package links

import (
	"bytes"
	"strings"

	"github.com/feedpollard/pollard/policy/document/internal/namespace"
)

// task is what is done with the text of an element.
type task byte

const (
	noTask   task = iota
	urlTask       // it is a URL
	guidTask      // it is a guid that claims to be a URL
	htmlTask      // it is HTML
	selfTask      // it is the address of the feed itself: see [Marks]
	hubTask       // the element is left out: see [Marks]
)

// absoluter makes URLs absolute.
type absoluter struct {
	*editor
	decoded []byte // reused
}

// open rewrites the URLs among the attributes of an element.
func (a *absoluter) open(e *element, attributes []attribute) {
	if e.space == namespace.RDF {
		return // identifiers
	}
	for _, at := range attributes {
		value := []piece{{at.value.start, at.value.end, xmlText}}
		switch {
		case at.prefix == "xml" && at.local == "base":
			a.url(value, e.around)
		case at.prefix != "":
		case e.space == namespace.XHTML || e.html:
			a.htmlAttribute(e, strings.ToLower(at.local), value)
		case isURL(e, at.local):
			a.url(value, e.base)
		}
	}
	e.task = a.taskOf(e, attributes)
}

func (a *absoluter) interrupt(e *element) {
	if e.task == htmlTask {
		a.html(e.texts, e.base)
	} else {
		e.task = noTask // a URL has no elements in it
	}
}

func (a *absoluter) close(e *element, end, after int) {
	switch e.task {
	case htmlTask:
		a.html(e.texts, e.base)
	case guidTask:
		if text := decode(nil, a.body, e.texts); bytes.IndexByte(text, '/') >= 0 && !a.spaced(e.texts) {
			a.url(e.texts, e.base)
		}
	case urlTask:
		if !a.spaced(e.texts) {
			a.url(e.texts, e.base)
		}
	}
}

// isURL reports whether an attribute outside of HTML is a URL, by its name. Atom's
// links, enclosures, Media RSS and podcasts all use the same few.
func isURL(e *element, name string) bool {
	switch name {
	case "href", "src", "url":
		return true
	}
	return name == "uri" && e.space == namespace.Atom && e.local == "generator"
}

// taskOf says what the text of an element is.
func (a *absoluter) taskOf(e *element, attributes []attribute) task {
	ofFeed := e.level == inFeed || e.level == inEntry
	switch {
	case e.html:
	case e.space == namespace.RSS && ofFeed:
		switch e.local {
		case "link", "comments":
			return urlTask
		case "description":
			return htmlTask
		case "guid":
			if strings.EqualFold(a.value(attributes, "isPermaLink"), "true") {
				return guidTask
			}
		}
	case e.space == namespace.RSS && (e.parent == "image" || e.parent == "textinput"):
		if e.local == "link" || e.local == "url" {
			return urlTask
		}
	case e.space == namespace.Atom:
		switch e.local {
		case "icon", "logo", "uri":
			return urlTask
		case "url": // Atom 0.3's name of uri
			if e.parent == "author" || e.parent == "contributor" {
				return urlTask
			}
		case "title", "subtitle", "tagline", "summary", "content", "rights", "copyright", "info":
			// Atom 0.3 has media types and a mode where 1.0 has three types.
			kind := strings.ToLower(a.value(attributes, "type"))
			if kind == "html" || kind == "text/html" || a.value(attributes, "mode") == "escaped" {
				return htmlTask
			}
		}
	case e.space == namespace.Content && e.local == "encoded",
		e.space == namespace.ITunes && e.local == "summary",
		e.space == namespace.Media && (e.local == "description" || e.local == "text"):
		return htmlTask
	}
	return noTask
}

// value is the value of an attribute without prefix, white space around it left out.
func (a *absoluter) value(attributes []attribute, name string) string {
	for _, at := range attributes {
		if at.prefix == "" && at.local == name {
			return string(bytes.TrimSpace(a.body[at.value.start:at.value.end]))
		}
	}
	return ""
}

// spaced reports whether a text is no URL but several words, and counts it as left.
func (a *absoluter) spaced(texts []piece) bool {
	a.decoded = decode(a.decoded[:0], a.body, texts)
	if len(bytes.Fields(a.decoded)) < 2 {
		return false
	}
	if !hasScheme(string(bytes.TrimSpace(a.decoded))) {
		a.report.Left++
	}
	return true
}

func (a *absoluter) url(text []piece, base *base) {
	a.decoded = decode(a.decoded[:0], a.body, text)
	url := trimmed(a.decoded, span{0, len(a.decoded)})
	prefix, drop, kind := base.resolve(string(a.decoded[url.start:url.end]))
	a.settle(newLocator(a.body, text), url.start, prefix, drop, kind)
}

// htmlAttribute makes the URLs in an attribute of XHTML absolute.
func (a *absoluter) htmlAttribute(e *element, name string, text []piece) {
	a.decoded = decode(a.decoded[:0], a.body, text)
	whole := span{0, len(a.decoded)}
	var urls []span
	switch {
	case e.local == "base":
	case name == "srcset" || name == "imagesrcset":
		urls = appendCandidates(nil, a.decoded, whole)
	case isURLAttribute(name, e.local):
		urls = append(urls, trimmed(a.decoded, whole))
	}
	l := newLocator(a.body, text)
	for _, url := range urls {
		reference := string(a.decoded[url.start:url.end])
		if isDrawing(e.local, reference) {
			continue
		}
		prefix, drop, kind := e.base.resolve(reference)
		a.settle(l, url.start, prefix, drop, kind)
	}
}

// html makes the URLs in a text that is HTML absolute.
func (a *absoluter) html(text []piece, base *base) {
	a.decoded = decode(a.decoded[:0], a.body, text)
	l := newLocator(a.body, text)
	scanHTML(a.decoded, func(tag string, url span) {
		reference := string(a.decoded[url.start:url.end])
		if isDrawing(tag, reference) {
			return
		}
		prefix, drop, kind := base.resolveHTML(reference)
		a.settle(l, url.start, xmlEscapes.Replace(prefix), drop, kind)
	})
}

// isDrawing reports whether a reference points to a part of a drawing within the same
// text: SVG is full of such, and none may become a reference to elsewhere.
func isDrawing(tag, reference string) bool {
	return strings.HasPrefix(reference, "#") && tag != "a" && tag != "area"
}

// settle plans the edit that makes a URL absolute, where it is relative.
func (a *absoluter) settle(l *locator, offset int, prefix string, drop int, kind kind) {
	switch kind {
	case absolute:
		return
	case relative:
		start, within, ok := l.find(offset)
		end, in, okEnd := l.find(offset + drop)
		if drop == 0 {
			end, in = start, within
		}
		if ok && okEnd && in == within {
			a.replace(start, end, in.in.escape(prefix))
			return
		}
	}
	a.report.Left++
}
