// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/feedpollard/pollard/internal/status"
)

const (
	pageOfFeeds = 50   // feeds on a page
	maxListed   = 1000 // feeds that a program may ask for at once
	maxSearch   = 200  // bytes of a search
)

// listContent is what the list of feeds shows.
type listContent struct {
	Summary status.Summary
	Query   Query
	List    FeedList
	Publisher
}

// stateCount is how many feeds are in a state.
type stateCount struct {
	State status.State
	Count int64
}

// States returns the states of feeds, with the number of feeds in each.
func (c listContent) States() (list []stateCount) {
	for _, state := range status.States {
		if n := c.Summary.Feeds[state]; n > 0 {
			list = append(list, stateCount{state, n})
		}
	}
	return list
}

// Unread is how many addresses readers have asked for that never gave a feed.
func (c listContent) Unread() int64 { return c.Summary.Feeds[status.StateUnread] }

// Narrowed reports whether the list shows less than all feeds.
func (c listContent) Narrowed() bool { return c.Query.Search != "" || c.Query.State != "" }

// Partial reports whether there is more than what is on this page.
func (c listContent) Partial() bool { return int64(len(c.List.Feeds)) < c.List.Matched }

// Rest is the address of the next part of the list, below the pages' own.
func (c listContent) Rest() string {
	q := c.Query
	q.After = c.List.Next
	return q.address()
}

// First is the address of the first part.
func (c listContent) First() string {
	q := c.Query
	q.After = ""
	return q.address()
}

func (q Query) address() string {
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
	list, err := v.source.Feeds(v.r.Context(), q)
	if errors.Is(err, ErrCursor) {
		return &problem{http.StatusBadRequest, "This is not a place in the list.", "Begin with the first page."}
	}
	if err != nil {
		return err
	}
	if list.Feeds == nil {
		list.Feeds = []status.Feed{}
	}
	var publisher Publisher
	if p.Publisher != nil && q.Search == "" && q.State == "" && q.After == "" {
		publisher = p.Publisher(v.r.Context())
	}
	if v.wantsJSON() {
		return v.json(http.StatusOK, struct {
			FeedList
			Publisher
		}{list, publisher})
	}
	summary, err := v.source.Summary(v.r.Context())
	if err != nil {
		return err
	}
	return p.render(v, http.StatusOK, "feeds", "Feeds", listContent{summary, q, list, publisher})
}

func readQuery(values url.Values) (Query, error) {
	q := Query{
		Search: strings.TrimSpace(values.Get("q")), State: status.State(values.Get("state")),
		Sort: Sort(values.Get("sort")), After: values.Get("after"), Limit: pageOfFeeds,
	}
	if len(q.Search) > maxSearch {
		return q, &problem{http.StatusBadRequest, "That search is too long.", "Search for a part of it."}
	}
	if q.State != "" && !q.State.Valid() {
		return q, &problem{http.StatusBadRequest, "There is no such state of a feed.", ""}
	}
	switch q.Sort {
	case "":
	case SortNext:
		q.Sort = ""
	case SortName, SortFailures:
	default:
		return q, &problem{http.StatusBadRequest, "Feeds cannot be sorted that way.", "Expected next, name or failures."}
	}
	if text := values.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > maxListed {
			return q, &problem{http.StatusBadRequest, "That is not a number of feeds to list.", "Expected 1 to 1000."}
		}
		q.Limit = n
	}
	return q, nil
}
