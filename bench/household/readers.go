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
	kind, feed int
	tag, date  string
	asked      time.Time
	seen       map[int]time.Time // entries, by number
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
	sites  *sites
	length time.Duration
	errors int64
	bytes  int64
	delay  float64 // hours, mean of the slow feeds that do not fail
	all    []*reader
}

// spend runs the day.
func spend(w way, hour time.Duration) (d day, err error) {
	s := &sites{hour: hour}
	port, stop, err := s.listen()
	if err != nil {
		return d, err
	}
	defer stop()
	urls := make([]string, len(feeds))
	for i := range feeds {
		urls[i] = fmt.Sprintf("http://%s:%d/feed%d", host(i), port, i)
	}
	if err := w.start(urls, hour, ""); err != nil {
		return d, err
	}
	defer w.stop()

	d = day{sites: s, length: 24 * hour}
	s.began = time.Now()
	var mu sync.Mutex // guards d
	var wg sync.WaitGroup
	client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 100, DisableCompression: true}}
	for number, kind := range household() {
		random := rand.New(rand.NewPCG(7, uint64(number)))
		every := time.Duration(kinds[kind].hours * float64(hour))
		for i := range feeds {
			r := &reader{kind: kind, feed: i, seen: make(map[int]time.Time)}
			d.all = append(d.all, r)
			first := time.Duration(random.Float64() * float64(min(every, hour)))
			wg.Go(func() {
				for at := s.began.Add(first); at.Before(s.began.Add(d.length)); at = at.Add(every) {
					time.Sleep(time.Until(at))
					sent, failed := r.ask(client, w.url(urls, i), s)
					mu.Lock()
					d.bytes += sent
					if failed {
						d.errors++
					}
					mu.Unlock()
				}
			})
		}
	}
	wg.Wait()
	d.delay = d.meanDelay()
	return d, nil
}

var entryOf = regexp.MustCompile(`entry-\d+-(\d+)<`)

// ask requests the feed once, and returns how many bytes came, and whether it was an error
// or something else than a feed.
func (r *reader) ask(client *http.Client, url string, s *sites) (bytes int64, failed bool) {
	header, methods := http.Header{"User-Agent": {kinds[r.kind].name}}, []string{http.MethodGet}
	switch kinds[r.kind].name {
	case "good", "slow":
		set(header, "If-None-Match", r.tag)
		set(header, "If-Modified-Since", r.date)
	case "date":
		set(header, "If-Modified-Since", r.date)
	case "invented date":
		if !r.asked.IsZero() {
			set(header, "If-Modified-Since", r.asked.UTC().Format(http.TimeFormat))
		}
	case "query":
		header.Set("Cache-Control", "no-cache")
		url += fmt.Sprintf("?_=%d", time.Now().Unix())
	case "head":
		methods = []string{http.MethodHead, http.MethodHead, http.MethodGet}
	}
	var status int
	var answer http.Header
	var body []byte
	asked := time.Now()
	for _, method := range methods {
		request, err := http.NewRequest(method, url, nil)
		if err != nil {
			return bytes, true
		}
		request.Header = maps.Clone(header)
		response, err := client.Do(request)
		if err != nil {
			return bytes, true
		}
		body, err = io.ReadAll(response.Body)
		_ = response.Body.Close()
		if err != nil {
			return bytes, true
		}
		status, answer = response.StatusCode, response.Header
		bytes += int64(len(body)) + 250
	}
	switch {
	case status == http.StatusNotModified:
		r.asked = asked
		return bytes, false
	case status != http.StatusOK || !strings.Contains(string(body), "<rss"):
		return bytes, true
	}
	r.tag, r.date, r.asked = answer.Get("Etag"), answer.Get("Last-Modified"), asked
	for _, m := range entryOf.FindAllSubmatch(body, -1) {
		number, _ := strconv.Atoi(string(m[1]))
		if _, known := r.seen[number]; !known {
			r.seen[number] = time.Now()
		}
	}
	return bytes, false
}

func set(h http.Header, name, value string) {
	if value != "" {
		h.Set(name, value)
	}
}

// countable is how many entries a reader could have seen: those that are older, at the end of the day,
// than its own interval and two hours.
func (d day) countable(r *reader) int {
	hours := d.length.Hours()/d.sites.hour.Hours() - kinds[r.kind].hours - 2
	return int(hours / feeds[r.feed].every)
}

// lost counts the entries of some kinds of readers, and those of them that a reader never saw.
func (d day) lost(of func(kind int) bool) string {
	var lost, all int
	for _, r := range d.all {
		if !of(r.kind) {
			continue
		}
		all += d.countable(r)
		for entry := 1; entry <= d.countable(r); entry++ {
			if _, seen := r.seen[entry]; !seen {
				lost++
			}
		}
	}
	return fmt.Sprintf("%d of %d", lost, all)
}

func (d day) meanDelay() float64 {
	var hours float64
	n := 0
	for _, r := range d.all {
		if kind := kinds[r.kind].name; r.feed != 0 && r.feed != 4 || kind != "good" && kind != "unconditional" {
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
func spendLimited(w way) (l limited, err error) {
	origin := limitedHost(&l)
	server, address, err := serve(origin)
	if err != nil {
		return l, err
	}
	defer server.Close()
	// Limits of hosts without a public name count for each URL alone, so Pollard comes to this one by a name and a proxy.
	name := address
	if w.proxied {
		name = "limited.example"
	}
	urls := make([]string, limitedFeeds)
	for i := range urls {
		urls[i] = fmt.Sprintf("http://%s/feed%d", name, i)
	}
	if err := w.start(urls, 20*time.Second, address); err != nil {
		return l, err
	}
	defer w.stop()
	client := &http.Client{Timeout: 25 * time.Second}
	var wg sync.WaitGroup
	got := make([]bool, limitedFeeds)
	for range 4 {
		next := time.Now().Add(30 * time.Second)
		for i := range urls {
			wg.Go(func() {
				response, err := client.Get(w.url(urls, i))
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
	return l, nil
}
