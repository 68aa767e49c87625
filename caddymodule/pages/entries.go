// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"bytes"
	"cmp"
	"context"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/mmcdole/gofeed"

	"github.com/feedpollard/pollard/internal/feedurl"
	"github.com/feedpollard/pollard/policy/document"
)

// Entries are the newest entries of a feed as a reader sees them. All of it is
// foreign text, cut to what fits on a page.
type Entries struct {
	Title   string
	Newest  []Entry
	Problem string // why there are none: a sentence
}

// Entry is one entry.
type Entry struct {
	Title string
	Link  string    // http or https; or empty
	Date  time.Time // zero: the entry has none
}

const (
	maxEntries = 8
	maxTitle   = 160             // runes
	parserWait = 2 * time.Second // for the parsing of other feeds
	maxParsed  = 4 << 20         // bytes of a feed that is parsed for the page
)

// parsers bounds how many feeds are parsed at a time.
var parsers = make(chan struct{}, 2)

// newest reads the newest entries of a feed. The bounded scan of package document
// goes first: what that refuses never reaches the parser.
func newest(ctx context.Context, body []byte, contentType string) (entries Entries) {
	if len(body) > maxParsed {
		return Entries{Problem: "The feed is too large to list its entries here."}
	}
	ctx, cancel := context.WithTimeout(ctx, parserWait)
	defer cancel()
	select {
	case parsers <- struct{}{}:
		defer func() { <-parsers }()
	case <-ctx.Done():
		return Entries{Problem: "Reading the entries takes too long just now."}
	}
	defer func() {
		if recover() != nil { // the parser is not ours, and the document is a stranger's
			entries = Entries{Problem: "A feed reader's parser fails on this feed."}
		}
	}()
	if _, err := document.Read(body, contentType, time.Now()); err != nil {
		return Entries{Problem: "The entries cannot be read: " + feedurl.Short(err.Error(), maxTitle) + "."}
	}
	feed, err := gofeed.NewParser().Parse(bytes.NewReader(body))
	if err != nil {
		return Entries{Problem: "A feed reader's parser refuses this feed: " + feedurl.Short(err.Error(), maxTitle) + "."}
	}
	entries = Entries{Title: feedurl.Short(feed.Title, maxTitle)}
	slices.SortStableFunc(feed.Items, func(a, b *gofeed.Item) int { return -cmp.Compare(dateOf(a).Unix(), dateOf(b).Unix()) })
	for _, item := range feed.Items[:min(len(feed.Items), maxEntries)] {
		e := Entry{Title: feedurl.Short(item.Title, maxTitle), Link: webLink(item.Link), Date: dateOf(item)}
		if e.Title == "" {
			e.Title = "(without a title)"
		}
		entries.Newest = append(entries.Newest, e)
	}
	if len(entries.Newest) == 0 {
		entries.Problem = "The feed has no entries at present."
	}
	return entries
}

func dateOf(item *gofeed.Item) time.Time {
	switch {
	case item.PublishedParsed != nil:
		return *item.PublishedParsed
	case item.UpdatedParsed != nil:
		return *item.UpdatedParsed
	}
	return time.Time{}
}

// webLink is a link that may be followed from a page: nothing but the web.
func webLink(raw string) string {
	u, err := url.Parse(strings.TrimSpace(raw))
	if err != nil || u.Host == "" || u.User != nil || u.Scheme != "http" && u.Scheme != "https" {
		return ""
	}
	return u.String()
}
