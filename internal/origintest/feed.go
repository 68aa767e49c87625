// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package origintest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"html"
	"strings"
	"time"
)

// Format is a format of feeds.
type Format int

const (
	RSS      Format = iota // RSS 2.0
	Atom                   // Atom 1.0
	JSONFeed               // JSON Feed 1.1
)

// ContentType is the media type of the format.
func (f Format) ContentType() string { return formats[f].mediaType }

const namespaces = ` xmlns:atom="http://www.w3.org/2005/Atom" xmlns:content="http://purl.org/rss/1.0/modules/content/"` +
	` xmlns:itunes="http://www.itunes.com/dtds/podcast-1.0.dtd" xmlns:podcast="https://podcastindex.org/namespace/1.0"` +
	` xmlns:sy="http://purl.org/rss/1.0/modules/syndication/"`

// formats are the parts of a document, in their order.
var formats = [...]struct {
	mediaType                                                     string
	head, volatile, extra, begin, entry, date, text, between, end string
	layout                                                        string // of dates
	escape                                                        func(string) string
}{
	RSS: {
		mediaType: "application/rss+xml", layout: time.RFC1123Z, escape: html.EscapeString,
		head:     `<?xml version="1.0"?><rss version="2.0"` + namespaces + `><channel><title>%s</title><link>%s/</link>`,
		volatile: `<lastBuildDate>%s</lastBuildDate>`,
		extra:    `%s`,
		entry:    `<item><title>Entry %[2]d</title><link>%[1]s/%[2]d</link><guid>%[1]s/%[2]d</guid>`,
		date:     `<pubDate>%s</pubDate>`,
		text:     `<description>%s</description></item>`,
		end:      `</channel></rss>`,
	},
	Atom: {
		mediaType: "application/atom+xml", layout: time.RFC3339, escape: html.EscapeString,
		head:     `<?xml version="1.0"?><feed xmlns="http://www.w3.org/2005/Atom"` + namespaces + `><title>%s</title><link href="%s/"/><id>%[2]s/</id>`,
		volatile: `<updated>%s</updated>`,
		extra:    `%s`,
		entry:    `<entry><title>Entry %[2]d</title><link href="%[1]s/%[2]d"/><id>%[1]s/%[2]d</id>`,
		date:     `<updated>%s</updated>`,
		text:     `<summary>%s</summary></entry>`,
		end:      `</feed>`,
	},
	JSONFeed: {
		mediaType: "application/feed+json", layout: time.RFC3339, escape: quoted,
		head:     `{"version":"https://jsonfeed.org/version/1.1","title":%s,"home_page_url":"%s/",`,
		volatile: `"_build":%s,`,
		extra:    `%s,`,
		begin:    `"items":[`,
		entry:    `{"id":"%[1]s/%[2]d","url":"%[1]s/%[2]d","title":"Entry %[2]d",`,
		date:     `"date_published":"%s",`,
		text:     `"content_text":%s}`,
		between:  `,`,
		end:      `]}`,
	},
}

// Feed is an RSS feed with n entries, the newest first. volatile is its lastBuildDate:
// it changes the document, but not what the document says.
func Feed(n int, volatile string) string { return Document{Entries: n, Volatile: volatile}.String() }

// Document is a feed to be written. Entry i of n, counted from 1, has the title
// "Entry i" and an ID and link that end in "/i".
type Document struct {
	Format   Format
	Title    string // empty: "Test"
	Home     string // URL of the site, without a slash at the end; empty: "https://origin.test"
	Entries  int
	Volatile string // a part that changes for nothing: lastBuildDate of RSS, updated of Atom, _build of JSON Feed

	// Newest is the time of the last entry; each entry before it is a day older. Zero:
	// entries have no dates.
	Newest time.Time

	// Extra is put in front of the entries, in the syntax of the format. The prefixes
	// atom, content, itunes, podcast and sy are declared in RSS and Atom.
	Extra string

	// Text is the text of each entry; empty: some hundred bytes.
	Text string
}

// String is the document.
func (d Document) String() string {
	f := formats[d.Format]
	d.Home, d.Text = cmp.Or(d.Home, "https://origin.test"), cmp.Or(d.Text, strings.TrimSpace(strings.Repeat("some words ", 20)))
	var b strings.Builder
	fmt.Fprintf(&b, f.head, f.escape(cmp.Or(d.Title, "Test")), d.Home)
	if d.Volatile != "" {
		fmt.Fprintf(&b, f.volatile, f.escape(d.Volatile))
	}
	if d.Extra != "" {
		fmt.Fprintf(&b, f.extra, d.Extra)
	}
	b.WriteString(f.begin)
	for i := d.Entries; i > 0; i-- {
		fmt.Fprintf(&b, f.entry, d.Home, i)
		if !d.Newest.IsZero() {
			fmt.Fprintf(&b, f.date, d.Newest.AddDate(0, 0, i-d.Entries).Format(f.layout))
		}
		fmt.Fprintf(&b, f.text, f.escape(d.Text))
		if i > 1 {
			b.WriteString(f.between)
		}
	}
	b.WriteString(f.end)
	return b.String()
}

func quoted(text string) string {
	b, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return string(b)
}
