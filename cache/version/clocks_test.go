// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package version_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"sort"
	"testing"
	"time"

	"github.com/feedpollard/pollard/cache/version"
)

// history is a feed with its versions: each shows the newest fifteen of so many entries.
type history struct {
	published []time.Time
	versions  []*version.Version
	at        []time.Time // when all nodes serve the version
	entries   []int       // published by then
}

const (
	days   = 60
	newest = "the date of the newest entry"
)

var began = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)

// historyOf makes a feed with an entry a day, which is polled each hour.
func historyOf(random *rand.Rand) (h history) {
	end := began.AddDate(0, 0, days)
	for t := began; t.Before(end); {
		t = t.Add(time.Duration(random.ExpFloat64() * float64(24*time.Hour)))
		h.published = append(h.published, t)
	}
	for t, before := began, (time.Time{}); t.Before(end); t = t.Add(time.Hour + time.Duration(random.Float64()*float64(6*time.Minute))) {
		n := sort.Search(len(h.published), func(i int) bool { return h.published[i].After(t) })
		if n == 0 || len(h.entries) > 0 && n == h.entries[len(h.entries)-1] {
			continue
		}
		v := &version.Version{Tag: fmt.Sprintf("version%d", n), LastModified: version.LastModified(before, t), Since: t}
		before = v.LastModified
		h.versions, h.at, h.entries = append(h.versions, v), append(h.at, t.Add(20*time.Second)), append(h.entries, n)
	}
	return h
}

// client is how a reader makes its conditions.
type client struct {
	name string
	// condition returns a field, or nothing. held is the version that the reader has, asked when it asked
	// last.
	condition func(h history, held int, asked time.Time) (name, value string)
	ahead     time.Duration // of its clock
}

// Each way in which readers make their dates shows them all entries. A reader whose clock is ahead by
// less than the time between two of its requests cannot be told from one that has the version.
func TestReadersOfDatesLoseNothing(t *testing.T) {
	date := func(t time.Time) (string, string) { return "If-Modified-Since", t.UTC().Format(http.TimeFormat) }
	clock := func(ahead time.Duration) client {
		return client{name: "own clock " + ahead.String(), ahead: ahead, condition: func(_ history, _ int, asked time.Time) (string, string) { return date(asked.Add(ahead)) }}
	}
	given := client{name: "the date that it was given", condition: func(h history, held int, _ time.Time) (string, string) { return date(h.versions[held].LastModified) }}
	dated := client{name: newest, condition: func(h history, held int, _ time.Time) (string, string) { return date(h.published[h.entries[held]-1]) }}
	tag := client{name: "an ETag, and a date made up", condition: func(h history, held int, _ time.Time) (string, string) {
		return "If-None-Match", h.versions[held].ETag(version.Gzip)
	}}
	readers := []client{given, dated, tag, clock(0), clock(20 * time.Minute), clock(2 * time.Hour), clock(-5 * time.Hour)}
	for _, every := range []time.Duration{5 * time.Minute, 30 * time.Minute, time.Hour, 4 * time.Hour, 8 * time.Hour} {
		for _, c := range readers {
			lost, entries, again, versions := 0, 0, 0, 0
			for seed := range uint64(6) {
				h := historyOf(rand.New(rand.NewPCG(seed, 1)))
				l, n, a := c.read(h, every, rand.New(rand.NewPCG(seed, 2)))
				lost, entries, again, versions = lost+l, entries+n, again+a, versions+len(h.versions)
			}
			if lost > 0 && (c.ahead <= time.Hour || every <= c.ahead || lost > entries/50) {
				t.Errorf("%s, each %v: %d of %d entries are lost", c.name, every, lost, entries)
			}
			if most := c.downloads(every); float64(again) > most*float64(versions)+3 {
				t.Errorf("%s, each %v: %.1f repeated downloads per version, want at most %.1f", c.name, every, float64(again)/float64(versions), most)
			}
			t.Logf("%-30s each %-8v lost %d of %d, %.1f repeated downloads per version", c.name, every, lost, entries, float64(again)/float64(versions))
		}
	}
}

// downloads is how often a reader may download a version again: its requests of a day if its clock is
// ahead of ours, otherwise those of the hour, and of the time by which it is behind, after a version.
func (c client) downloads(every time.Duration) float64 {
	switch {
	case c.name == newest:
		return float64(26*time.Hour) / float64(every) // Pollard gave it no such date
	case c.name[0] != 'o':
		return 0
	case c.ahead > time.Minute && c.ahead > every:
		return float64(26*time.Hour) / float64(every)
	}
	return float64(time.Hour+max(0, -c.ahead))/float64(every) + 0.3
}

// read asks for the feed again and again. It returns how many of its entries the reader never saw, of how
// many, and how often it was sent a version that it had.
func (c client) read(h history, every time.Duration, random *rand.Rand) (lost, entries, again int) {
	held, seen, first := -1, map[int]bool{}, began.AddDate(0, 0, 2)
	var asked time.Time
	for t := began.Add(time.Duration(random.Float64() * float64(every))); t.Before(began.AddDate(0, 0, days-2)); t = t.Add(every + time.Duration(random.Float64()*float64(every)/50)) {
		now := sort.Search(len(h.at), func(i int) bool { return h.at[i].After(t) }) - 1
		if now < 0 {
			continue
		}
		request := http.Header{}
		if held >= 0 {
			name, value := c.condition(h, held, asked)
			request.Set(name, value)
		}
		asked = t
		if h.versions[now].NotModified(request, t) {
			continue
		}
		if now == held {
			again++
		}
		held = now
		for i := max(0, h.entries[now]-15); i < h.entries[now]; i++ {
			seen[i] = true
		}
	}
	for i, t := range h.published {
		if t.After(first) && t.Before(began.AddDate(0, 0, days-4)) {
			if entries++; !seen[i] {
				lost++
			}
		}
	}
	return lost, entries, again
}
