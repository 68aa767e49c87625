// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package links

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/feedpollard/pollard/internal/markup"
)

// jsonRewriter edits a JSON Feed.
type jsonRewriter struct {
	*editor
	decoder *json.Decoder
	start   int      // of the document in the body
	path    []string // names of the members that lead to a value, and "" for each array

	kept    int  // where the last member ends that stays; 0: no member was read
	removed span // members in a row that are to be removed
	ownLink bool // the last string is a link to the document's own secret URL
}

// rewriteJSON edits a document that begins at start. It reports whether it read the
// document to its end.
func rewriteJSON(e *editor, start int) bool {
	j := &jsonRewriter{editor: e, decoder: json.NewDecoder(bytes.NewReader(e.body[start:])), start: start}
	j.decoder.UseNumber() // large ones are errors as a float64
	if err := j.value(); err != nil {
		return false
	}
	end := start + int(j.decoder.InputOffset())
	if j.removed != (span{}) {
		if j.kept > 0 {
			j.removed.Start = j.kept // with the comma before the last members
		}
		j.remove(j.removed)
	}
	if len(bytes.Trim(e.body[end:], markup.Space)) > 0 {
		j.remove(span{Start: end, End: len(e.body)})
	}
	return true
}

// next returns the next token and where it stands in the body.
func (j *jsonRewriter) next() (token json.Token, at span, err error) {
	at.Start = j.start + int(j.decoder.InputOffset())
	if token, err = j.decoder.Token(); err != nil {
		return nil, span{}, err
	}
	at.End = j.start + int(j.decoder.InputOffset())
	for bytes.IndexByte([]byte(markup.Space+",:"), j.body[at.Start]) >= 0 {
		at.Start++
	}
	return token, at, nil
}

// value reads a value.
func (j *jsonRewriter) value() error {
	token, at, err := j.next()
	switch {
	case err != nil:
		return err
	case token == json.Delim('{'):
		if len(j.path) == 2 && isItem(append(j.path, "")) {
			j.entry = &address{base: base{otherwise: &j.channel.base}}
			defer func() { j.entry = nil }()
		}
		return j.each(j.member)
	case token == json.Delim('['):
		j.path = append(j.path, "")
		err = j.each(j.value)
		j.path = j.path[:len(j.path)-1]
		return err
	}
	if _, isText := token.(string); isText {
		j.string(piece{span{Start: at.Start + 1, End: at.End - 1}, jsonString})
	}
	return nil
}

// each reads what an object or array holds.
func (j *jsonRewriter) each(read func() error) error {
	if len(j.path) > markup.MaxDepth {
		return markup.ErrTooComplex
	}
	for j.decoder.More() {
		if err := read(); err != nil {
			return err
		}
	}
	_, _, err := j.next()
	return err
}

// member reads a member of an object. Members of the document's own object may be
// removed: those in a row together, with the comma before the next one.
func (j *jsonRewriter) member() error {
	token, key, err := j.next()
	if err != nil {
		return err
	}
	name, _ := token.(string)
	top, before := len(j.path) == 0, len(j.edits)
	j.path, j.ownLink = append(j.path, name), false
	err = j.value()
	j.path = j.path[:len(j.path)-1]
	switch {
	case !top:
		return err
	case name == "hubs" || name == "feed_url" || j.ownLink:
		j.edits = j.edits[:before] // what is removed needs no edits
		if j.removed == (span{}) {
			j.removed.Start = key.Start
		}
		j.removed.End = j.start + int(j.decoder.InputOffset())
		return err
	case j.removed != (span{}):
		j.edits = slices.Insert(j.edits, before, edit{span: span{Start: j.removed.Start, End: key.Start}})
		j.removed = span{}
	}
	j.kept = j.start + int(j.decoder.InputOffset())
	return err
}

// string makes the URLs in a string absolute.
func (j *jsonRewriter) string(value piece) {
	if value.End == value.Start {
		return
	}
	name := j.path[len(j.path)-1]
	switch inItem := isItem(j.path) && len(j.path) == 3; {
	case inItem && name == "content_html":
		j.html([]piece{value}, j.htmlBase(j.origin))
	case isURLName(j.path):
		j.url([]piece{value}, j.origin)
		reference := strings.Trim(string(j.text.decoded), markup.Space)
		switch {
		case inItem && name == "url":
			j.entry.found(byLink, reference, j.origin, j.own)
		case len(j.path) == 1:
			j.ownLink = j.isOwn(reference, j.origin)
			if name == "home_page_url" && !j.ownLink {
				j.channel.found(byLink, reference, j.origin, j.own)
			}
		}
	}
}

// isItem reports whether a path leads into an item.
func isItem(path []string) bool { return len(path) > 2 && path[0] == "items" && path[1] == "" }

// isURLName reports whether a string is a URL (jsonfeed.org/version/1.1).
func isURLName(path []string) bool {
	names := feedURLs
	if isItem(path) {
		path, names = path[2:], itemURLs
	}
	is := func(name []string) bool { return slices.Equal(name, path) }
	return slices.ContainsFunc(names, is) || slices.ContainsFunc(authorURLs, is)
}

var (
	feedURLs   = [][]string{{"home_page_url"}, {"next_url"}, {"icon"}, {"favicon"}}
	itemURLs   = [][]string{{"url"}, {"external_url"}, {"image"}, {"banner_image"}, {"attachments", "", "url"}}
	authorURLs = [][]string{{"author", "url"}, {"author", "avatar"}, {"authors", "", "url"}, {"authors", "", "avatar"}}
)
