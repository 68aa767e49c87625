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

// typicalFeed is a publisher, and what polls of its feed must come to.
type typicalFeed struct {
	name    string
	entries float64 // published a day, on average
	listed  int     // entries in the document
	header  string  // "name: value" of each answer
	channel string  // hints of the document

	before   float64       // entries a day until the model begins; 0: as afterwards
	silent   time.Duration // how old the last entry is then, if there are no more; 0: there are
	noDates  bool
	status   int // of each poll in failing, the others are good
	failing  int
	polls    float64       // a day, at most
	median   time.Duration // from the entry to the poll, at most
	mostLate time.Duration
	lost     float64 // in percent, more than by a reader that asks each hour itself, at most
}

const day = 24 * time.Hour

var typicalFeeds = []typicalFeed{
	{name: "front page, 250 entries a day, 30 listed", entries: 250, listed: 30, header: `ETag: "`, polls: 24, median: time.Hour, mostLate: 70 * time.Minute},
	{name: "list of the newest, 1,000 a day, 20 listed", entries: 1000, listed: 20, header: `ETag: "`, polls: 24, median: time.Hour, mostLate: 70 * time.Minute, lost: 3},
	{name: "daily blog", entries: 1, listed: 20, header: `ETag: "`, polls: 24, median: time.Hour, mostLate: 5 * time.Hour},
	{name: "weekly podcast", entries: 1. / 7, listed: 20, header: `ETag: "`, polls: 4, median: 6 * time.Hour, mostLate: 15 * time.Hour},
	{name: "the same of WordPress: sy hourly, 1", entries: 1. / 7, listed: 20, header: `ETag: "`, channel: "<sy:updatePeriod>hourly</sy:updatePeriod><sy:updateFrequency>1</sy:updateFrequency>", polls: 4, median: 6 * time.Hour, mostLate: 15 * time.Hour},
	{name: "podcast, weekly for years, daily now", entries: 1, before: 1. / 7, listed: 300, header: `ETag: "`, polls: 24, median: time.Hour, mostLate: 12 * time.Hour},
	{name: "blog, an entry a month", entries: 1. / 30, listed: 10, header: `ETag: "`, polls: 1.2, median: 14 * time.Hour, mostLate: day},
	{name: "the same, each 20th poll is a 502", entries: 1. / 30, listed: 10, header: `ETag: "`, status: 502, failing: 20, polls: 1.2, median: 14 * time.Hour, mostLate: 31 * time.Hour},
	{name: "forum, 400 a day, 25 listed, each third poll is a 429", entries: 400, listed: 25, header: `ETag: "`, status: 429, failing: 3, polls: 20, median: time.Hour, mostLate: 4 * time.Hour, lost: 25},
	{name: "newsletter, 2 a week, max-age=600", entries: 2. / 7, listed: 20, header: "Cache-Control: max-age=600", polls: 24, median: time.Hour, mostLate: 70 * time.Minute},
	{name: "news, 60 a day, 10 listed, ttl=5", entries: 60, listed: 10, channel: "<ttl>5</ttl>", polls: 24, median: time.Hour, mostLate: 70 * time.Minute},
	{name: "news, 40 a day, 20 listed, max-age=86400", entries: 40, listed: 20, header: "Cache-Control: max-age=86400", polls: 1.1, median: 14 * time.Hour, mostLate: 25 * time.Hour, lost: 55},
	{name: "news, 40 a day, 20 listed, no validators", entries: 40, listed: 20, polls: 6.1, median: 3 * time.Hour, mostLate: 9 * time.Hour},
	{name: "local paper, 12 a day, 10 listed, no validators", entries: 12, listed: 10, polls: 6.1, median: 3 * time.Hour, mostLate: 10 * time.Hour},
	{name: "the same without dates", entries: 12, listed: 10, noDates: true, polls: 1.1, median: 14 * time.Hour, mostLate: 25 * time.Hour, lost: 25},
	{name: "weekly podcast, no validators", entries: 1. / 7, listed: 20, polls: 1.1, median: 20 * time.Hour, mostLate: 25 * time.Hour},
	{name: "dead for 5 years, daily before", entries: 1, listed: 20, header: `ETag: "`, silent: 5 * 365 * day, polls: 1.05},
	{name: "dead for 5 years, one entry", entries: 1, listed: 1, header: `ETag: "`, silent: 5 * 365 * day, polls: 1.05},
}

