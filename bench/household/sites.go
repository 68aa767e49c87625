// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/feedpollard/pollard/bench/internal/rig"
	"github.com/feedpollard/pollard/internal/origintest"
)

// feeds are the six feeds. Each has a host of its own.
var feeds = [...]struct {
	every   float64 // hours from one entry to the next
	entries int     // that the document has
	about   string
}{
	{6, 10, "a blog with ETag and Last-Modified"},
	{6, 10, "a blog without validators, whose lastBuildDate is always now"},
	{6, 10, "a host that allows two requests an hour, and is closed for two hours after more"},
	{6, 10, "a site with two hours of 500, two of a page for browsers, and one of 404"},
	{6, 10, "a blog that asks for polls every four hours"},
	{0.2, 15, "news"},
}

// sites are the hosts of the feeds, and what they saw.
type sites struct {
	began time.Time
	hour  time.Duration

	mu                                      sync.Mutex
	requests, unconditional, refused, bytes int64
	last, closed                            time.Time // of the host with a limit: its last request; until when it refuses all
}

// listen serves something at an address of this machine, until the command ends.
func listen(ip string, h http.Handler) (address string) {
	l := rig.Must(net.Listen("tcp", ip+":0"))
	go http.Serve(l, h) //nolint:errcheck // ends with the process
	return l.Addr().String()
}

// listen starts the hosts, and returns the URLs of the feeds.
func (s *sites) listen() (urls []string) {
	for i := range feeds {
		origin := &origintest.Origin{Answer: func(r *http.Request) origintest.Answer { return s.answer(r, i) }}
		urls = append(urls, fmt.Sprintf("http://%s/feed%d", listen(fmt.Sprint("127.0.4.", i+1), origin), i))
	}
	return urls
}

func (s *sites) answer(r *http.Request, i int) origintest.Answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	hours := now.Sub(s.began).Hours() / s.hour.Hours()
	newest := int(hours / feeds[i].every) // its number; the first is 0, and as old as the day
	a := origintest.OK(document(i, newest, now))
	switch {
	case i == 2 && s.refuses(now):
		a = origintest.Status(http.StatusTooManyRequests, "Retry-After", strconv.Itoa(int(s.closed.Sub(now).Seconds())+1))
		s.refused++
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

// refuses reports whether the host with a limit refuses a request.
func (s *sites) refuses(now time.Time) bool {
	if now.Before(s.closed) {
		return true
	}
	if now.Sub(s.last) < s.hour*45/100 {
		s.closed = now.Add(2 * s.hour)
		return true
	}
	s.last = now
	return false
}

func (s *sites) published(i, entry int) time.Time {
	return s.began.Add(time.Duration(float64(entry) * feeds[i].every * float64(s.hour)))
}

func document(i, newest int, now time.Time) string {
	var b strings.Builder
	fmt.Fprintf(&b, `<?xml version="1.0"?><rss version="2.0"><channel><title>feed %d</title><link>http://example.com/</link><description>%s</description>`, i, feeds[i].about)
	text := strings.Repeat("x", 1500)
	if i == 1 {
		fmt.Fprintf(&b, "<lastBuildDate>%s</lastBuildDate>", now.Format(time.RFC1123Z))
		text = strings.Repeat("x", 8000)
	}
	for entry := newest; entry >= 0 && entry > newest-feeds[i].entries; entry-- {
		fmt.Fprintf(&b, `<item><title>%d</title><guid isPermaLink="false">entry-%d-%d</guid><description>%s</description></item>`, entry, i, entry, text)
	}
	return b.String() + "</channel></rss>"
}

// limitedFeeds is how many feeds the host of the second comparison has.
const limitedFeeds = 20

// limited is what became of the second comparison.
type limited struct{ answered, refused, missing int }

// limitedHost allows a request every three seconds for all of its feeds together, and says so
// in X-RateLimit fields only.
func limitedHost(seen *limited) *origintest.Origin {
	const every = 3 * time.Second
	var mu sync.Mutex
	var last time.Time
	return &origintest.Origin{Answer: func(r *http.Request) origintest.Answer {
		mu.Lock()
		defer mu.Unlock()
		allowed := time.Since(last) >= every
		if allowed {
			last = time.Now()
			seen.answered++
		} else {
			seen.refused++
		}
		fields := []string{"X-Ratelimit-Remaining", "0.0", "X-Ratelimit-Reset", strconv.Itoa(int((every - time.Since(last)).Seconds()) + 1)}
		if !allowed {
			return origintest.Status(http.StatusTooManyRequests, fields...)
		}
		return origintest.OK(origintest.Feed(1, ""), fields...)
	}}
}
