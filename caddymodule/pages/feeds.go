// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/feedpollard/pollard/internal/status"
)

const (
	pageOfFeeds = 50   // feeds on a page
	maxListed   = 1000 // feeds that a program may ask for at once
	maxSearch   = 200  // bytes of a search
)

// listContent is a part of the list of feeds. Its JSON form is the page for programs.
type listContent struct {
	status.FeedList
	Publisher
	Query status.Query `json:"-"`
	Rest  string       `json:"-"` // the address of the next part, below the pages' own
}

// Narrowed reports whether the list shows less than all feeds.
func (c listContent) Narrowed() bool { return c.Query.Search != "" || c.Query.State != "" }

// Partial reports whether there is more than what is on this page.
func (c listContent) Partial() bool { return int64(len(c.Feeds)) < c.Matched }

// feeds is the list of feeds, or one of them.
func (p *Pages) feeds(v *visit) error {
	values := v.r.URL.Query()
	if values.Has("url") || values.Has("id") {
		return p.feed(v, Which{URL: strings.TrimSpace(values.Get("url")), ID: values.Get("id")})
	}
	q, err := readQuery(values)
	if err != nil {
		return err
	}
	list, err := p.Source.Feeds(v.r.Context(), &v.at.Viewer, q)
	if err != nil {
		return err
	}
	values.Set("after", list.Next)
	c := listContent{FeedList: list, Query: q, Rest: pageFeeds + "?" + values.Encode()}
	if p.shield() && q.Search == "" && q.State == "" && q.After == "" {
		c.Publisher = p.Publisher(v.r.Context())
	}
	return p.answer(v, http.StatusOK, "feeds", "Feeds", c, c)
}

func readQuery(values url.Values) (status.Query, error) {
	q := status.Query{
		Search: strings.TrimSpace(values.Get("q")), State: status.State(values.Get("state")),
		Sort: status.Sort(values.Get("sort")), After: values.Get("after"), Limit: pageOfFeeds,
	}
	if text := values.Get("limit"); text != "" {
		q.Limit, _ = strconv.Atoi(text)
	}
	switch {
	case len(q.Search) > maxSearch:
		return q, &problem{status: http.StatusBadRequest, Text: "That search is too long.", More: "Search for a part of it."}
	case q.State != "" && !q.State.Valid(), q.Sort != "" && !slices.Contains(status.Sorts, q.Sort), q.Limit < 1 || q.Limit > maxListed:
		return q, &problem{status: http.StatusBadRequest, Text: "There is no such list of feeds.",
			More: fmt.Sprintf("Expected a state of %v, sort of %v, and a limit of 1 to %d.", status.States, status.Sorts, maxListed)}
	}
	return q, nil
}