// Typical feeds, polled as decided: how often, how late a new entry is seen, and how many are not. The
// table of bench/RESULTS.md is what this test prints with -v.
func TestTypicalFeeds(t *testing.T) {
	for _, f := range typicalFeeds {
		days := 30 * max(1, int(min(30, 2/f.entries)))
		random := rand.New(rand.NewPCG(1, 2))
		published := f.published(random, time.Duration(days)*day)
		_, _, alone := f.read(published, days, func(at time.Time, _ policy.Answer, _ []byte) time.Time { return at.Add(time.Hour) })
		var h policy.History
		polls, delays, lost := f.read(published, days, func(at time.Time, a policy.Answer, body []byte) time.Time {
			var d *policy.Document
			if body != nil {
				d, _ = document.Read(body, "", at)
			}
			h = h.Update(a, d, false)
			decided := policy.Decide(policy.DefaultRules(), h, a, random.Float64())
			h = h.Decided(decided)
			return decided.Next
		})
		slices.Sort(delays)
		late := "- | -"
		var median, most time.Duration
		if n := len(delays); n > 0 {
			median, most = delays[n/2], delays[n-1]
			late = fmt.Sprintf("%.1f h | %.1f h", median.Hours(), most.Hours())
		}
		perDay := float64(polls) / float64(days)
		t.Logf("| %s | %.1f | %s | %.0f %% | %.0f %% |", f.name, perDay, late, lost, alone)
		if perDay > f.polls || median > f.median || most > f.mostLate || lost > alone+f.lost {
			t.Errorf("%s: %.1f polls a day, delay %v, at most %v, %.1f %% lost, alone %.1f %%; want at most %+v", f.name, perDay, median, most, lost, alone, f)
		}
	}
}

var modelBegins = time.Date(2026, time.June, 1, 0, 0, 0, 0, time.UTC)

// published returns when entries come, at random, from 40 before the model begins until it ends.
func (f typicalFeed) published(random *rand.Rand, length time.Duration) (all []time.Time) {
	every := func(entries float64) time.Duration { return time.Duration(float64(day) / entries) }
	gap, end := every(f.entries), modelBegins.Add(length)
	if f.before > 0 {
		gap = every(f.before)
	}
	if f.silent > 0 {
		end = modelBegins.Add(-f.silent)
	}
	for at := modelBegins.Add(-f.silent - 40*gap); at.Before(end); all = append(all, at) {
		if at.After(modelBegins) {
			gap = every(f.entries)
		}
		at = at.Add(time.Duration(random.ExpFloat64() * float64(gap)))
	}
	return all
}

// read polls the feed for some days; next returns when the next poll is. It returns the number of polls,
// how late the entries after the first poll were seen, and how many percent never were.
func (f typicalFeed) read(published []time.Time, days int, next func(time.Time, policy.Answer, []byte) time.Time) (polls int, delays []time.Duration, lost float64) {
	seen, missed := -1, 0
	for at := modelBegins; at.Before(modelBegins.Add(time.Duration(days) * day)); {
		polls++
		a := policy.Answer{Asked: at, At: at, Status: http.StatusOK, Header: http.Header{}}
		if name, value, ok := strings.Cut(f.header, ": "); ok {
			a.Header.Set(name, value)
		}
		if f.failing > 0 && polls%f.failing == 0 {
			if a.Status, a.Failure = f.status, policy.FailureStatus; f.status == http.StatusTooManyRequests {
				a.Failure = policy.FailureRateLimited
			}
			at = next(at, a, nil)
			continue
		}
		n, _ := slices.BinarySearchFunc(published, at, time.Time.Compare)
		if seen >= 0 {
			missed += max(0, n-seen-f.listed)
			for i := max(seen, n-f.listed); i < n; i++ {
				delays = append(delays, at.Sub(published[i]))
			}
		}
		var body []byte
		if n != seen {
			body = f.document(published[:n])
		} else if f.header != "" {
			a.Status = http.StatusNotModified
		}
		seen = n
		at = next(at, a, body)
	}
	return polls, delays, 100 * float64(missed) / float64(max(1, missed+len(delays)))
}

// document returns the document when these entries have been published.
func (f typicalFeed) document(published []time.Time) []byte {
	b := []byte(`<rss version="2.0" xmlns:sy="http://purl.org/rss/1.0/modules/syndication/"><channel><title>t</title>` + f.channel)
	for i := len(published) - 1; i >= max(0, len(published)-f.listed); i-- {
		b = fmt.Appendf(b, "<item><guid>%d</guid>", i)
		if !f.noDates {
			b = published[i].AppendFormat(b, "<pubDate>"+time.RFC1123Z+"</pubDate>")
		}
		b = append(b, "</item>"...)
	}
	return append(b, "</channel></rss>"...)
}
