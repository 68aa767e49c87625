// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/feedpollard/pollard/bench/internal/rig"
)

// kind is a kind of readers.
type kind struct {
	name    string
	readers int
	hours   float64 // from one request to the next
}

// kinds are those that publishers describe.
var kinds = []kind{
	{"good", 15, 1},            // sends ETag and date back
	{"unconditional", 10, 0.5}, // sends neither
	{"head", 2, 0.25},          // HEAD, HEAD, GET, unconditional
	{"date", 6, 1},             // sends the date back, without the ETag
	{"invented date", 6, 0.5},  // sends the time of its own last request
	{"query", 6, 1},            // adds a new query each time, and no-cache
	{"slow", 5, 8},             // as good, every eight hours
}

// reader is one reader with one of its feeds.
type reader struct {
	kind
	feed int
	tag  string
	date string            // that it sends back
	seen map[int]time.Time // entries, by number

	errors, bytes int64
}

// result is what became of readers and sites.
type result struct {
	*sites
	readers []*reader
}

// spend has readers of some kinds ask for the feeds of some sites for hours. Each asks for all of them at once.
func (w way) spend(s *sites, kinds []kind, hours time.Duration) result {
	urls, stop := w.open(s.listen(), s)
	defer stop()
	got := result{sites: s}
	s.began = time.Now()
	var wg sync.WaitGroup
	client := &http.Client{Timeout: 25 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 100, DisableCompression: true}}
	for _, k := range kinds {
		every := time.Duration(k.hours * float64(s.hour))
		for number := range k.readers {
			random := rand.New(rand.NewPCG(uint64(number), uint64(every)))
			first := s.began.Add(time.Duration(random.Float64() * float64(min(every, s.hour))))
			for i := range s.feeds {
				r := &reader{kind: k, feed: i, seen: make(map[int]time.Time)}
				got.readers = append(got.readers, r)
				wg.Go(func() {
					for at := first; at.Before(s.began.Add(hours * s.hour)); at = at.Add(every) {
						time.Sleep(time.Until(at))
						if !r.ask(client, urls[i]) {
							r.errors++
						}
					}
				})
			}
		}
	}
	wg.Wait()
	return got
}

// sum adds a figure of all readers.
func (got result) sum(of func(*reader) int64) (total int64) {
	for _, r := range got.readers {
		total += of(r)
	}
	return total
}

var entryOf = regexp.MustCompile(`entry-\d+-(\d+)<`)

// ask requests the feed once, and reports whether that gave the feed or a 304.
func (r *reader) ask(client *http.Client, url string) bool {
	header, methods := http.Header{"User-Agent": {r.name}}, []string{http.MethodGet}
	if r.tag != "" && (r.name == "good" || r.name == "slow") {
		header.Set("If-None-Match", r.tag)
	}
	if r.date != "" && r.name != "unconditional" && r.name != "head" && r.name != "query" {
		header.Set("If-Modified-Since", r.date)
	}
	switch r.name {
	case "query":
		header.Set("Cache-Control", "no-cache")
		url += fmt.Sprintf("?_=%d", time.Now().Unix())
	case "head":
		methods = []string{http.MethodHead, http.MethodHead, http.MethodGet}
	}
	var response *http.Response
	var body []byte
	asked := time.Now()
	for _, method := range methods {
		request := rig.Must(http.NewRequest(method, url, nil))
		request.Header = maps.Clone(header)
		var err error
		if response, err = client.Do(request); err != nil {
			return false
		}
		body, err = io.ReadAll(response.Body)
		_ = response.Body.Close()
		if err != nil {
			return false
		}
		r.bytes += int64(len(body)) + 250
	}
	isFeed := response.StatusCode == http.StatusOK && strings.Contains(string(body), "<rss")
	switch {
	case !isFeed && response.StatusCode != http.StatusNotModified:
		return false
	case r.name == "invented date":
		r.date = asked.UTC().Format(http.TimeFormat)
	case isFeed:
		r.tag, r.date = response.Header.Get("Etag"), response.Header.Get("Last-Modified")
	}
	for _, m := range entryOf.FindAllSubmatch(body, -1) {
		number, _ := strconv.Atoi(string(m[1]))
		if _, known := r.seen[number]; !known {
			r.seen[number] = time.Now()
		}
	}
	return true
}

const (
	day = 24 // hours
	all = -1 // the feeds of all sites
)

// fate is what became of entries at the readers that could have seen them.
type fate struct {
	entries, unseen, tardy int
	hours                  float64 // from publication, of those that were seen
}

// fate is that of the entries of the first day, of one feed or of all, at the readers that ask every eight hours or at
// the others. They had the second day to come.
func (got result) fate(feed int, slow bool) (f fate) {
	for _, r := range got.readers {
		if (r.name == "slow") != slow || feed != all && feed != r.feed {
			continue
		}
		for entry := 1; entry <= int(day/got.feeds[r.feed].every); entry++ {
			f.entries++
			at, seen := r.seen[entry]
			if !seen {
				f.unseen++
				continue
			}
			hours := at.Sub(got.published(r.feed, entry)).Hours() / got.hour.Hours()
			f.hours += hours
			if hours > 8 {
				f.tardy++
			}
		}
	}
	return f
}

func (f fate) never() string { return fmt.Sprintf("%d of %d", f.unseen, f.entries) }
func (f fate) late() string  { return fmt.Sprintf("%d of %d", f.tardy, f.entries) }
func (f fate) mean() float64 { return f.hours / float64(max(f.entries-f.unseen, 1)) }
