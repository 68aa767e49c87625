// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/feedpollard/pollard/internal/status"

	"github.com/feedpollard/pollard/policy"

	"github.com/feedpollard/pollard/cache"
	"github.com/feedpollard/pollard/internal/feedurl"
)

// fakeSource is a source of made-up feeds. Its methods answer what their fields
// say; a nil field stands for an ordinary answer.
type fakeSource struct {
	now  time.Time
	size int

	account func(Which) (status.Feed, []byte, error)
	list    func(status.Query) (status.FeedList, error)
	who     func() (status.Readers, error)
	saved   func() (status.Savings, error)
	trouble status.Trouble

	mu        sync.Mutex
	refreshed []Which
	early     bool
}

func newFake(size int) *fakeSource {
	return &fakeSource{now: time.Now(), size: size}
}

func (s *fakeSource) Summary(context.Context) (status.Summary, error) {
	counts := map[status.State]int64{}
	for i := range min(s.size, 1000) {
		counts[s.row(i).State]++
	}
	for state := range counts {
		counts[state] *= int64(max(s.size/1000, 1))
	}
	counts[status.StateUnread] = 3
	return status.Summary{Feeds: counts, Trouble: s.Trouble()}, nil
}

func (s *fakeSource) Trouble() status.Trouble { return s.trouble }

var fakeHosts = []string{"blog.example", "rachel.example", "www.planet.example", "podcast.example", "weekly.example.org", "xn--bcher-kva.example", "news.example.net"}

// row is what a scan over all feeds reads of one.
func (s *fakeSource) row(i int) status.Feed {
	f := status.Feed{
		ID: fmt.Sprintf("%032x", uint64(i)*0x9E3779B97F4A7C15), URL: feedurl.Shown(fmt.Sprintf("https://%s/%s/feed-%d.xml", fakeHosts[i%len(fakeHosts)], []string{"posts", "tag/go", "en"}[i%3], i)),
		State: status.StateFresh, NextPoll: s.now.Add(time.Duration(i%1400+3) * time.Minute),
	}
	switch i % 97 {
	case 5, 40, 80:
		f.State, f.Failures = status.StateFailing, 1+i%7
	case 11:
		f.State = status.StateWaiting
	case 17:
		f.State, f.NextPoll = status.StateDue, s.now.Add(-time.Minute)
	case 23:
		f.State, f.NextPoll = status.StateGone, time.Time{}
	case 31:
		f.State, f.Configured = status.StateDue, true // before its first poll
	}
	return f
}

// detailed adds what only the feeds on a page need.
func (s *fakeSource) detailed(f status.Feed) status.Feed {
	f.LastStatus, f.VersionSince, f.Winner = 200, s.now.Add(-3*time.Hour), policy.HintMaxAge
	for n := range 32 {
		p := status.Poll{At: s.now.Add(-time.Duration(32-n) * time.Hour), Status: 304, Result: status.ResultUnchanged, Took: status.Seconds(80 * time.Millisecond)}
		switch {
		case n > 31-f.Failures:
			p.Status, p.Result = 404, status.ResultFailed
		case n%9 == 0:
			p.Status, p.Result, p.Bytes = 200, status.ResultNew, int64(20000+n*1000)
		}
		f.Polls = append(f.Polls, p)
	}
	switch f.State {
	case status.StateFailing:
		f.LastStatus, f.Winner = 404, policy.HintBackOff
	case status.StateGone:
		f.LastStatus, f.Winner = 410, policy.HintGone
	case status.StateDue:
		f.VersionSince, f.Polls, f.Winner = time.Time{}, nil, policy.HintHostSlot
	}
	f.Considered = []policy.Term{
		{Hint: policy.HintTTL, Raw: "30", Seconds: 1800},
		{Hint: policy.HintMaxAge, Raw: "max-age=3600", Seconds: 3600, Used: true},
		{Hint: policy.HintRhythm, Seconds: 50400, Note: "entries come about once a week; an explicit hint goes first"},
	}
	f.Reason = f.Explain(s.now, nil)
	return f
}

func (s *fakeSource) scan() iter.Seq2[status.Feed, error] {
	return func(yield func(status.Feed, error) bool) {
		for i := range s.size {
			if !yield(s.row(i), nil) {
				return
			}
		}
	}
}

func (s *fakeSource) Feeds(_ context.Context, q status.Query) (status.FeedList, error) {
	if s.list != nil {
		return s.list(q)
	}
	list, err := status.Select(s.scan(), q)
	for i := range list.Feeds {
		list.Feeds[i] = s.detailed(list.Feeds[i])
	}
	return list, err
}

func (s *fakeSource) Feed(_ context.Context, which Which) (status.Feed, []byte, error) {
	if s.account != nil {
		return s.account(which)
	}
	for i := range s.size {
		f := s.row(i)
		if string(f.URL) == which.URL || f.ID == which.ID {
			return s.accountOf(s.detailed(f)), []byte(fakeFeed), nil
		}
	}
	return status.Feed{}, nil, ErrUnknown
}

