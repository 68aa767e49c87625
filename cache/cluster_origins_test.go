// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/feedpollard/pollard/policy"
)

// The feeds of the origins, by number: three of one host, two of hosts of one domain,
// and one by itself.
var clusterFeeds = []string{
	"https://many.test/0.xml", "https://many.test/1.xml", "https://many.test/2.xml",
	"https://a.pair.test/3.xml", "https://b.pair.test/4.xml",
	"https://single.test/5.xml",
}

const (
	configured = 3 // so many of them, the first
	mostPolls  = 3 // in flight, of one node
	floor      = time.Hour
	spacing    = 2 * time.Second
)

func feedsOf(n int) []string { return clusterFeeds[:n] }

// forEver is longer than any life.
const forEver = 100 * 365 * 24 * time.Hour

// habit is how an origin answers.
type habit struct {
	name   string
	fresh  time.Duration // what its good answers ask for
	pause  time.Duration // what it asks for its whole host
	delay  time.Duration
	ended  bool // it does not want to be asked any more
	answer func(c *visit)
}

// habits of which the first is a good one.
var habits = []habit{
	{name: "feed", answer: feed},
	{name: "stale soon", fresh: time.Minute, answer: feed},
	{name: "fresh", fresh: 20000 * time.Second, answer: feed},
	{name: "slow", delay: 20 * time.Second, answer: feed},
	{name: "silent", delay: time.Hour, answer: feed},
	{name: "cut", answer: func(c *visit) { feed(c); c.cut = true }},
	{name: "500", answer: func(c *visit) { c.status = 500 }},
	{name: "503", pause: 2 * time.Hour, answer: func(c *visit) { c.status = 503; c.header.Set("Retry-After", "7200") }},
	{name: "429", pause: 30000 * time.Second, answer: func(c *visit) { c.status = 429; c.header.Set("Retry-After", "30000") }},
	{name: "bare 429", pause: time.Hour, answer: func(c *visit) { c.status = 429 }},
	{name: "404", answer: func(c *visit) { c.status = 404 }},
	{name: "410", ended: true, answer: func(c *visit) { c.status = 410 }},
	{name: "page", answer: func(c *visit) { c.body = "<!DOCTYPE html><title>Log in</title>" }},
	{name: "empty", answer: func(c *visit) {}},
	{name: "unasked 304", answer: func(c *visit) { c.status = 304 }},
}

// document is a version of a feed.
func document(url string, version int) string {
	return strings.Replace(rss(version, ""), "<title>Test</title>", "<title>"+url+"</title>", 1)
}

// feed is a good answer.
func feed(c *visit) {
	c.version = 1 + int(c.at.Sub(epoch)/(7*time.Hour))
	etag, date := fmt.Sprintf(`"%s %d"`, c.url, c.version), epoch.Add(time.Duration(c.version)*time.Hour).UTC().Format(http.TimeFormat)
	c.good = true
	c.header.Set("ETag", etag)
	c.header.Set("Last-Modified", date)
	if c.habit.fresh > 0 {
		c.header.Set("Cache-Control", fmt.Sprintf("max-age=%d", int(c.habit.fresh.Seconds())))
	}
	if c.sent.ETag == etag {
		c.status = http.StatusNotModified
		return
	}
	c.body = document(c.url, c.version)
}

// visit is a request, and its answer.
type visit struct {
	member *member
	habit  *habit
	url    string
	at     time.Time
	sent   policy.Validators

	status  int
	header  http.Header
	body    string
	delay   time.Duration
	cut     bool // the body breaks off
	good    bool
	version int
}

func (c *visit) response(r *http.Request) *http.Response {
	resp := &http.Response{
		StatusCode: c.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: c.header,
		Body: io.NopCloser(strings.NewReader(c.body)), ContentLength: int64(len(c.body)), Request: r,
	}
	if c.cut {
		resp.Body = io.NopCloser(io.MultiReader(strings.NewReader(c.body[:len(c.body)/2]), &brokenPipe{}))
	}
	return resp
}

type brokenPipe struct{}

func (*brokenPipe) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// site is what an origin knows of one feed.
type site struct {
	habit    *habit
	asked    int
	next     time.Time // when it may be asked again
	byHand   time.Time // the same, where a person wants it
	insisted bool
	ended    bool                // it does not want to be asked any more
	given    []policy.Validators // all that were ever given
	versions map[int]bool        // all that were ever given
	taken    int                 // the newest that has been taken
	takenAt  time.Time
}

// server is what one host knows.
type server struct {
	last  time.Time // request
	by    *link     // that sent it
	pause time.Time // no request may come before
}

