// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package pages

import (
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

type listContent struct {
	Summary status.Summary
	Query   status.Query
	List    status.FeedList
	Publisher
}

// Narrowed reports whether the list shows less than all feeds.
func (c listContent) Narrowed() bool { return c.Query.Search != "" || c.Query.State != "" }

// Partial reports whether there is more than what is on this page.
func (c listContent) Partial() bool { return int64(len(c.List.Feeds)) < c.List.Matched }

// Rest is the address of the next part of the list, below the pages' own.
func (c listContent) Rest() string {
	q := c.Query
	q.After = c.List.Next
	return address(q)
}

// First is the address of the first part.
func (c listContent) First() string {
	q := c.Query
	q.After = ""
	return address(q)
}

func address(q status.Query) string {
	values := url.Values{}
	for name, value := range map[string]string{"q": q.Search, "state": string(q.State), "sort": string(q.Sort), "after": q.After} {
		if value != "" {
			values.Set(name, value)
		}
	}
	if len(values) == 0 {
		return pageFeeds
	}
	return pageFeeds + "?" + values.Encode()
}

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
	var publisher Publisher
	if p.shield() && q.Search == "" && q.State == "" && q.After == "" {
		publisher = p.Publisher(v.r.Context())
	}
	if v.wantsJSON() {
		return v.json(http.StatusOK, struct {
			status.FeedList
			Publisher
		}{list, publisher})
	}
	summary, err := p.Source.Summary(v.r.Context(), &v.at.Viewer)
	if err != nil {
		return err
	}
	return p.render(v, http.StatusOK, "feeds", "Feeds", listContent{summary, q, list, publisher})
}

func readQuery(values url.Values) (status.Query, error) {
	q := status.Query{
		Search: strings.TrimSpace(values.Get("q")), State: status.State(values.Get("state")),
		Sort: status.Sort(values.Get("sort")), After: values.Get("after"), Limit: pageOfFeeds,
	}
	if len(q.Search) > maxSearch {
		return q, &problem{status: http.StatusBadRequest, Text: "That search is too long.", More: "Search for a part of it."}
	}
	if q.State != "" && !q.State.Valid() {
		return q, &problem{status: http.StatusBadRequest, Text: "There is no such state of a feed."}
	}
	if q.Sort != "" && !slices.Contains(status.Sorts, q.Sort) {
		return q, &problem{status: http.StatusBadRequest, Text: "Feeds cannot be sorted that way.", More: "Expected state, next, name or failures."}
	}
	if text := values.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > maxListed {
			return q, &problem{status: http.StatusBadRequest, Text: "That is not a number of feeds to list.", More: "Expected 1 to 1000."}
		}
		q.Limit = n
	}
	return q, nil
}
