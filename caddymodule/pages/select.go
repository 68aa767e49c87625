// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"cmp"
	"container/heap"
	"errors"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/feedpollard/pollard/internal/feedurl"
	"github.com/feedpollard/pollard/internal/status"
)

// Sort is an order of feeds.
type Sort string

// The orders of feeds. Feeds that are equal in one are ordered by ID.
const (
	SortNext     Sort = "next"     // by the next poll, the earliest first, those without one last
	SortName     Sort = "name"     // by host, then by URL
	SortFailures Sort = "failures" // by failures, most first
)

// Query asks for a part of the list of feeds.
type Query struct {
	Search string       // part of the URL or title, in any case; empty: all
	State  status.State // empty: all but [status.StateUnread], which a search finds too
	Sort   Sort         // empty: SortNext
	After  string       // [FeedList.Next] of the part before this one; empty: from the beginning
	Limit  int          // feeds in this part; 0: 50
}

// FeedList is a part of the list of feeds.
type FeedList struct {
	Feeds   []status.Feed `json:"feeds"`
	Matched int64         `json:"matched"`        // in all parts
	Next    string        `json:"next,omitempty"` // for [Query.After]; empty: there are no more
}

// ErrCursor reports that a [Query.After] does not come from a list.
var ErrCursor = errors.New("pages: not a place in the list")

// Select answers a query by one pass over all feeds, in memory that grows with the
// query's limit alone. It reads ID, URL, Title, State, Failures and NextPoll alone.
func Select(feeds iter.Seq2[status.Feed, error], q Query) (FeedList, error) {
	if q.Limit <= 0 {
		q.Limit = 50
	}
	order := orderOf(q.Sort)
	from, err := order.parse(q.After)
	if err != nil {
		return FeedList{}, err
	}
	q.Search = strings.ToLower(q.Search)
	top := &firsts{compare: order.compare}
	var list FeedList
	var p candidate // one for all: comparing it makes it escape
	for f, err := range feeds {
		if err != nil {
			return FeedList{}, err
		}
		if !q.matches(f) {
			continue
		}
		list.Matched++
		p = candidate{Feed: f, host: host(string(f.URL))}
		if q.After != "" && order.compare(&p, from) <= 0 {
			continue
		}
		// One more than asked for: it tells that there is a next part.
		if len(top.list) <= q.Limit {
			heap.Push(top, p)
		} else if order.compare(&p, &top.list[0]) < 0 {
			top.list[0] = p
			heap.Fix(top, 0)
		}
	}
	slices.SortFunc(top.list, func(a, b candidate) int { return order.compare(&a, &b) })
	if len(top.list) > q.Limit {
		top.list = top.list[:q.Limit]
		list.Next = order.format(&top.list[q.Limit-1])
	}
	list.Feeds = make([]status.Feed, len(top.list))
	for i := range top.list {
		list.Feeds[i] = top.list[i].Feed
	}
	return list, nil
}

func (q *Query) matches(f status.Feed) bool {
	if q.State != "" && f.State != q.State {
		return false
	}
	if q.State == "" && q.Search == "" && f.State == status.StateUnread {
		return false
	}
	if q.Search == "" {
		return true
	}
	// What is hidden in a URL cannot be searched for either. Redacting is slow, so it
	// is left to the few that match at all.
	return containsFold(string(f.URL), q.Search) && containsFold(f.URL.String(), q.Search) ||
		containsFold(f.Title, q.Search) || containsFold(f.Address, q.Search)
}

// containsFold reports whether s contains lower, which is in lower case. URLs are
// nearly always in ASCII: those are compared without a copy.
func containsFold(s, lower string) bool {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c >= 0x80 || 'A' <= c && c <= 'Z' {
			return strings.Contains(strings.ToLower(s), lower)
		}
	}
	return strings.Contains(s, lower)
}

// candidate is a feed with what it is sorted by.
type candidate struct {
	status.Feed
	host  string
	shown string // the redacted URL, made when it is first needed
}

func (p *candidate) name() string {
	if p.shown == "" {
		p.shown = p.URL.String()
	}
	return p.shown
}

// host is the host of a URL without "www.".
func host(raw string) string {
	_, rest, _ := strings.Cut(raw, "://")
	if end := strings.IndexAny(rest, "/?"); end >= 0 {
		rest = rest[:end]
	}
	return strings.TrimPrefix(rest[strings.LastIndexByte(rest, '@')+1:], "www.")
}

// order is an order of feeds. A place in it is written as the key of a feed and its
// ID; neither holds what a URL hides.
type order struct {
	key   func(a, b *candidate) int
	write func(*candidate) string
	read  func(string, *candidate) error
}

func orderOf(s Sort) order {
	switch s {
	case SortName:
		return order{
			key: func(a, b *candidate) int {
				if c := strings.Compare(a.host, b.host); c != 0 {
					return c
				}
				return strings.Compare(a.name(), b.name())
			},
			write: (*candidate).name,
			read: func(text string, p *candidate) error {
				p.host, p.shown = host(text), feedurl.OneLine(text)
				return nil
			},
		}
	case SortFailures:
		return order{
			key:   func(a, b *candidate) int { return cmp.Compare(b.Failures, a.Failures) },
			write: func(p *candidate) string { return strconv.Itoa(p.Failures) },
			read: func(text string, p *candidate) (err error) {
				p.Failures, err = strconv.Atoi(text)
				return err
			},
		}
	}
	return order{
		key: func(a, b *candidate) int {
			if a.NextPoll.IsZero() != b.NextPoll.IsZero() {
				return -a.NextPoll.Compare(b.NextPoll) // zero is never
			}
			return a.NextPoll.Compare(b.NextPoll)
		},
		write: func(p *candidate) string { return p.NextPoll.UTC().Format(time.RFC3339Nano) },
		read: func(text string, p *candidate) (err error) {
			p.NextPoll, err = time.Parse(time.RFC3339Nano, text)
			return err
		},
	}
}

func (o order) compare(a, b *candidate) int {
	if c := o.key(a, b); c != 0 {
		return c
	}
	return strings.Compare(a.ID, b.ID)
}

func (o order) format(p *candidate) string { return o.write(p) + " " + p.ID }

func (o order) parse(after string) (*candidate, error) {
	p := new(candidate)
	if after == "" {
		return p, nil
	}
	key, id, ok := cutLast(after, " ")
	if !ok || o.read(key, p) != nil {
		return nil, ErrCursor
	}
	p.ID = id
	return p, nil
}

func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

// firsts is a heap of the places that come first so far, the last of them on top.
type firsts struct {
	list    []candidate
	compare func(a, b *candidate) int
}

func (f *firsts) Len() int           { return len(f.list) }
func (f *firsts) Less(i, j int) bool { return f.compare(&f.list[i], &f.list[j]) > 0 }
func (f *firsts) Swap(i, j int)      { f.list[i], f.list[j] = f.list[j], f.list[i] }
func (f *firsts) Push(x any)         { f.list = append(f.list, x.(candidate)) }
func (f *firsts) Pop() any {
	last := f.list[len(f.list)-1]
	f.list = f.list[:len(f.list)-1]
	return last
}
