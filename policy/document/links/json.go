// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package links

import (
	"bytes"
	"slices"
)

// jsonVisitor is told what a JSON document holds.
type jsonVisitor interface {
	// text is called for each string that is a value. The path has the names of the
	// members that lead to it, and "" for each array.
	text(path []string, value piece)
	// member is called for each member of the document's own object, behind its value.
	member(name string, key, value span)
}

// jsonScanner scans a JSON document. It takes for granted that it is one: of anything
// else it reads what it can.
type jsonScanner struct {
	body    []byte
	at      int
	path    []string
	visitor jsonVisitor
}

// scanJSON scans a document from start on. It reports whether that has come to its end.
func scanJSON(body []byte, start int, v jsonVisitor) bool {
	s := &jsonScanner{body: body, at: start, visitor: v}
	return s.value()
}

// value reads a value. It reports whether the document goes on.
func (s *jsonScanner) value() bool {
	switch s.next() {
	case '{':
		return s.each('}', s.readMember)
	case '[':
		s.path = append(s.path, "")
		ok := s.each(']', s.value)
		s.path = s.path[:len(s.path)-1]
		return ok
	case '"':
		text, ok := s.text()
		if ok {
			s.visitor.text(s.path, piece{text.start, text.end, jsonString})
		}
		return ok
	}
	start := s.at
	for s.at < len(s.body) && !isSpace(s.body[s.at]) && bytes.IndexByte([]byte(`,]}`), s.body[s.at]) < 0 {
		s.at++
	}
	return s.at > start
}

// each reads what is between brackets and separated by commas.
func (s *jsonScanner) each(end byte, read func() bool) bool {
	s.at++
	if len(s.path) > maxDepth {
		return false
	}
	for s.next() != end {
		if !read() {
			return false
		}
		switch s.next() {
		case ',':
			s.at++
		case end:
		default:
			return false
		}
	}
	s.at++
	return true
}

func (s *jsonScanner) readMember() bool {
	if s.next() != '"' {
		return false
	}
	key, ok := s.text()
	if !ok || s.next() != ':' {
		return false
	}
	s.at++
	s.next()
	name, start := string(decode(nil, s.body, []piece{{key.start, key.end, jsonString}})), s.at
	s.path = append(s.path, name)
	ok = s.value()
	s.path = s.path[:len(s.path)-1]
	if ok && len(s.path) == 0 {
		s.visitor.member(name, span{key.start - 1, key.end + 1}, span{start, s.at})
	}
	return ok
}

// text reads a string and returns what is between its quotes.
func (s *jsonScanner) text() (inside span, ok bool) {
	s.at++
	inside.start = s.at
	for s.at < len(s.body) {
		switch s.body[s.at] {
		case '"':
			inside.end = s.at
			s.at++
			return inside, true
		case '\\':
			s.at++
		}
		s.at++
	}
	return inside, false
}

// next skips white space and returns the byte behind it; 0 at the end.
func (s *jsonScanner) next() byte {
	for s.at < len(s.body) && isSpace(s.body[s.at]) {
		s.at++
	}
	if s.at >= len(s.body) {
		return 0
	}
	return s.body[s.at]
}

// jsonAbsoluter makes the URLs in a JSON Feed absolute.
type jsonAbsoluter struct {
	*absoluter
	base *base
}

func (a *jsonAbsoluter) member(string, span, span) {}

func (a *jsonAbsoluter) text(path []string, value piece) {
	switch {
	case value.end == value.start:
	case isItem(path) && len(path) == 3 && path[2] == "content_html":
		a.html([]piece{value}, a.base)
	case isJSONURL(path):
		a.url([]piece{value}, a.base)
	}
}

// isItem reports whether a path leads into an item.
func isItem(path []string) bool { return len(path) > 2 && path[0] == "items" && path[1] == "" }

// isJSONURL reports whether a string is a URL (jsonfeed.org/version/1.1).
func isJSONURL(path []string) bool {
	names := []string{"home_page_url", "feed_url", "next_url", "icon", "favicon"}
	if isItem(path) {
		path = path[2:]
		names = []string{"url", "external_url", "image", "banner_image"}
		if slices.Equal(path, []string{"attachments", "", "url"}) {
			return true
		}
	}
	switch last := path[max(len(path)-1, 0):]; {
	case len(path) == 1:
		return slices.Contains(names, path[0])
	case len(path) == 2 && path[0] == "author", len(path) == 3 && path[0] == "authors" && path[1] == "":
		return last[0] == "url" || last[0] == "avatar"
	}
	return false
}
