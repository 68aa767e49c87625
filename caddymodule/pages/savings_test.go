// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/feedpollard/pollard/internal/feedurl"
	"github.com/feedpollard/pollard/internal/status"
)

// All sites can be reached, 50 on a page.
func TestSavings(t *testing.T) {
	p, source, at := newPages(t, 3)
	var v status.Savings
	source.saved = func() (status.Savings, error) { return v, nil }
	if body := ask(p, at, "GET", "savings").Body.String(); !strings.Contains(body, "This page will say how many requests and bytes sites were spared") {
		t.Errorf("without readers: %s", body)
	}
	v.Total.Requests = 10
	for i := range 120 {
		v.Origins = append(v.Origins, status.OriginTraffic{Origin: feedurl.Redacted(fmt.Sprintf("https://site-%d.example", i))})
	}
	for _, tt := range []struct{ query, first, last, hint, next string }{
		{"", "site-0.example", "site-49.example", "These are 1 to 50 of 120.", "?after=50#by"},
		{"?after=100", "site-100.example", "site-119.example", "These are 101 to 120 of 120.", ""},
		{"?after=120", "site-0.example", "site-49.example", "These are 1 to 50 of 120.", "?after=50#by"},
		{"?after=-1", "site-0.example", "site-49.example", "", ""},
		{"?after=x", "site-0.example", "site-49.example", "", ""},
	} {
		body := ask(p, at, "GET", "savings"+tt.query).Body.String()
		first, last := strings.Index(body, `<th scope="row">`+tt.first+"<"), strings.LastIndex(body, `<th scope="row">`)
		if first != strings.Index(body, `<th scope="row">`) || !strings.HasPrefix(body[max(last, 0):], `<th scope="row">`+tt.last+"<") || !strings.Contains(body, tt.hint) || !strings.Contains(body, tt.next) ||
			tt.query == "?after=100" && strings.Contains(body, "Next page") {
			t.Errorf("%q: %s", tt.query, body)
		}
	}
}

func TestOriginsByWhatWasSpared(t *testing.T) {
	of := func(origin feedurl.Redacted, requests, polls, served int64) status.OriginTraffic {
		return status.OriginTraffic{Origin: origin, Traffic: status.Traffic{Requests: requests, Polls: polls, Served: served}}
	}
	list := []status.OriginTraffic{of("a", 0, 9, 0), of("b", 9, 9, 5), of("c", 9, 1, 0), of("d", 10, 1, 0), of("aa", 9, 9, 0)}
	slices.SortFunc(list, byWhatWasSpared)
	got := ""
	for _, o := range list {
		got += string(o.Origin) + " "
	}
	if got != "d c b a aa " {
		t.Errorf("the order is %s", got)
	}
}
