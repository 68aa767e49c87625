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

	"github.com/feedpollard/pollard/internal/origintest"
)

// feed is one of the six feeds. Each has a host of its own.
type feed struct {
	every   float64 // hours from one entry to the next
	entries int     // that the document has
	about   string
}

var feeds = [...]feed{
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

	mu                               sync.Mutex
	requests, unconditional, refused int64
	bytes                            int64
	last, closed                     time.Time // of the host with a limit: its last request; until when it refuses all
}

// host is the address of a feed's host. All listen on the port of the first.
func host(feed int) string { return fmt.Sprintf("127.0.4.%d", feed+1) }

// listen starts the hosts, and returns their port.
func (s *sites) listen() (port int, stop func(), err error) {
	var servers []*http.Server
	stop = func() {
		for _, server := range servers {
			_ = server.Close()
		}
	}
	for i := range feeds {
		l, err := net.Listen("tcp", net.JoinHostPort(host(i), strconv.Itoa(port)))
		if err != nil {
			stop()
			return 0, nil, err
		}
		port = l.Addr().(*net.TCPAddr).Port
		server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.serve(w, r, i) })}
		servers = append(servers, server)
		go func() { _ = server.Serve(l) }()
	}
	return port, stop, nil
}

func (s *sites) serve(w http.ResponseWriter, r *http.Request, i int) {
	now := time.Now()
	hours := now.Sub(s.began).Hours() / s.hour.Hours()
	status, kind, body := http.StatusOK, "application/rss+xml", s.document(i, now)
	switch {
	case i == 2 && s.refuses(now, w.Header()):
		status, kind, body = http.StatusTooManyRequests, "text/plain", "slow down"
	case i == 3 && hours > 6 && hours < 8:
		status, kind, body = http.StatusInternalServerError, "text/plain", "oops"
	case i == 3 && hours > 12 && hours < 14:
		kind, body = "text/html", "<!doctype html><html><title>Just a moment...</title>"
	case i == 3 && hours > 18 && hours < 19:
		status, kind, body = http.StatusNotFound, "text/plain", "no such file"
	case i != 1:
		newest := s.newest(i, now)
		tag, date := fmt.Sprintf(`"%d-%d"`, i, newest), s.published(i, newest).UTC().Format(http.TimeFormat)
		w.Header().Set("Etag", tag)
		w.Header().Set("Last-Modified", date)
		if i == 4 {
			w.Header().Set("Cache-Control", fmt.Sprintf("max-age=%.0f", (4*s.hour).Seconds()))
		}
		if given := r.Header.Get("If-None-Match"); given == tag || given == "" && r.Header.Get("If-Modified-Since") == date {
			status, body = http.StatusNotModified, ""
		}
	}
	w.Header().Set("Content-Type", kind)
	w.WriteHeader(status)
	sent := 250 // of the header, about
	if r.Method != http.MethodHead {
		n, _ := w.Write([]byte(body))
		sent += n
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests++
	s.bytes += int64(sent)
	if r.Header.Get("If-None-Match") == "" && r.Header.Get("If-Modified-Since") == "" {
		s.unconditional++
	}
	if status == http.StatusTooManyRequests {
		s.refused++
	}
}

// refuses reports whether the host with a limit refuses a request.
func (s *sites) refuses(now time.Time, h http.Header) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.After(s.closed) {
		if now.Sub(s.last) >= s.hour*45/100 {
			s.last = now
			return false
		}
		s.closed = now.Add(2 * s.hour)
	}
	h.Set("Retry-After", strconv.Itoa(int(s.closed.Sub(now).Seconds())+1))
	return true
}

// newest is the number of the newest entry of a feed. The first is 0, and as old as the day.
func (s *sites) newest(i int, now time.Time) int {
	return int(now.Sub(s.began).Hours() / s.hour.Hours() / feeds[i].every)
}

func (s *sites) published(i, entry int) time.Time {
	return s.began.Add(time.Duration(float64(entry) * feeds[i].every * float64(s.hour)))
}

func (s *sites) document(i int, now time.Time) string {
	var b strings.Builder
	fmt.Fprintf(&b, `<?xml version="1.0"?><rss version="2.0"><channel><title>feed %d</title><link>http://example.com/</link><description>%s</description>`, i, feeds[i].about)
	text := strings.Repeat("x", 1500)
	if i == 1 {
		fmt.Fprintf(&b, "<lastBuildDate>%s</lastBuildDate>", now.Format(time.RFC1123Z))
		text = strings.Repeat("x", 8000)
	}
	newest := s.newest(i, now)
	for entry := newest; entry >= 0 && entry > newest-feeds[i].entries; entry-- {
		fmt.Fprintf(&b, `<item><title>%d</title><guid isPermaLink="false">entry-%d-%d</guid><description>%s</description></item>`, entry, i, entry, text)
	}
	return b.String() + "</channel></rss>"
}

// limitedFeeds is how many feeds the host of the second comparison has.
const limitedFeeds = 20

// limited is what became of the second comparison.
type limited struct {
	answered, refused, missing int
}

// limitedHost allows a request every three seconds for all of its feeds together, and says so
// in X-RateLimit fields only.
func limitedHost(seen *limited) *origintest.Origin {
	var mu sync.Mutex
	var last time.Time
	return &origintest.Origin{Answer: func(r *http.Request) origintest.Answer {
		mu.Lock()
		defer mu.Unlock()
		const every = 3 * time.Second
		allowed := time.Since(last) >= every
		if allowed {
			last = time.Now()
			seen.answered++
		} else {
			seen.refused++
		}
		reset := strconv.Itoa(int((every - time.Since(last)).Seconds()) + 1)
		fields := []string{"X-Ratelimit-Remaining", "0.0", "X-Ratelimit-Reset", reset}
		if !allowed {
			return origintest.Status(http.StatusTooManyRequests, fields...).WithBody("too many requests")
		}
		return origintest.OK(origintest.Document{Entries: 1}.String(), fields...)
	}}
}
