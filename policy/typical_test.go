// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/feedpollard/pollard/policy"
	"github.com/feedpollard/pollard/policy/document"
)

// Typical feeds, polled for 60 days as decided: how often, and how late a new entry is seen. The
// table of docs/how-polls-are-decided.md is what this test prints with -v.
func TestTypicalFeeds(t *testing.T) {
	const day, days = 24 * time.Hour, 60
	start := time.Date(2026, time.June, 1, 0, 0, 0, 0, time.UTC)
	for _, f := range []struct {
		name    string
		every   time.Duration // between two entries, on average
		entries int           // in the document
		header  string        // "name: value"
		until   time.Duration // the last entry is so old at the start; 0: they go on
		polls   float64       // a day, at most
		median  time.Duration // from the entry to the poll, at most
		lost    int           // in percent, at most
	}{
		{"front page, 250 entries a day, 30 listed", day / 250, 30, `ETag: "`, 0, 24, time.Hour, 0},
		{"daily blog", day, 20, `ETag: "`, 0, 24, 90 * time.Minute, 0},
		{"weekly podcast", 7 * day, 20, `ETag: "`, 0, 4, 7 * time.Hour, 0},
		{"newsletter, 2 a week, max-age=600", 84 * time.Hour, 20, "Cache-Control: max-age=600", 0, 24, time.Hour, 0},
		{"news, 40 a day, 20 listed, no validators", day / 40, 20, "", 0, 6.1, 3 * time.Hour, 0},
		{"local paper, 12 a day, 10 listed, no validators", day / 12, 10, "", 0, 6.1, 3 * time.Hour, 0},
		{"weekly podcast, no validators", 7 * day, 20, "", 0, 1.05, 24 * time.Hour, 0},
		{"dead for 5 years, daily before", day, 20, `ETag: "`, 5 * 365 * day, 1.05, 0, 0},
		{"dead for 5 years, one entry", day, 1, `ETag: "`, 5 * 365 * day, 1.05, 0, 0},
	} {
		random := rand.New(rand.NewPCG(1, 2))
		var published []time.Time
		for at := start.Add(-f.until - 40*f.every); at.Before(start.Add(days*day-f.until)) && (f.until == 0 || len(published) < 40); {
			at = at.Add(time.Duration(random.ExpFloat64() * float64(f.every)))
			published = append(published, at)
		}
		var h policy.History
		var delays []time.Duration
		polls, seen, lost := 0, 0, 0
		for at := start; at.Before(start.Add(days * day)); {
			polls++
			n, _ := slices.BinarySearchFunc(published, at, time.Time.Compare)
			a := policy.Answer{Asked: at, At: at, Status: http.StatusOK, Header: http.Header{}}
			if name, value, ok := strings.Cut(f.header, ": "); ok {
				a.Header.Set(name, value)
			}
			var d *policy.Document
			if n > seen || polls == 1 {
				var body strings.Builder
				for i := n - 1; i >= max(0, n-f.entries); i-- {
					fmt.Fprintf(&body, "<item><guid>%d</guid><pubDate>%s</pubDate></item>", i, published[i].Format(time.RFC1123Z))
				}
				d, _ = document.Read([]byte(`<rss version="2.0"><channel><title>t</title>`+body.String()+"</channel></rss>"), "", at)
			}
			if polls > 1 {
				lost += max(0, n-seen-f.entries)
				for i := max(seen, n-f.entries); i < n; i++ {
					delays = append(delays, at.Sub(published[i]))
				}
			}
			if seen = n; d == nil && f.header != "" {
				a.Status = http.StatusNotModified
			}
			h = h.Update(a, d, false)
			decided := policy.Decide(policy.DefaultRules(), h, a, at, random.Float64())
			h, at = h.Decided(decided), decided.Next
		}
		slices.Sort(delays)
		var median, most time.Duration
		if n := len(delays); n > 0 {
			median, most = delays[n/2], delays[n-1]
		}
		perDay, percent := float64(polls)/days, 100*lost/max(1, lost+len(delays))
		t.Logf("| %s | %.1f | %.1f h | %.1f h | %d %% |", f.name, perDay, median.Hours(), most.Hours(), percent)
		if perDay > f.polls || median > f.median || percent > f.lost {
			t.Errorf("%s: %.1f polls a day, delay %v, %d %% lost; want at most %v, %v, %d %%", f.name, perDay, median, percent, f.polls, f.median, f.lost)
		}
	}
}