func (s *fakeSource) accountOf(f status.Feed) status.Feed {
	s.mu.Lock()
	defer s.mu.Unlock()
	f.Configured, f.LastPoll, f.LastResult, f.LastAsked, f.Validated = true, s.now.Add(-17*time.Minute), status.ResultUnchanged, s.now.Add(-2*time.Minute), s.now.Add(-17*time.Minute)
	f.Hints = policy.Hints{Self: string(f.URL), Hubs: []string{"https://hub.example/"}}
	f.ContentType, f.Validators = "application/atom+xml; charset=utf-8", policy.Validators{ETag: `W/"5f3a-63e1"`, LastModified: "Wed, 18 Nov 2026 07:12:09 GMT"}
	f.Version, f.Entries, f.Size = 2, 20, 41233
	f.Versions = []status.Version{
		{Since: f.VersionSince, ETag: `"9c4f0a"`, Entries: 20, Size: 41233}, {Since: f.VersionSince.Add(-90 * time.Hour), ETag: `"51b07e"`, Entries: 20, Size: 40877},
	}
	f.Readers, f.Subscribers = fakeReaders()[:3], 14
	if len(s.refreshed) > 0 {
		f.LastPoll, f.Refreshable = s.now, s.now.Add(time.Hour)
	}
	return f
}

const fakeFeed = `<?xml version="1.0"?><feed xmlns="http://www.w3.org/2005/Atom"><title>Notes from the river</title><id>urn:x</id><updated>2026-11-18T07:00:00Z</updated>
<link href="https://blog.example/"/>
<entry><title>On cutting back, and what grows after</title><id>urn:1</id><updated>2026-11-18T07:00:00Z</updated><link href="https://blog.example/1"/></entry>
<entry><title>Willows &amp; water</title><id>urn:2</id><updated>2026-11-11T07:00:00Z</updated><link href="https://blog.example/2"/></entry>
<entry><title>A year of winters</title><id>urn:3</id><updated>2026-11-04T07:00:00Z</updated><link href="https://blog.example/3"/></entry></feed>`

func (s *fakeSource) Refresh(_ context.Context, which Which) (status.Result, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refreshed = append(s.refreshed, which)
	if s.early {
		return "", &cache.TooEarly{Until: s.now.Add(time.Hour)}
	}
	return status.ResultUnchanged, nil
}

func (s *fakeSource) polledByHand() []Which {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refreshed
}

func fakeReaders() []status.Reader {
	counts := status.Counts{Requests: 4210, Bytes: 812 << 20, ShareConditional: 0.5, MedianGap: status.Seconds(5 * time.Minute)}
	return []status.Reader{
		{Family: "Mozilla", UserAgent: "Mozilla/5.0 (compatible; theoldreader.com; 1 subscribers; feed-id=0a9)", Network: "192.0.2.0/24", Feeds: 3, Counts: counts, Score: "F", Reasons: []string{"never conditional", "every 5 minutes"}},
		{Family: "FreshRSS", UserAgent: "FreshRSS/1.25.0 (Linux; https://freshrss.org)", Feeds: 65, Counts: counts, Score: "B", Reasons: []string{"asks within skipHours"}},
		{Family: "newsboat", UserAgent: "newsboat/2.21 (Linux x86_64)", Feeds: 41, Counts: counts, Score: "A"},
		{Family: "Miniflux", UserAgent: "Mozilla/5.0 (compatible; Miniflux/2.3.0; +https://miniflux.app)", Feeds: 76, Counts: counts, Score: "A"},
		{Family: "-", UserAgent: "-", Feeds: 1, Counts: status.Counts{Requests: 12, Bytes: 1 << 20}, Score: "-"},
	}
}

func (s *fakeSource) Readers(context.Context) (status.Readers, error) {
	if s.who != nil {
		return s.who()
	}
	r := status.Readers{Since: s.now.Add(-30 * 24 * time.Hour), Readers: 41, Requests: 32782, Bytes: 867 << 20, Unconditional: 12, UnconditionalBytes: 813 << 20, Families: fakeReaders()}
	for h := range r.Hours {
		r.Hours[h] = int64(900 + 700*(h%12) - 31*h*(h%5))
	}
	return r, nil
}

func (s *fakeSource) Savings(context.Context, int) (status.Savings, error) {
	if s.saved != nil {
		return s.saved()
	}
	var v status.Savings
	for d := range 30 {
		n := int64(38000 + d*137)
		t := status.Traffic{Requests: n, Polls: 4000, Served: n * 80_000, Fetched: 90 << 20}
		v.Days = append(v.Days, status.DayTraffic{Day: s.now.AddDate(0, 0, d-29).Truncate(24 * time.Hour), Traffic: t})
		v.Total.Add(t)
	}
	for _, h := range fakeHosts {
		v.Origins = append(v.Origins, status.OriginTraffic{Origin: feedurl.Shown("https://" + h), Traffic: v.Days[0].Traffic})
	}
	return v, nil
}

// newPages are pages of a made-up gateway, and where they stand for a member.
func newPages(t testing.TB, size int) (*Pages, *fakeSource, Place) {
	t.Helper()
	source := newFake(size)
	p := &Pages{Source: source, Version: "1.0.0", Poller: Poller{
		Contact: "https://example.com/about", UserAgent: "Pollard/1.0 (+https://example.com/about; 14 subscribers)",
		MinInterval: time.Hour, MaxInterval: 24 * time.Hour, Spacing: 2 * time.Second, Concurrency: 1,
	}}
	p.Discover = func(_ *http.Request, address string) (Site, error) {
		if !strings.Contains(address, "blog.example") {
			return Site{URL: feedurl.Shown(address), Problem: "This site names no feeds."}, nil
		}
		return Site{URL: "https://blog.example/", Title: "Notes from the river", Feeds: []Found{
			{URL: string(source.row(0).URL), Title: "Notes from the river", Type: "application/atom+xml"},
			{URL: "https://blog.example/comments.xml", Title: "Comments", Type: "application/rss+xml"},
		}}, nil
	}
	return p, source, Place{Home: "/", Below: "/-/", Gateway: "http://feeds.home.arpa/", Member: true, Readers: true}
}
