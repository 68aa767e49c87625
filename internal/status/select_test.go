// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/feedpollard/pollard/internal/feedurl"
)

// rows are feeds in no order, many of them equal in what they are sorted by.
func rows(n int) []Feed {
	random := rand.New(rand.NewPCG(1, 2))
	list := make([]Feed, n)
	for i := range list {
		list[i] = Feed{
			ID: fmt.Sprintf("%04x", i*40503%65536), URL: feedurl.Redacted(fmt.Sprintf("https://%s%c.example/%d", []string{"", "www.", "bob:pw@"}[i%3], 'a'+random.IntN(9), i)),
			State: States[random.IntN(len(States))], Failures: random.IntN(4), NextPoll: noon.Add(time.Duration(random.IntN(20)) * time.Minute),
		}
		if random.IntN(7) == 0 {
			list[i].NextPoll = time.Time{}
		}
	}
	return list
}

func each(list []Feed) func(func(Feed, error) bool) {
	return func(yield func(Feed, error) bool) {
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
	byNext := func(a, b Feed) int {
		if a.NextPoll.IsZero() || b.NextPoll.IsZero() { // never is last
			return b.NextPoll.Compare(a.NextPoll)
		}
		return a.NextPoll.Compare(b.NextPoll)
	}
	for sort, compare := range map[Sort]func(a, b Feed) int{
		SortNext:     byNext,
		SortName:     func(a, b Feed) int { return strings.Compare(hostOf(string(a.URL)), hostOf(string(b.URL))) },
		SortFailures: func(a, b Feed) int { return cmp.Or(b.Failures-a.Failures, byNext(a, b)) },
		"": func(a, b Feed) int {
			return cmp.Or(slices.Index(States, a.State)-slices.Index(States, b.State), byNext(a, b))
		},
	} {
		for _, limit := range []int{1, 7, 499, 500, 501} {
			for _, q := range []Query{{}, {State: StateFailing}, {Search: "C.example/1"}} {
				q.Sort, q.Limit = sort, limit
				want := 0
				for _, f := range all {
					if (f.State == q.State || q.State == "" && (f.State != StateUnread || q.Search != "")) && strings.Contains(string(f.URL), strings.ToLower(q.Search)) {
						want++
					}
				}
				var got []Feed
				seen := map[string]bool{}
				for {
					list, err := Select(each(all), q)
					if err != nil || list.Matched != int64(want) {
						t.Fatalf("%+v: %d match, want %d (%v)", q, list.Matched, want, err)
					}
					for _, f := range list.Feeds {
						got, seen[f.ID] = append(got, f), true
					}
					if q.After = list.Next; q.After == "" {
						break
					}
					if len(list.Feeds) != limit || strings.Contains(q.After, "pw@") {
						t.Fatalf("%+v: a part of %d, and the next place is %q", q, len(list.Feeds), q.After)
					}
				}
				if len(got) != want || len(seen) != want || !slices.IsSortedFunc(got, compare) {
					t.Errorf("%+v: %d feeds, %d different, of %d, sorted: %v", q, len(got), len(seen), want, slices.IsSortedFunc(got, compare))
				}
			}
		}
	}
	broken := errors.New("broken")
	if _, err := Select(func(yield func(Feed, error) bool) { yield(Feed{}, broken) }, Query{}); !errors.Is(err, broken) {
		t.Errorf("the source's error becomes %v", err)
	}
}

// However many feeds have failed for a day, what happened since is among the incidents.
func TestSelectIncidents(t *testing.T) {
	now := time.Now()
	all := rows(500)
	for i := range all {
		all[i].State, all[i].Incident = StateFailing, &Incident{Kind: IncidentFailing, Began: now.Add(-time.Duration(i+3) * time.Hour)}
	}
	all[300].State, all[300].Incident = StateFresh, &Incident{Kind: IncidentMoved, Began: now.Add(-2 * time.Hour), Ended: now.Add(-2 * time.Hour)}
	all[400].State, all[400].Incident = StateFresh, &Incident{Kind: IncidentFailing, Began: now.Add(-1000 * time.Hour), Ended: now.Add(-time.Hour)}
	all[450].State, all[450].Incident = StateFresh, nil
	list, err := Select(each(all), Query{Incident: true, Limit: 200})
	if err != nil || list.Matched != 499 || len(list.Feeds) != 200 {
		t.Fatalf("%d of %d, %v", len(list.Feeds), list.Matched, err)
	}
	for i, want := range []string{all[400].ID, all[300].ID, all[0].ID, all[1].ID} {
		if list.Feeds[i].ID != want {
			t.Errorf("incident %d is of %s, want %s", i, list.Feeds[i].ID, want)
		}
	}
}

func TestSearch(t *testing.T) {
	for _, tt := range []struct {
		url    feedurl.Redacted
		title  string
		search string
		want   bool
	}{
		{"https://Blog.example/Feed", "", "blog", true},
		{"https://blog.example/FEED", "", "feed", true},
		{"https://blog.example/%C3%BC", "Über Weiden", "über", true},
		{"https://blog.example/", "", "example/x", false},
		{"https://bob:hunter2@blog.example/", "", "hunter2", false},
		{"https://blog.example/?token=hunter2", "", "hunter", false},
	} {
		q := Query{Search: tt.search}
		if got := q.matches(&Feed{URL: tt.url, Title: tt.title}); got != tt.want {
			t.Errorf("%s in %s %s: %v", tt.search, tt.url, tt.title, got)
		}
	}
}
