// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/feedpollard/pollard/cache"
	"github.com/feedpollard/pollard/caddymodule/door"
	"github.com/feedpollard/pollard/internal/feedurl"
	"github.com/feedpollard/pollard/internal/status"
	"github.com/feedpollard/pollard/policy"
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

func (s *fakeSource) Trouble(*Viewer) status.Trouble { return s.trouble }

// row is what a scan over all feeds reads of one.
func (s *fakeSource) row(i int) status.Feed {
	f := status.Feed{
		ID: fmt.Sprintf("%032x", uint64(i)*0x9E3779B97F4A7C15), URL: feedurl.Redacted(fmt.Sprintf("https://blog.example/posts/feed-%d.xml", i)),
		State: status.StateFresh, NextPoll: s.now.Add(time.Duration(i%1400+3) * time.Minute), Winner: policy.HintMaxAge,
	}
	switch i % 97 {
	case 5, 40, 80:
		f.State, f.Failures, f.Winner = status.StateFailing, 1+i%7, policy.HintBackOff
	case 11:
		f.State = status.StateWaiting
	case 17:
		f.State, f.NextPoll = status.StateDue, s.now.Add(-time.Minute)
	case 23:
		f.State, f.NextPoll, f.Winner = status.StateGone, time.Time{}, policy.HintGone
	}
	return f
}

// detailed adds what only the feeds on a page need.
func (s *fakeSource) detailed(f status.Feed) status.Feed {
	since := s.now.Add(-3 * time.Hour)
	f.LastStatus, f.VersionSince, f.LastPoll, f.LastResult, f.LastAsked, f.Validated = 200, since, s.now.Add(-17*time.Minute), status.ResultUnchanged, s.now, s.now
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
	f.Considered = []policy.Term{
		{Hint: policy.HintTTL, Raw: "30", Seconds: 1800},
		{Hint: policy.HintMaxAge, Raw: "max-age=3600", Seconds: 3600, Used: true},
		{Hint: policy.HintRhythm, Seconds: 50400, Note: "entries come about once a week; an explicit hint goes first"},
	}
	f.Reason = f.Explain(s.now, nil)
	f.Hints = policy.Hints{Self: string(f.URL), Hubs: []string{"https://hub.example/"}}
	f.ContentType, f.Validators = "application/atom+xml; charset=utf-8", policy.Validators{URL: "https://blog.example/atom", ETag: `W/"5f3a-63e1"`, LastModified: "Wed, 18 Nov 2026 07:12:09 GMT"}
	f.Version, f.Entries, f.Size, f.Subscribers = 2, 20, 41233, 14
	f.Versions = []status.Version{{Since: since, ETag: `"9c4f0a"`, Entries: 20, Size: 41233}, {Since: since.Add(-90 * time.Hour), ETag: `"51b07e"`, Entries: 20, Size: 40877}}
	return f
}

func (s *fakeSource) Feeds(_ context.Context, _ *Viewer, q status.Query) (status.FeedList, error) {
	if s.list != nil {
		return s.list(q)
	}
	list, err := status.Select(func(yield func(status.Feed, error) bool) {
		for i := 0; i < s.size && yield(s.row(i), nil); i++ {
		}
	}, q)
	list.Summary.Trouble, list.Summary.Feeds[status.StateUnread] = s.trouble, 3
	for i := range list.Feeds {
		list.Feeds[i] = s.detailed(list.Feeds[i])
	}
	return list, err
}

func (s *fakeSource) Feed(_ context.Context, _ *Viewer, which Which) (status.Feed, []byte, error) {
	if s.account != nil {
		return s.account(which)
	}
	for i := range s.size {
		if f := s.row(i); string(f.URL) == which.URL || f.ID == which.ID {
			f = s.detailed(f)
			if len(s.polledByHand()) > 0 {
				f.Refreshable = s.now.Add(time.Hour)
			}
			return f, []byte(fakeFeed), nil
		}
	}
	return status.Feed{}, nil, ErrUnknown
}

