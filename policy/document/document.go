// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

// Package document reads feed documents: RSS 0.9x, 1.0 and 2.0, Atom 0.3 and
// 1.0, JSON Feed. It reports whether bytes are a feed, its hints, how often entries
// appear, and the feed's fingerprint.
//
// The bytes are first converted to UTF-8. An XML document is then read once, as tokens
// under fixed limits (both in package markup), by a reader that finds the
// children of channels, feeds and entries (xmlfeed.go, field.go) for the hints
// (hints.go), dates (rhythm.go) and the fingerprint (fingerprint.go). A JSON document is
// decoded into objects (jsonfeed.go). Only hashes, dates, hints and a short
// title (title.go) are kept: memory is proportional to the number of entries, time to
// the number of bytes, for hostile documents too.
//
// It does not look into the HTML of entries, does not expand the entities that a
// document declares, and does not fetch anything.
package document

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/feedpollard/pollard/internal/markup"
	"github.com/feedpollard/pollard/policy"
)

// The errors of [Read]. Their text is one line and says what the document is instead.
var (
	// ErrNotFeed: the document is something else, an HTML page for example.
	ErrNotFeed = errors.New("not a feed")
	// ErrBroken: the document starts as a feed and ends early or is beyond repair.
	ErrBroken = errors.New("broken feed")
	// ErrTooComplex: the document exceeds a limit that keeps reading it cheap.
	ErrTooComplex = markup.ErrTooComplex
)

// Read reads the body of a 200 response. The contentType is the value of that field, or
// empty. It only matters for the encoding, because there are feeds with text/html and HTML
// pages with application/rss+xml. Entries dated more than a day after now do not count
// for the rhythm.
func Read(body []byte, contentType string, now time.Time) (*policy.Document, error) {
	if kind := binaryType(body); kind != "" {
		return nil, fmt.Errorf("%w: data of type %s", ErrNotFeed, kind)
	}
	text := markup.UTF8(body, contentType)
	text = bytes.TrimSpace(text[markup.Begin(text):])
	switch {
	case len(text) == 0:
		return nil, fmt.Errorf("%w: an empty document", ErrNotFeed)
	case text[0] == '{' || text[0] == '[':
		return readJSON(text, now)
	default:
		return readXML(text, strings.ToLower(markup.Declared(body)), now)
	}
}
