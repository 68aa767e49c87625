// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

// Package document reads feed documents: RSS 0.9x, 1.0 and 2.0, Atom 0.3 and
// 1.0, JSON Feed. It says whether bytes are a feed, which hints they hold, how
// often entries appear, and what the feed means (its fingerprint).
//
// Bytes become UTF-8 first (encoding.go). An XML document is then read once, as
// a stream of tokens under fixed limits (scan.go), by a reader that knows where
// channels, feeds and entries stand (xmlfeed.go) and hands their children
// (field.go) to those who want them: hints (hints.go), dates (date.go,
// rhythm.go) and the fingerprint (fingerprint.go). A JSON document is streamed
// likewise (jsonfeed.go). Nothing is kept but hashes, dates, hints and the feed's own
// title, cut to a line (title.go), so that a document costs memory in proportion to its entries and time in
// proportion to its bytes, whoever wrote it.
//
// It keeps no text of entries, does not look into their HTML, expands no entity of a
// document's own and fetches nothing.
package document

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"github.com/feedpollard/pollard/policy"
	"github.com/feedpollard/pollard/policy/document/internal/markup"
)

// The kinds of document that [Read] refuses. An error's text is one line and
// says what the document is instead.
var (
	// ErrNotFeed: the document is something else, an HTML page for example.
	ErrNotFeed = errors.New("not a feed")
	// ErrBroken: the document starts as a feed and ends early or is beyond repair.
	ErrBroken = errors.New("broken feed")
	// ErrTooComplex: the document exceeds a limit that keeps reading it cheap.
	ErrTooComplex = markup.ErrTooComplex
)

// Read reads the body of an origin's 200 answer. The contentType is the value of
// that field, or empty; it only helps with the encoding, because feeds come as
// text/html and HTML pages as application/rss+xml. Entries dated more than a
// day after now do not count in the rhythm.
func Read(body []byte, contentType string, now time.Time) (*policy.Document, error) {
	if kind := binaryType(body); kind != "" {
		return nil, fmt.Errorf("%w: data of type %s", ErrNotFeed, kind)
	}
	text := bytes.TrimSpace(toUTF8(body, contentType))
	switch {
	case len(text) == 0:
		return nil, fmt.Errorf("%w: an empty document", ErrNotFeed)
	case text[0] == '{' || text[0] == '[':
		return readJSON(text, now)
	default:
		return readXML(text, declared(body), now)
	}
}
