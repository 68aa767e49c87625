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
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/feedpollard/pollard/bench/internal/rig"
)

// kinds are the kinds of readers that publishers describe.
var kinds = [...]struct {
	name    string
	readers int
	hours   float64 // from one request to the next
}{
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
	kind  string
	hours float64
	feed  int
	tag   string
	date  string            // that it sends back
	seen  map[int]time.Time // entries, by number

	errors, bytes int64
}

// household is the readers by number, as their kinds.
func household() (kindOf []int) {
	for kind, k := range kinds {
		kindOf = append(kindOf, slices.Repeat([]int{kind}, k.readers)...)
	}
	return kindOf
}

// day is what became of the day.
type day struct {
	sites         *sites
	errors, bytes int64
	readers       []*reader
}

// spend runs the day.
func spend(w way, hour time.Duration) day {
	s := &sites{hour: hour}
	urls, stop := w.open(s.listen(), hour, "")
	defer stop()
	d := day{sites: s}
	s.began = time.Now()
	var wg sync.WaitGroup
	client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 100, DisableCompression: true}}
	for number, kind := range household() {
		random := rand.New(rand.NewPCG(7, uint64(number)))
		every := time.Duration(kinds[kind].hours * float64(hour))
		for i := range feeds {
			r := &reader{kind: kinds[kind].name, hours: kinds[kind].hours, feed: i, seen: make(map[int]time.Time)}
			d.readers = append(d.readers, r)
			first := time.Duration(random.Float64() * float64(min(every, hour)))
			wg.Go(func() {
				for at := s.began.Add(first); at.Before(s.began.Add(24 * hour)); at = at.Add(every) {
					time.Sleep(time.Until(at))
					if !r.ask(client, urls[i]) {
						r.errors++
					}
				}
			})
		}
	}
	wg.Wait()
	for _, r := range d.readers {
		d.errors += r.errors
		d.bytes += r.bytes
	}
	return d
}

var entryOf = regexp.MustCompile(`entry-\d+-(\d+)<`)

// ask requests the feed once, and reports whether that gave the feed or a 304.
func (r *reader) ask(client *http.Client, url string) bool {
	header, methods := http.Header{"User-Agent": {r.kind}}, []string{http.MethodGet}
	if r.tag != "" && (r.kind == "good" || r.kind == "slow") {
		header.Set("If-None-Match", r.tag)
	}
	if r.date != "" && r.kind != "unconditional" && r.kind != "head" && r.kind != "query" {
		header.Set("If-Modified-Since", r.date)
	}
	switch r.kind {
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
	case r.kind == "invented date":
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

// lost counts the entries that readers could have seen, those who ask every eight hours or the others, and those
// of them that a reader never saw. It could see those that are older, at the end of the day, than its own
// interval and two hours.
func (d day) lost(slow bool) string {
	var lost, all int
	for _, r := range d.readers {
		if (r.kind == "slow") != slow {
			continue
		}
		countable := int((24 - r.hours - 2) / feeds[r.feed].every)
		all += countable
		for entry := 1; entry <= countable; entry++ {
			if _, seen := r.seen[entry]; !seen {
				lost++
			}
		}
	}
	return fmt.Sprintf("%d of %d", lost, all)
}

// meanDelay returns the hours from publication to good and unconditional readers, of the blogs that do not fail
// and have validators.
func (d day) meanDelay() float64 {
	var hours float64
	n := 0
	for _, r := range d.readers {
		if r.feed != 0 && r.feed != 4 || r.kind != "good" && r.kind != "unconditional" {
			continue
		}
		for entry, at := range r.seen {
			if entry > 0 {
				hours += at.Sub(d.sites.published(r.feed, entry)).Hours() / d.sites.hour.Hours()
				n++
			}
		}
	}
	return hours / float64(max(n, 1))
}

// spendLimited runs the second comparison.
func spendLimited(w way) (l limited) {
	address := listen("127.0.0.1", limitedHost(&l))
	urls := make([]string, limitedFeeds)
	for i := range urls {
		urls[i] = fmt.Sprintf("http://%s/feed%d", address, i)
	}
	urls, stop := w.open(urls, 20*time.Second, address)
	defer stop()
	client := &http.Client{Timeout: 25 * time.Second}
	var wg sync.WaitGroup
	got := make([]bool, limitedFeeds)
	for range 4 {
		next := time.Now().Add(30 * time.Second)
		for i, url := range urls {
			wg.Go(func() {
				response, err := client.Get(url)
				if err != nil {
					return
				}
				defer response.Body.Close()
				body, _ := io.ReadAll(response.Body)
				got[i] = got[i] || response.StatusCode == http.StatusOK && strings.Contains(string(body), "<item")
			})
		}
		wg.Wait()
		time.Sleep(time.Until(next))
	}
	for _, g := range got {
		if !g {
			l.missing++
		}
	}
	return l
}
