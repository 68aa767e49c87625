// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package opml

import (
	"encoding/xml"

	"github.com/feedpollard/pollard/internal/markup"
)

// Outline is an entry of a subscription list: a feed, or a folder if it has no URL.
type Outline struct {
	Text     string    `xml:"text,attr"`
	Type     string    `xml:"type,attr,omitempty"`
	URL      string    `xml:"xmlUrl,attr,omitempty"`
	Outlines []Outline `xml:"outline"`

	// Of an outline that was read:
	depth int         // how many elements it is in
	place markup.Span // of the URL in the document, without its quotes
}

// Outlines returns the folders and feeds of a list, with their titles and nothing else of it.
func Outlines(in []byte) ([]Outline, error) {
	_, flat, err := read(in)
	all, _ := tree(flat, 0)
	return all, err
}

// tree returns the outlines from a depth on, and those after them that are less deep.
func tree(flat []Outline, depth int) (all, rest []Outline) {
	for len(flat) > 0 && flat[0].depth >= depth {
		o := flat[0]
		o.Outlines, flat = tree(flat[1:], o.depth+1)
		all = append(all, o)
	}
	return all, flat
}

// Pruned returns outlines without the feeds that keep refuses, and without folders that are
// empty then. Keep may change a feed.
func Pruned(all []Outline, keep func(feed *Outline) bool) (kept []Outline) {
	for _, o := range all {
		isFeed := o.URL != "" && keep(&o)
		if !isFeed {
			o.URL = ""
		}
		if o.Outlines = Pruned(o.Outlines, keep); isFeed || len(o.Outlines) > 0 {
			kept = append(kept, o)
		}
	}
	return kept
}

// New returns a list in UTF-8. All outlines with a URL are feeds.
func New(title string, outlines []Outline) ([]byte, error) {
	list := struct {
		XMLName  xml.Name  `xml:"opml"`
		Version  string    `xml:"version,attr"`
		Title    string    `xml:"head>title"`
		Outlines []Outline `xml:"body>outline"`
	}{Version: "2.0", Title: title, Outlines: Pruned(outlines, func(feed *Outline) bool { feed.Type = "rss"; return true })}
	text, err := xml.MarshalIndent(list, "", "\t")
	return append([]byte(xml.Header), append(text, '\n')...), err
}
