// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/feedpollard/pollard/policy"
)

// A site has two servers that answer in turn and do not agree. Readers have a new entry when a server
// gives it, its entries are one version whichever server gives it, and each poll has the validators of
// the last 200.
func TestTwoServers(t *testing.T) {
	answer := func(server string, n int) policy.Answer {
		date := epoch.Add(-time.Duration(len(server)) * time.Hour).Format("Mon, 02 Jan 2006 15:04:05 GMT")
		return ok(rss(n, server), "ETag", fmt.Sprintf(`"%s-%d"`, server, n), "Last-Modified", date, "Cache-Control", "max-age=3600")
	}
	faithful := func(server string) func(policy.Ask, int) policy.Answer {
		return func(ask policy.Ask, n int) policy.Answer {
			if a := answer(server, n); ask.Validators.ETag != a.Header.Get("ETag") {
				return a
			}
			return unchanged()
		}
	}
	for name, c := range map[string]struct {
		second   func(ask policy.Ask, published int) policy.Answer
		late     int // polls until readers have an entry, after the first
		versions int // of three contents; an old one that comes back is another
	}{
		"with other tags":     {faithful("second"), 0, 3},
		"one has old ones":    {func(ask policy.Ask, n int) policy.Answer { return faithful("second")(ask, max(n-1, 1)) }, 1, 5},
		"one says 304 to all": {func(policy.Ask, int) policy.Answer { return unchanged() }, 1, 3},
		"one is out of order": {func(policy.Ask, int) policy.Answer { return failed(500, policy.FailureStatus) }, 1, 3},
	} {
		bubble(t, name, func(t *testing.T) {
			published, polls := 1, 0
			given := []policy.Validators{{}}
			g := newGateway(t, func(ask policy.Ask) policy.Answer {
				if want := given[len(given)-1]; ask.Validators.ETag != want.ETag || ask.Validators.LastModified != want.LastModified {
					t.Errorf("poll %d has the validators %+v, want those of the last 200: %+v", polls, ask.Validators, want)
				}
				a := faithful("first")(ask, published)
				if polls%2 == 1 {
					a = c.second(ask, published)
				}
				if polls++; a.Status == http.StatusOK {
					given = append(given, policy.Validators{ETag: a.Header.Get("ETag"), LastModified: a.Header.Get("Last-Modified")})
				}
				return a
			})
			g.often(time.Hour)
			g.open()
			var tags []string // that readers get
			for hour, since := 0, 0; hour < 12; hour++ {
				if hour == 5 || hour == 9 { // the second server is asked
					published, since = published+1, hour
				}
				g.get(feedURL)
				time.Sleep(time.Minute)
				w := g.get(feedURL)
				if newest := fmt.Sprintf("Entry %d<", published); hour == since+c.late && !strings.Contains(w.Body.String(), newest) {
					t.Errorf("hour %d: readers have no %q", hour, newest)
				}
				if tag := w.Header().Get("ETag"); !slices.Contains(tags, tag) {
					tags = append(tags, tag)
				}
				time.Sleep(time.Hour)
			}
			if len(tags) != c.versions || polls != 12 {
				t.Errorf("%d versions in %d polls, want %d in 12", len(tags), polls, c.versions)
			}
		})
	}
}
