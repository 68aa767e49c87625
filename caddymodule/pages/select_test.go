// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/feedpollard/pollard/internal/feedurl"
	"github.com/feedpollard/pollard/internal/status"
)

// rows are feeds in no order, many of them equal in what they are sorted by.
func rows(n int) []status.Feed {
	random := rand.New(rand.NewPCG(1, 2))
	start := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	list := make([]status.Feed, n)
	for i := range list {
		list[i] = status.Feed{
			ID: fmt.Sprintf("%04x", i*40503%65536), URL: feedurl.Shown(fmt.Sprintf("https://%s%c.example/%d", []string{"", "www.", "bob:pw@"}[i%3], 'a'+random.IntN(9), i)),
			State: status.States[random.IntN(len(status.States))], Failures: random.IntN(4), NextPoll: start.Add(time.Duration(random.IntN(20)) * time.Minute),
		}
		if random.IntN(7) == 0 {
			list[i].NextPoll = time.Time{}
		}
	}
	return list
}

func each(list []status.Feed) func(func(status.Feed, error) bool) {
	return func(yield func(status.Feed, error) bool) {
		for _, f := range list {
			if !yield(f, nil) {
				return
			}
		}
	}
}

// Whatever the size of its parts, a list is all that matches, sorted.
func TestSelect(t *testing.T) {
	all := rows(500)
	sorted := map[Sort]func(a, b status.Feed) int{
		SortNext: func(a, b status.Feed) int {
			never := time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
			at := func(f status.Feed) time.Time {
				if f.NextPoll.IsZero() {
					return never
				}
				return f.NextPoll
			}
			return at(a).Compare(at(b))
		},
		SortName:     func(a, b status.Feed) int { return strings.Compare(host(string(a.URL)), host(string(b.URL))) },
		SortFailures: func(a, b status.Feed) int { return b.Failures - a.Failures },
	}
	for sort, compare := range sorted {
		for _, limit := range []int{1, 7, 250, 499, 500, 501} {
			for _, state := range []status.State{"", status.StateFailing} {
				for _, search := range []string{"", "C.example/1"} {
					q := Query{Sort: sort, Limit: limit, State: state, Search: search}
					var got []status.Feed
					want := 0
					for _, f := range all {
						if (f.State == state || state == "" && (f.State != status.StateUnread || search != "")) && strings.Contains(string(f.URL), strings.ToLower(search)) {
							want++
						}
					}
					for {
						list, err := Select(each(all), q)
						if err != nil {
							t.Fatal(err)
						}
						if list.Matched != int64(want) {
							t.Fatalf("%+v: %d match, want %d", q, list.Matched, want)
						}
						got = append(got, list.Feeds...)
						if q.After = list.Next; q.After == "" {
							break
						}
						if len(list.Feeds) != limit {
							t.Fatalf("%+v: a part of %d that is not the last", q, len(list.Feeds))
						}
						if strings.Contains(q.After, "pw@") {
							t.Fatalf("the place %q tells a password", q.After)
						}
					}
					seen := map[string]bool{}
					for _, f := range got {
						seen[f.ID] = true
					}
					if len(got) != want || len(seen) != want || !slices.IsSortedFunc(got, compare) {
						t.Errorf("%+v: %d feeds, %d different, of %d, sorted: %v", q, len(got), len(seen), want, slices.IsSortedFunc(got, compare))
					}
				}
			}
		}
	}
}

func TestSelectRefuses(t *testing.T) {
	for _, q := range []Query{
		{After: "x"}, {After: " "}, {After: "2026 a"}, {Sort: SortFailures, After: "many 0a"}, {Sort: SortFailures, After: "1"},
	} {
		if _, err := Select(each(nil), q); !errors.Is(err, ErrCursor) {
			t.Errorf("%+v: %v", q, err)
		}
	}
	broken := errors.New("broken")
	_, err := Select(func(yield func(status.Feed, error) bool) { yield(status.Feed{}, broken) }, Query{})
	if !errors.Is(err, broken) {
		t.Errorf("the source's error becomes %v", err)
	}
}

func TestSearch(t *testing.T) {
	for _, tt := range []struct {
		url    feedurl.Shown
		title  string
		search string
		want   bool
	}{
		{"https://Blog.example/Feed", "", "blog", true},
		{"https://blog.example/FEED", "", "Feed", true},
		{"https://blog.example/%C3%BC", "Über Weiden", "über", true},
		{"https://blog.example/", "", "example/x", false},
		{"https://bob:hunter2@blog.example/", "", "hunter2", false},
		{"https://blog.example/?token=hunter2", "", "hunter", false},
	} {
		q := Query{Search: strings.ToLower(tt.search)}
		if got := q.matches(status.Feed{URL: tt.url, Title: tt.title}); got != tt.want {
			t.Errorf("%s in %s %s: %v", tt.search, tt.url, tt.title, got)
		}
	}
}