// origins are all that a cluster polls. They judge each request when it arrives, and
// remember what its answer asks for.
type origins struct {
	mu         sync.Mutex // guards all
	sites      map[string]*site
	servers    map[string]*server
	flying     map[*link]int // requests under way, by who sent them
	violations []string
	events     []string
}

func newOrigins() *origins {
	o := &origins{sites: make(map[string]*site), servers: make(map[string]*server), flying: make(map[*link]int)}
	for _, url := range clusterFeeds {
		o.sites[url] = &site{habit: &habits[0], versions: make(map[int]bool), given: []policy.Validators{{}}}
		o.servers[hostOf(url)] = new(server)
	}
	return o
}

func hostOf(url string) string { return strings.Split(url, "/")[2] }

// violation notes what must not be. The caller holds the lock.
func (o *origins) violation(format string, args ...any) {
	text := fmt.Sprintf("%v: ", time.Since(epoch)) + fmt.Sprintf(format, args...)
	if len(o.violations) < 10 {
		o.violations = append(o.violations, text+strings.Join(o.events[max(0, len(o.events)-6):], ""))
	}
}

func (o *origins) judge(ok bool, format string, args ...any) {
	if ok {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.violation(format, args...)
}

// event notes what happens, for those who read of violations.
func (o *origins) event(format string, args ...any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.events = append(o.events, fmt.Sprintf("\n\t%v: ", time.Since(epoch))+fmt.Sprintf(format, args...))
}

func (o *origins) arrive(m *member, r *http.Request) *visit {
	o.mu.Lock()
	defer o.mu.Unlock()
	now, url := time.Now(), r.URL.String()
	c := &visit{
		member: m, url: url, at: now, status: http.StatusOK, header: http.Header{"Content-Type": {"application/rss+xml"}},
		sent: policy.Validators{ETag: r.Header.Get("If-None-Match"), LastModified: r.Header.Get("If-Modified-Since")},
	}
	s, h := o.sites[url], o.servers[r.URL.Host]
	if s == nil {
		o.violation("I5: %s was asked for", url)
		s, h = new(site), new(server)
		s.habit = &habits[0]
	}
	allowed := s.next
	if s.insisted {
		allowed = s.byHand
	}
	if now.Before(allowed) {
		o.violation("I1: node %d polled %s %v too early", m.number, url, allowed.Sub(now))
	}
	if now.Before(h.pause) {
		o.violation("I1: node %d asked %s %v before the end of its pause", m.number, url, h.pause.Sub(now))
	}
	// A process that was stopped just before it sent sends later than it was granted.
	if gap := now.Sub(h.last); gap < spacing && !m.stoppedSince(now.Add(-time.Minute)) && !h.by.stoppedSince(now.Add(-time.Minute)) {
		o.violation("I1: node %d asked %s %v after the last request to its host", m.number, url, gap)
	}
	for name, values := range r.Header {
		if !slices.Contains([]string{"User-Agent", "Accept", "Accept-Encoding", "If-None-Match", "If-Modified-Since"}, name) || len(values) != 1 {
			o.violation("I5: %s saw %s: %q", url, name, values)
		}
	}
	if !slices.Contains(s.given, c.sent) {
		o.violation("I3: %s got %q, want one of %q", url, c.sent, s.given)
	}
	if o.flying[m.link]++; o.flying[m.link] > mostPolls {
		o.violation("I12: node %d has %d polls under way", m.number, o.flying[m.link])
	}
	h.last, h.by = now, m.link
	s.asked++
	c.habit, c.delay = s.habit, s.habit.delay
	c.habit.answer(c)
	if c.good {
		s.versions[c.version] = true
	}
	s.next, s.byHand = now.Add(floor), now.Add(floor)
	return c
}

// depart remembers what an answer asks for: of one that arrived, and could be committed.
func (o *origins) depart(c *visit, arrived, committed bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now, s, h := time.Now(), o.sites[c.url], o.servers[hostOf(c.url)]
	o.flying[c.member.link]--
	if s == nil {
		return
	}
	if c.good && arrived && !c.cut {
		// If it was not committed it is of no use, but that is not known here for sure.
		given := policy.Validators{ETag: c.header.Get("ETag"), LastModified: c.header.Get("Last-Modified")}
		if !slices.Contains(s.given, given) {
			s.given = append(s.given, given)
		}
	}
	if !committed {
		return
	}
	if c.habit.pause > 0 && c.status != http.StatusOK {
		h.pause = latest(h.pause, now.Add(c.habit.pause))
	}
	wait := floor
	s.ended = c.habit.ended || s.ended && !s.insisted
	switch {
	case c.good && !c.cut:
		wait = max(wait, c.habit.fresh)
		s.taken, s.takenAt = max(s.taken, c.version), now
	case c.habit.ended:
		wait = forEver
	}
	s.next, s.byHand = now.Add(wait), now.Add(min(wait, floor))
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
