// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mmcdole/gofeed"
)

const (
	large       = 512 << 10 // bytes of a document
	many        = 100       // entries
	parseLimit  = 10 * time.Second
	titleLength = 200 // characters
)

// Parsed is what a parser of many readers makes of the document.
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

// judgeDocument looks at what readers make of the document.
func (x *examination) judgeDocument(ctx context.Context) {
	if x.document.Lenient {
		x.find("not-well-formed", "Only a lenient parse accepts it; strict readers show an error, or lose entries.")
	}
	if n := len(x.first.Body); n > large || x.document.Rhythm.Entries > many {
		x.find("large", fmt.Sprintf("%s, %s.", size(n), plural(x.document.Rhythm.Entries, "entry", "entries")))
	}
	p := parse(ctx, x.first.Body)
	x.report.Readers = p
	if p.Error != "" {
		x.find("unparsable", p.Error)
		return
	}
	x.judgeEntries(p)
}

func (x *examination) judgeEntries(p *Parsed) {
	of := func(n int) string { return fmt.Sprintf("%d of %s.", n, plural(p.Entries, "entry", "entries")) }
	if p.Duplicate > 0 {
		x.find("duplicate-ids", of(p.Duplicate))
	}
	if p.NoID > 0 {
		x.find("no-ids", of(p.NoID))
	}
	if p.NoDate > 0 {
		x.find("no-dates", of(p.NoDate))
	}
	if p.NoLink > 0 {
		x.find("no-links", of(p.NoLink))
	}
	if p.Entries > 0 && p.Duplicate+p.NoID+p.NoDate+p.NoLink == 0 {
		x.good("Each of its %s has an ID of its own, a link and a date.", plural(p.Entries, "entry", "entries"))
	}
}

var errTooLong = errors.New("it takes too long")

// parse parses a document that was read within limits before. A parse that takes too
// long is left behind.
func parse(ctx context.Context, body []byte) *Parsed {
	ctx, cancel := context.WithTimeoutCause(ctx, parseLimit, errTooLong)
	defer cancel()
	parsed := make(chan *Parsed, 1)
	go func() {
		defer func() {
			if p := recover(); p != nil {
				parsed <- &Parsed{Error: fmt.Sprintf("it panics: %v", p)}
			}
		}()
		feed, err := gofeed.NewParser().Parse(bytes.NewReader(body))
		if err != nil {
			parsed <- &Parsed{Error: err.Error()}
			return
		}
		parsed <- count(feed)
	}()
	select {
	case p := <-parsed:
		return p
	case <-ctx.Done():
		return &Parsed{Error: context.Cause(ctx).Error()}
	}
}

func count(feed *gofeed.Feed) *Parsed {
	p := &Parsed{Title: feed.Title, Entries: len(feed.Items)}
	if title := []rune(p.Title); len(title) > titleLength {
		p.Title = string(title[:titleLength]) + "…"
	}
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
