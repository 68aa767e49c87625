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
func (f Format) ContentType() string {
	return [...]string{"application/rss+xml", "application/atom+xml", "application/feed+json"}[f]
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

const namespaces = ` xmlns:atom="http://www.w3.org/2005/Atom" xmlns:content="http://purl.org/rss/1.0/modules/content/"` +
	` xmlns:itunes="http://www.itunes.com/dtds/podcast-1.0.dtd" xmlns:podcast="https://podcastindex.org/namespace/1.0"` +
	` xmlns:sy="http://purl.org/rss/1.0/modules/syndication/"`

// String is the document.
func (d Document) String() string {
	d.Title, d.Home = cmp.Or(d.Title, "Test"), cmp.Or(d.Home, "https://origin.test")
	d.Text = cmp.Or(d.Text, strings.TrimSpace(strings.Repeat("some words ", 20)))
	switch d.Format {
	case Atom:
		return d.atom()
	case JSONFeed:
		return d.json()
	}
	return d.rss()
}

func (d Document) rss() string {
	var b strings.Builder
	fmt.Fprintf(&b, `<?xml version="1.0"?><rss version="2.0"%s><channel><title>%s</title><link>%s/</link>`, namespaces, html.EscapeString(d.Title), d.Home)
	if d.Volatile != "" {
		fmt.Fprintf(&b, "<lastBuildDate>%s</lastBuildDate>", html.EscapeString(d.Volatile))
	}
	b.WriteString(d.Extra)
	for i := d.Entries; i > 0; i-- {
		fmt.Fprintf(&b, "<item><title>Entry %d</title><link>%s/%d</link><guid>%s/%d</guid>", i, d.Home, i, d.Home, i)
		if at := d.date(i); !at.IsZero() {
			fmt.Fprintf(&b, "<pubDate>%s</pubDate>", at.Format(time.RFC1123Z))
		}
		fmt.Fprintf(&b, "<description>%s</description></item>", html.EscapeString(d.Text))
	}
	b.WriteString("</channel></rss>")
	return b.String()
}

func (d Document) atom() string {
	var b strings.Builder
	fmt.Fprintf(&b, `<?xml version="1.0"?><feed xmlns="http://www.w3.org/2005/Atom"%s><title>%s</title><link href="%s/"/><id>%s/</id>`, namespaces, html.EscapeString(d.Title), d.Home, d.Home)
	if d.Volatile != "" {
		fmt.Fprintf(&b, "<updated>%s</updated>", html.EscapeString(d.Volatile))
	}
	b.WriteString(d.Extra)
	for i := d.Entries; i > 0; i-- {
		fmt.Fprintf(&b, `<entry><title>Entry %d</title><link href="%s/%d"/><id>%s/%d</id>`, i, d.Home, i, d.Home, i)
		if at := d.date(i); !at.IsZero() {
			fmt.Fprintf(&b, "<updated>%s</updated>", at.Format(time.RFC3339))
		}
		fmt.Fprintf(&b, `<summary>%s</summary></entry>`, html.EscapeString(d.Text))
	}
	b.WriteString("</feed>")
	return b.String()
}

func (d Document) json() string {
	var b strings.Builder
	fmt.Fprintf(&b, `{"version":"https://jsonfeed.org/version/1.1","title":%s,"home_page_url":"%s/",`, quoted(d.Title), d.Home)
	if d.Volatile != "" {
		fmt.Fprintf(&b, `"_build":%s,`, quoted(d.Volatile))
	}
	if d.Extra != "" {
		b.WriteString(d.Extra + ",")
	}
	b.WriteString(`"items":[`)
	for i := d.Entries; i > 0; i-- {
		fmt.Fprintf(&b, `{"id":"%s/%d","url":"%s/%d","title":"Entry %d",`, d.Home, i, d.Home, i, i)
		if at := d.date(i); !at.IsZero() {
			fmt.Fprintf(&b, `"date_published":"%s",`, at.Format(time.RFC3339))
		}
		fmt.Fprintf(&b, `"content_text":%s}`, quoted(d.Text))
		if i > 1 {
			b.WriteByte(',')
		}
	}
	b.WriteString("]}")
	return b.String()
}

// date is the time of entry i.
func (d Document) date(i int) time.Time {
	if d.Newest.IsZero() {
		return time.Time{}
	}
	return d.Newest.AddDate(0, 0, i-d.Entries)
}

func quoted(text string) string {
	b, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return string(b)
}
