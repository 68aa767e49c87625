// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"net/http"
	"strings"

	"github.com/feedpollard/pollard/internal/feedurl"
	"github.com/feedpollard/pollard/internal/status"
)

// homeContent is what the home page shows. Its JSON form is the page for programs.
type homeContent struct {
	Gateway string `json:"gateway"` // what a feed's URL is written behind
	status.Summary
	Site *Site `json:"site,omitempty"` // what was found at the address

	Find   string        `json:"-"` // the address that was asked for
	Chosen []status.Feed `json:"-"` // with an address that the operator has chosen, of which More are left out
	More   int           `json:"-"`
}

// maxFind is the length of the longest address that is looked for, in bytes.
const maxFind = feedurl.MaxLength

// maxChosen is how many chosen addresses the home page lists.
const maxChosen = 10

// home is the page to begin with. With ?find= it looks for the feeds of a site. (The
// parameter url is taken: that asks for a feed itself.)
func (p *Pages) home(v *visit) error {
	if p.shield() { // there is nothing to begin with but the feeds that there are
		v.name = pageFeeds
		return p.feeds(v)
	}
	c := homeContent{
		Gateway: v.at.Gateway, Find: strings.TrimSpace(v.r.FormValue("find")),
		Summary: status.Summary{Feeds: map[status.State]int64{}, Trouble: p.Source.Trouble(&v.at.Viewer)},
	}
	if v.at.Listed() { // strangers do not cause a pass over all feeds
		list, err := p.Source.Feeds(v.r.Context(), &v.at.Viewer, status.Query{Limit: 1})
		if err != nil {
			return err
		}
		c.Summary = list.Summary
	}
	if v.at.Listed() && v.at.Chosen != nil {
		chosen, err := v.at.Chosen()
		if err != nil {
			return err
		}
		c.Chosen = chosen[:min(len(chosen), maxChosen)]
		c.More = len(chosen) - len(c.Chosen)
	}
	if c.Find == "" || !isPage(v.r.Request) {
		return p.answer(v, http.StatusOK, "home", "Home", c, c)
	}
	if len(c.Find) > maxFind {
		c.Find, c.Site = "", &Site{Problem: "That address is too long."}
		return p.answer(v, http.StatusBadRequest, "home", "Home", c, c)
	}
	site, err := p.Discover(&v.r, c.Find)
	if err != nil {
		return err
	}
	c.Site = &site
	return p.answer(v, http.StatusOK, "home", "Feeds of "+site.name(), c, c)
}

// isPage reports whether a browser asks for a page to show in a window. An image or a
// frame in a page of another site must not cause a request to an origin; a link may.
// Old browsers and other programs do not send the field.
func isPage(r *http.Request) bool {
	dest := r.Header.Get("Sec-Fetch-Dest")
	return dest == "" || dest == "document"
}