const fakeFeed = `<?xml version="1.0"?><feed xmlns="http://www.w3.org/2005/Atom"><title>Notes from the river</title><id>urn:x</id><updated>2026-11-18T07:00:00Z</updated>
<link href="https://blog.example/"/>
<entry><title>On cutting back, and what grows after</title><id>urn:1</id><updated>2026-11-18T07:00:00Z</updated><link href="https://blog.example/1"/></entry>
<entry><title>Willows &amp; water</title><id>urn:2</id><updated>2026-11-11T07:00:00Z</updated><link href="https://blog.example/2"/></entry>
<entry><title>A year of winters</title><id>urn:3</id><updated>2026-11-04T07:00:00Z</updated><link href="https://blog.example/3"/></entry></feed>`

func (s *fakeSource) Refresh(_ context.Context, _ *Viewer, which Which) (status.Result, error) {
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

func (s *fakeSource) Readers(context.Context, *Viewer) (status.Readers, error) {
	if s.who != nil {
		return s.who()
	}
	counts := status.Counts{Requests: 4210, Bytes: 812 << 20, ShareConditional: 0.5, MedianGap: status.Seconds(5 * time.Minute)}
	return status.Readers{
		Since: s.now.Add(-30 * 24 * time.Hour), Readers: 41, Requests: 32782, Bytes: 867 << 20, Unconditional: 12, UnconditionalBytes: 813 << 20, Hours: [24]int64{900, 1600, 2300},
		Families: []status.Reader{
			{Family: "Mozilla", UserAgent: "Mozilla/5.0 (compatible; theoldreader.com; 1 subscribers; feed-id=0a9)", Network: "192.0.2.0/24", Feeds: 3, Counts: counts, Score: "F", Reasons: []string{"never conditional", "every 5 minutes"}},
			{Family: "newsboat", UserAgent: "newsboat/2.21 (Linux x86_64)", Feeds: 41, Counts: counts, Score: "A"},
			{Family: "-", UserAgent: "-", Feeds: 1, Counts: status.Counts{Requests: 12, Bytes: 1 << 20}, Score: "-"},
		},
	}, nil
}

func (s *fakeSource) Savings(context.Context, *Viewer, int) (status.Savings, error) {
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
	v.Origins = []status.OriginTraffic{{Origin: "https://blog.example", Traffic: v.Days[0].Traffic}}
	return v, nil
}

// newPages are pages of a made-up gateway, and where they stand for a member.
func newPages(t testing.TB, size int) (*Pages, *fakeSource, Place) {
	t.Helper()
	source := &fakeSource{now: time.Now(), size: size}
	p := &Pages{Source: source, Version: "1.0.0", Poller: Poller{
		Contact: "https://example.com/about", UserAgent: "Pollard/1.0 (+https://example.com/about; 14 subscribers)",
		MinInterval: time.Hour, MaxInterval: 24 * time.Hour, Spacing: 2 * time.Second, Concurrency: 1,
	}}
	p.Discover = func(_ *door.Request, address string) (Site, error) {
		if !strings.Contains(address, "blog.example") {
			return Site{URL: feedurl.Redacted(address), Problem: "This site names no feeds."}, nil
		}
		return Site{URL: "https://blog.example/", Title: "Notes from the river", Feeds: []Found{
			{URL: string(source.row(0).URL), Title: "Notes from the river", Type: "application/atom+xml"},
			{URL: "https://blog.example/comments.xml", Title: "Comments", Type: "application/rss+xml"},
		}}, nil
	}
	return p, source, Place{Home: "/", Below: "/-/", Gateway: "http://feeds.home.arpa/", Member: true}
}

// ofShield returns the same pages as a shield has them.
func ofShield(p *Pages) (*Pages, Place) {
	shield := *p
	shield.Publisher = func(context.Context) Publisher { return Publisher{} }
	return &shield, Place{Home: "/status/", Below: "/status/", Member: true}
}

// pageNames are the names of all pages that GET serves, files left out.
func pageNames() []string {
	return slices.DeleteFunc(Names(), func(name string) bool { return routes[name].get == nil || strings.Contains(name, ".") })
}

// notHTML are the pages that are for programs. A browser test of them would say nothing.
var notHTML = map[string]bool{pageOPML: true, pageIncidents: true}

// homeOf returns the pages that have the page of a name, those of a gateway or of a shield, and where they are.
func homeOf(name string, p *Pages, at Place) (*Pages, Place) {
	if routes[name].shield {
		return ofShield(p)
	}
	return p, at
}
