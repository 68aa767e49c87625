// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"bytes"
	"fmt"

	"github.com/mmcdole/gofeed"

	"github.com/feedpollard/pollard/internal/feedurl"
)

const (
	large       = 512 << 10 // bytes of a document
	many        = 100       // entries
	titleLength = 200       // characters
)

// Parsed is the document as a parser of many readers reads it.
type Parsed struct {
	Title     string `json:"title,omitempty"`
	Entries   int    `json:"entries"`
	NoID      int    `json:"without_id"`    // entries
	NoLink    int    `json:"without_link"`  // entries
	NoDate    int    `json:"without_date"`  // entries with neither a time of publishing nor of a change
	NoTitle   int    `json:"without_title"` // entries
	Duplicate int    `json:"duplicate_ids"` // entries that have the ID of another
	Error     string `json:"error,omitempty"`
}

// checkDocument judges the document, and how readers parse it.
func (x *checker) checkDocument() {
	if x.document.Lenient {
		x.find("not-well-formed", "Only a lenient parse accepts it; strict readers show an error, or lose entries.")
	}
	if n := len(x.first.Body); n > large || x.document.Rhythm.Entries > many {
		x.find("large", fmt.Sprintf("%s, %s.", size(n), plural(x.document.Rhythm.Entries, "entry", "entries")))
	}
	p := parse(x.first.Body)
	x.report.Readers = p
	if p.Error != "" {
		x.find("unparsable", p.Error)
		return
	}
	for _, problem := range []struct {
		id string
		n  int
	}{{"duplicate-ids", p.Duplicate}, {"no-ids", p.NoID}, {"no-dates", p.NoDate}, {"no-links", p.NoLink}} {
		if problem.n > 0 {
			x.find(problem.id, fmt.Sprintf("%d of %s.", problem.n, plural(p.Entries, "entry", "entries")))
		}
	}
	if p.Entries > 0 && p.Duplicate+p.NoID+p.NoDate+p.NoLink == 0 {
		x.good("Each of its %s has an ID of its own, a link and a date.", plural(p.Entries, "entry", "entries"))
	}
}

// parse parses a document that package document has read within limits.
func parse(body []byte) (p *Parsed) {
	defer func() {
		if panicked := recover(); panicked != nil {
			p = &Parsed{Error: fmt.Sprintf("it panics: %v", panicked)}
		}
	}()
	feed, err := gofeed.NewParser().Parse(bytes.NewReader(body))
	if err != nil {
		return &Parsed{Error: err.Error()}
	}
	p = &Parsed{Title: feedurl.Short(feed.Title, titleLength), Entries: len(feed.Items)}
	known := map[string]bool{}
	for _, item := range feed.Items {
		switch {
		case item.GUID == "":
			p.NoID++
		case known[item.GUID]:
			p.Duplicate++
		}
		known[item.GUID] = true
		if item.Link == "" && len(item.Enclosures) == 0 {
			p.NoLink++
		}
		if item.PublishedParsed == nil && item.UpdatedParsed == nil {
			p.NoDate++
		}
		if item.Title == "" {
			p.NoTitle++
		}
	}
	return p
}
