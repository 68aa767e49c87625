// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/feedpollard/pollard/bench/internal/rig"
	"github.com/feedpollard/pollard/internal/origintest"
)

// feed is a feed of a comparison.
type feed struct {
	every   float64 // hours from one entry to the next
	entries int     // that the document has
	about   string
}

// feeds are those of the two days. Each has a host of its own.
var feeds = []feed{
	{6, 10, "a blog with ETag and Last-Modified"},
	{6, 10, "a blog without validators, whose lastBuildDate is always now"},
	{6, 10, "a host that allows two requests an hour, and is closed for two hours after more"},
	{6, 10, "a site with two hours of 500, two of a page for browsers, and one of 404"},
	{6, 10, "a blog that asks for polls every four hours"},
	{0.2, 15, "news"},
}

// limitedFeeds are at one host, which allows a request every three seconds for all of them together, and says
// so in X-RateLimit fields only.
var limitedFeeds = slices.Repeat([]feed{{1, 1, "a feed of a host with a limit"}}, 20)

// sites are the hosts of some feeds, and what they saw.
type sites struct {
	feeds   []feed
	oneHost bool // has all of them
	began   time.Time
	hour    time.Duration

	mu                                      sync.Mutex
	requests, unconditional, refused, bytes int64
	last, closed                            time.Time // of the host with a limit: its last request; until when it refuses all
}

// listen starts the hosts, and returns the URLs of the feeds.
func (s *sites) listen() (urls []string) {
	var address string
	for i := range s.feeds {
		if i == 0 || !s.oneHost {
			l := rig.Must(net.Listen("tcp", fmt.Sprintf("127.0.4.%d:0", i+1)))
			go http.Serve(l, &origintest.Origin{Answer: s.answer}) //nolint:errcheck // ends with the process
			address = l.Addr().String()
		}
		urls = append(urls, fmt.Sprintf("http://%s/feed%d", address, i))
	}
	return urls
}

func (s *sites) answer(r *http.Request) origintest.Answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := rig.Must(strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/feed")))
	now := time.Now()
	hours := now.Sub(s.began).Hours() / s.hour.Hours()
	newest := int(hours / s.feeds[i].every) // its number; the first is 0, and as old as the first day
	hours = math.Mod(hours, day)            // what follows is each day's
	a := origintest.OK(s.document(i, newest, now))
	switch {
	case s.oneHost:
		if s.refuses(now, 3*time.Second, 0) {
			a = origintest.Status(http.StatusTooManyRequests)
		}
		a.Header.Set("X-Ratelimit-Remaining", "0.0")
		a.Header.Set("X-Ratelimit-Reset", strconv.Itoa(int(time.Until(s.last.Add(3*time.Second)).Seconds())+1))
	case i == 2 && s.refuses(now, s.hour*45/100, 2*s.hour):
		a = origintest.Status(http.StatusTooManyRequests, "Retry-After", strconv.Itoa(int(s.closed.Sub(now).Seconds())+1))
	case i == 3 && hours > 6 && hours < 8:
		a = origintest.Status(http.StatusInternalServerError)
	case i == 3 && hours > 12 && hours < 14:
		a = origintest.OK("<!doctype html><html><title>Just a moment...</title>", "Content-Type", "text/html")
	case i == 3 && hours > 18 && hours < 19:
		a = origintest.Status(http.StatusNotFound)
	case i != 1:
		a.Conditional = true
		a.Header.Set("ETag", fmt.Sprintf(`"%d-%d"`, i, newest))
		a.Header.Set("Last-Modified", s.published(i, newest).UTC().Format(http.TimeFormat))
		if i == 4 {
			a.Header.Set("Cache-Control", fmt.Sprintf("max-age=%.0f", (4*s.hour).Seconds()))
		}
	}
	s.requests++
	s.bytes += 250 // of the header, about
	if r.Method != http.MethodHead && !a.NotModified(r) {
		s.bytes += int64(len(a.Body))
	}
	if r.Header.Get("If-None-Match") == "" && r.Header.Get("If-Modified-Since") == "" {
		s.unconditional++
	}
	return a
}

// refuses reports whether a host that allows a request in some time refuses one, and counts that. Afterwards it
// is closed.
func (s *sites) refuses(now time.Time, every, closed time.Duration) bool {
	switch {
	case now.Before(s.closed):
	case now.Sub(s.last) < every:
		s.closed = now.Add(closed)
	default:
		s.last = now
		return false
	}
	s.refused++
	return true
}

func (s *sites) published(i, entry int) time.Time {
	return s.began.Add(time.Duration(float64(entry) * s.feeds[i].every * float64(s.hour)))
}

func (s *sites) document(i, newest int, now time.Time) string {
	var b strings.Builder
	fmt.Fprintf(&b, `<?xml version="1.0"?><rss version="2.0"><channel><title>feed %d</title><link>http://example.com/</link><description>%s</description>`, i, s.feeds[i].about)
	text := strings.Repeat("x", 1500)
	if i == 1 {
		fmt.Fprintf(&b, "<lastBuildDate>%s</lastBuildDate>", now.Format(time.RFC1123Z))
		text = strings.Repeat("x", 8000)
	}
	for entry := newest; entry >= 0 && entry > newest-s.feeds[i].entries; entry-- {
		fmt.Fprintf(&b, `<item><title>%d</title><guid isPermaLink="false">entry-%d-%d</guid><description>%s</description></item>`, entry, i, entry, text)
	}
	return b.String() + "</channel></rss>"
}
