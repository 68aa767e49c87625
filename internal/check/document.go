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
		x.find(Problem, "not-well-formed", "The document is not well-formed",
			"Only a lenient parse accepts it; strict readers show an error, or lose entries.",
			"Let a validator show the place (https://validator.w3.org/feed/). Often it is a bare & or <, or a wrong encoding.")
	}
	if n := len(x.first.Body); n > large || x.document.Rhythm.Entries > many {
		x.find(Advice, "large", "The feed is large",
			fmt.Sprintf("%s, %s.", size(n), plural(x.document.Rhythm.Entries, "entry", "entries")),
			"The newest 20 or 30 entries are enough for readers that poll once a day; older ones belong on the site, or in further pages (RFC 5005).")
	}
	p := parse(ctx, x.first.Body)
	x.report.Readers = p
	if p.Error != "" {
		x.find(Problem, "unparsable", "A parser that many readers use cannot read it", p.Error, "Let a validator show the place (https://validator.w3.org/feed/).")
		return
	}
	x.judgeEntries(p)
}

func (x *examination) judgeEntries(p *Parsed) {
	of := func(n int) string { return fmt.Sprintf("%d of %s.", n, plural(p.Entries, "entry", "entries")) }
	if p.Duplicate > 0 {
		x.find(Problem, "duplicate-ids", "Entries share an ID", of(p.Duplicate), "Give each entry a <guid> or <id> of its own: readers show one of them only.")
	}
	if p.NoID > 0 {
		x.find(Problem, "no-ids", "Entries have no ID", of(p.NoID), "Give each entry a <guid> or <id> that never changes: without one, an edited entry appears twice.")
	}
	if p.NoDate > 0 {
		x.find(Advice, "no-dates", "Entries have no date that can be read", of(p.NoDate), "Give each entry a <pubDate> (RFC 822) or <updated> (RFC 3339): readers take the time of the download instead.")
	}
	if p.NoLink > 0 {
		x.find(Advice, "no-links", "Entries have no link", of(p.NoLink), "Link each entry to its page.")
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
