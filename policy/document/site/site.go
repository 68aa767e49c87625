// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

// Package site reads web pages for the feeds that they name, as browsers and readers
// have done since RSS 2.0 ("autodiscovery"). It keeps little of a page, however
// large that is.
package site

import (
	"bytes"
	"net/url"
	"regexp"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
	"golang.org/x/net/html/charset"

	"github.com/feedpollard/pollard/internal/feedurl"
)

const (
	maxBytes = 256 << 10 // of a page that are looked at
	maxFeeds = 16        // of a page
	maxURL   = 1024      // bytes of a feed's URL, and of a base
	maxTitle = 160       // runes
)

// Page is what is kept of a page.
type Page struct {
	Title string `json:"title,omitempty"`
	Feeds []Feed `json:"feeds,omitempty"` // in the order of the page
	From  string `json:"from,omitempty"`  // URL that redirects led to; empty: the one that was asked for

	Onward   string `json:"-"` // canonical URL that the page sends browsers on to (meta refresh); empty: none
	Password bool   `json:"-"` // the page asks for one
}

// Redacted returns the URLs of the feeds for people.
func (p *Page) Redacted() []feedurl.Redacted {
	list := make([]feedurl.Redacted, 0, len(p.Feeds))
	for _, f := range p.Feeds {
		list = append(list, feedurl.Redacted(f.URL))
	}
	return list
}

// Feed is a feed that a page names.
type Feed struct {
	URL   string `json:"url"` // canonical
	Title string `json:"title,omitempty"`
	Type  string `json:"type"` // media type as the page names it: application/atom+xml
}

// feedTypes are the types of link elements that name feeds. (application/json does
// not: it is what many sites give for their programming interface.)
var feedTypes = map[string]bool{
	"application/rss+xml": true, "application/atom+xml": true, "application/rdf+xml": true, "application/feed+json": true,
}

// Read finds the feeds that an HTML page names by link elements. The address is the
// page's own. Elements outside of the head count as well: many sites have theirs there.
func Read(page []byte, contentType, address string) Page {
	var site Page
	base, err := url.Parse(address)
	if err != nil {
		return site
	}
	text, err := charset.NewReader(bytes.NewReader(page[:min(len(page), maxBytes)]), contentType)
	if err != nil {
		return site
	}
	seen := make(map[string]bool)
	based, titled := false, false
	for z := html.NewTokenizer(text); ; {
		switch z.Next() {
		case html.ErrorToken:
			return site
		case html.TextToken:
			if titled && site.Title == "" {
				site.Title = feedurl.Short(string(z.Text()), maxTitle)
			}
		case html.EndTagToken:
			titled = false
		case html.StartTagToken, html.SelfClosingTagToken:
			t := z.Token()
			titled = t.DataAtom == atom.Title
			switch t.DataAtom {
			case atom.Base: // the first one counts
				href := attribute(t, "href")
				if based || len(href) > maxURL {
					continue
				}
				if u, err := base.Parse(href); err == nil {
					base, based = u, true
				}
			case atom.Meta:
				if u := onward(t, base); u != "" && site.Onward == "" {
					site.Onward = u
				}
			case atom.Input:
				site.Password = site.Password || strings.EqualFold(attribute(t, "type"), "password")
			case atom.Link:
				f, ok := foundIn(t, base)
				if ok && !seen[f.URL] && len(site.Feeds) < maxFeeds {
					seen[f.URL] = true
					site.Feeds = append(site.Feeds, f)
				}
			}
		}
	}
}

// writtenRefresh matches the value of a refresh that leads to another address: 0; url='/feed'.
var writtenRefresh = regexp.MustCompile(`(?i)^\s*[0-9.]*\s*[;,]?\s*url\s*=\s*["']?([^"']+)`)

// onward returns the URL to which a meta element sends browsers, unless that is the page itself.
func onward(t html.Token, base *url.URL) string {
	m := writtenRefresh.FindStringSubmatch(attribute(t, "content"))
	if m == nil || !strings.EqualFold(attribute(t, "http-equiv"), "refresh") {
		return ""
	}
	target, err := base.Parse(strings.TrimSpace(m[1]))
	if err != nil {
		return ""
	}
	u, err := feedurl.Parse(target.String())
	if own, _ := feedurl.Parse(base.String()); err != nil || u == own || len(u.String()) > maxURL {
		return ""
	}
	return u.String()
}

func foundIn(t html.Token, base *url.URL) (Feed, bool) {
	kind, _, _ := strings.Cut(attribute(t, "type"), ";")
	kind = strings.ToLower(strings.TrimSpace(kind))
	if !feedTypes[kind] {
		return Feed{}, false
	}
	alternate := false
	for word := range strings.FieldsSeq(attribute(t, "rel")) {
		alternate = alternate || strings.EqualFold(word, "alternate") || strings.EqualFold(word, "feed")
	}
	if !alternate {
		return Feed{}, false
	}
	target, err := base.Parse(strings.TrimSpace(attribute(t, "href")))
	if err != nil {
		return Feed{}, false
	}
	u, err := feedurl.Parse(target.String())
	if err != nil || len(u.String()) > maxURL {
		return Feed{}, false
	}
	return Feed{URL: u.String(), Title: feedurl.Short(attribute(t, "title"), maxTitle), Type: kind}, true
}

func attribute(t html.Token, name string) string {
	for _, a := range t.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}
