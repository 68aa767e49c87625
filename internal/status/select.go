// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"
	"time"
)

// Sort is an order of feeds.
type Sort string

// The orders of feeds.
const (
	SortState    Sort = "state"    // as in [States], then by the next poll
	SortNext     Sort = "next"     // by the next poll, the earliest first, those without one last
	SortName     Sort = "name"     // by host, then by URL
	SortFailures Sort = "failures" // by failures, most first, then by the next poll
)

// Sorts are all orders, the default first.
var Sorts = []Sort{SortState, SortNext, SortName, SortFailures}

// Query asks for a part of the list of feeds.
type Query struct {
	Search   string // part of the URL, title or address, in any case; empty: all
	State    State  // empty: all but [StateUnread], unless Unread or Search is set
	Unread   bool   // unread addresses too
	Incident bool   // only feeds with one, by what happened last, the newest first
	Sort     Sort   // empty: SortState
	After    string // [FeedList.Next] of the part before this one; empty: from the beginning
	Limit    int    // feeds in this part; 0: 50
}

// FeedList is a part of the list of feeds.
type FeedList struct {
	Feeds   []Feed `json:"feeds"`
	Matched int64  `json:"matched"`        // in all parts
	Next    string `json:"next,omitempty"` // for [Query.After]; empty: there are no more

	Summary Summary `json:"-"` // of all feeds, whether they match or not: their number, by state, and those due
}

// Select answers a query by one pass over all feeds, in memory that grows with the
// query's limit alone. It reads ID, URL, Address, Title, State, Failures, Incident and NextPoll alone.
func Select(feeds iter.Seq2[Feed, error], q Query) (FeedList, error) {
	if q.Limit <= 0 {
		q.Limit = 50
	}
	q.Search = strings.ToLower(q.Search)
	now := time.Now()
	list := FeedList{Feeds: []Feed{}, Summary: Summary{Feeds: make(map[State]int64)}}
	var first []candidate // those that come first so far: one more than asked for shows that there is a next part
	shorten := func() {
		slices.SortFunc(first, func(a, b candidate) int { return strings.Compare(a.place, b.place) })
		first = first[:min(len(first), q.Limit+1)]
	}
	for f, err := range feeds {
		if err != nil {
			return FeedList{}, err
		}
		list.Summary.add(&f, now)
		if !q.matches(&f) {
			continue
		}
		list.Matched++
		place := q.Sort.place(&f)
		if q.Incident {
			place = fmt.Sprintf("%019d %s", math.MaxInt64-f.Incident.Updated(now).Unix(), f.ID)
		}
		if place > q.After {
			first = append(first, candidate{f, place})
		}
		if len(first)/2 > q.Limit {
			shorten()
		}
	}
	shorten()
	for i := range first[:min(len(first), q.Limit)] {
		list.Feeds = append(list.Feeds, first[i].Feed)
	}
	if len(first) > q.Limit {
		list.Next = first[q.Limit-1].place
	}
	return list, nil
}

type candidate struct {
	Feed
	place string
}

func (q *Query) matches(f *Feed) bool {
	switch {
	case q.State != "" && f.State != q.State, q.Incident && f.Incident == nil:
		return false
	case q.Search == "":
		return q.Unread || q.State != "" || f.State != StateUnread
	}
	contains := func(s string) bool { return strings.Contains(strings.ToLower(s), q.Search) }
	// Hidden parts of a URL cannot be searched for either. Redacting is slow, so only
	// the few that match at all are redacted.
	return contains(string(f.URL)) && contains(f.URL.String()) || contains(f.Title) || contains(f.Address)
}

// place returns a text that sorts a feed among others, equal ones by ID. Nothing that a URL
// hides is in it.
func (s Sort) place(f *Feed) string {
	next := "never"
	if !f.NextPoll.IsZero() {
		next = f.NextPoll.UTC().Format("2006-01-02T15:04:05.000000000")
	}
	switch s {
	case SortName:
		shown := f.URL.String()
		return hostOf(shown) + " " + shown + " " + f.ID
	case SortFailures:
		return fmt.Sprintf("%09d %s %s", max(0, 999_999_999-f.Failures), next, f.ID)
	case SortNext:
		return next + " " + f.ID
	}
	return fmt.Sprint(slices.Index(States, f.State), " ", next, " ", f.ID)
}

// hostOf returns the host of a URL without "www.".
func hostOf(raw string) string {
	_, rest, _ := strings.Cut(raw, "://")
	if end := strings.IndexAny(rest, "/?"); end >= 0 {
		rest = rest[:end]
	}
	return strings.TrimPrefix(rest[strings.LastIndexByte(rest, '@')+1:], "www.")
}
