// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"bytes"
	"net/url"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
	"golang.org/x/net/html/charset"

	"github.com/feedpollard/pollard/feedurl"
)

const (
	maxSiteBytes = 1 << 20 // bytes of a page that are looked at
	maxFound     = 32      // feeds of a site
)

// feedTypes are the types of link elements that name feeds. (application/json does
// not: it is what many sites give for their programming interface.)
var feedTypes = map[string]bool{
	"application/rss+xml": true, "application/atom+xml": true, "application/rdf+xml": true, "application/feed+json": true,
}

// ReadSite finds the feeds that an HTML page names by link elements, as browsers and
// readers have done since RSS 2.0 ("autodiscovery"). The address is the page's own.
// Elements outside of the head count as well: many sites have theirs there.
func ReadSite(page []byte, contentType, address string) Site {
	site := Site{URL: Address(address)}
	base, err := url.Parse(address)
	if err != nil {
		return site
	}
	text, err := charset.NewReader(bytes.NewReader(page[:min(len(page), maxSiteBytes)]), contentType)
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
				site.Title = clip(string(z.Text()))
			}
		case html.EndTagToken:
			titled = false
		case html.StartTagToken, html.SelfClosingTagToken:
			t := z.Token()
			titled = t.DataAtom == atom.Title
			switch t.DataAtom {
			case atom.Base: // the first one counts
				if u, err := base.Parse(attribute(t, "href")); err == nil && !based {
					base, based = u, true
				}
			case atom.Link:
				f, ok := foundIn(t, base)
				if ok && !seen[f.URL] && len(site.Feeds) < maxFound {
					seen[f.URL] = true
					site.Feeds = append(site.Feeds, f)
				}
			}
		}
	}
}

// foundIn reads a link element.
func foundIn(t html.Token, base *url.URL) (Found, bool) {
	kind, _, _ := strings.Cut(attribute(t, "type"), ";")
	kind = strings.ToLower(strings.TrimSpace(kind))
	if !feedTypes[kind] {
		return Found{}, false
	}
	alternate := false
	for _, word := range strings.Fields(attribute(t, "rel")) {
		alternate = alternate || strings.EqualFold(word, "alternate") || strings.EqualFold(word, "feed")
	}
	if !alternate {
		return Found{}, false
	}
	target, err := base.Parse(strings.TrimSpace(attribute(t, "href")))
	if err != nil {
		return Found{}, false
	}
	u, err := feedurl.Parse(target.String())
	if err != nil {
		return Found{}, false
	}
	return Found{URL: u.String(), Title: clip(attribute(t, "title")), Type: kind}, true
}

func attribute(t html.Token, name string) string {
	for _, a := range t.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}
