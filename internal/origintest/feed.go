// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package origintest

import (
	"cmp"
	"encoding/json"
	"strings"
	"text/template"
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

var formats = [...]struct {
	mediaType, layout string // layout is that of dates
	template          *template.Template
}{
	RSS: {"application/rss+xml", time.RFC1123Z, parsed(`<?xml version="1.0"?><rss version="2.0"` + namespaces + `><channel><title>{{html .Title}}</title>` +
		`<link>{{.Home}}/</link>{{with .Volatile}}<lastBuildDate>{{html .}}</lastBuildDate>{{end}}{{.Extra}}` +
		`{{range .List}}<item><title>Entry {{.Number}}</title><link>{{$.Home}}/{{.Number}}</link><guid>{{$.Home}}/{{.Number}}</guid>` +
		`{{with .Date}}<pubDate>{{.}}</pubDate>{{end}}<description>{{html $.Text}}</description></item>{{end}}</channel></rss>`)},
	Atom: {"application/atom+xml", time.RFC3339, parsed(`<?xml version="1.0"?><feed xmlns="http://www.w3.org/2005/Atom"` + namespaces + `><title>{{html .Title}}</title>` +
		`<link href="{{.Home}}/"/><id>{{.Home}}/</id>{{with .Volatile}}<updated>{{html .}}</updated>{{end}}{{.Extra}}` +
		`{{range .List}}<entry><title>Entry {{.Number}}</title><link href="{{$.Home}}/{{.Number}}"/><id>{{$.Home}}/{{.Number}}</id>` +
		`{{with .Date}}<updated>{{.}}</updated>{{end}}<summary>{{html $.Text}}</summary></entry>{{end}}</feed>`)},
	JSONFeed: {"application/feed+json", time.RFC3339, parsed(`{"version":"https://jsonfeed.org/version/1.1","title":{{json .Title}},"home_page_url":"{{.Home}}/",` +
		`{{with .Volatile}}"_build":{{json .}},{{end}}{{with .Extra}}{{.}},{{end}}` +
		`"items":[{{range $i, $_ := .List}}{{if $i}},{{end}}{"id":"{{$.Home}}/{{.Number}}","url":"{{$.Home}}/{{.Number}}","title":"Entry {{.Number}}",` +
		`{{with .Date}}"date_published":"{{.}}",{{end}}"content_text":{{json $.Text}}}{{end}}]}`)},
}

func parsed(text string) *template.Template {
	quoted := func(text string) (string, error) {
		b, err := json.Marshal(text)
		return string(b), err
	}
	return template.Must(template.New("").Funcs(template.FuncMap{"json": quoted}).Parse(text))
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
	type entry struct {
		Number int
		Date   string
	}
	d.Title, d.Home = cmp.Or(d.Title, "Test"), cmp.Or(d.Home, "https://origin.test")
	d.Text = cmp.Or(d.Text, strings.TrimSpace(strings.Repeat("some words ", 20)))
	list := make([]entry, d.Entries)
	for i := range list {
		list[i].Number = d.Entries - i
		if !d.Newest.IsZero() {
			list[i].Date = d.Newest.AddDate(0, 0, -i).Format(formats[d.Format].layout)
		}
	}
	var b strings.Builder
	err := formats[d.Format].template.Execute(&b, struct {
		Document
		List []entry
	}{d, list})
	if err != nil {
		panic(err)
	}
	return b.String()
}
