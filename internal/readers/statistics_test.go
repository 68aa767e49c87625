// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package readers

import (
	"fmt"
	"net/netip"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/feedpollard/pollard/cache/version"
	"github.com/feedpollard/pollard/internal/status"
)

// poll is a GET that is answered with 10 kB, as most readers ask.
func poll(at time.Time, userAgent, client string) Request {
	return Request{
		Time: at, Feed: feed, UserAgent: userAgent, Client: netip.MustParseAddr(client), Method: "GET",
		Compression: true, Status: 200, Bytes: 10_000,
	}
}

// conditional makes a request one that a 304 answers.
func conditional(r Request) Request {
	r.IfNoneMatch, r.Validators, r.Status, r.Bytes = "\"tag\"", version.Current, 304, 200
	return r
}

func TestStatisticsCounts(t *testing.T) {
	l := NewStatistics(0)
	at := start()
	first := poll(at, "A/1 (3 subscribers; feed-id=7)", "192.0.2.1")
	head := first
	head.Method, head.Bytes = "HEAD", 300
	second := conditional(poll(at.Add(time.Hour), "A/1 (5 subscribers; feed-id=7)", "192.0.2.200"))
	second.IfModifiedSince = "then"
	limited := poll(at.Add(2*time.Hour), "A/2 (4 subscribers; feed-id=7)", "192.0.2.1")
	limited.Status, limited.Bytes, limited.Early, limited.SkipHours = 429, 100, true, Hours{2}
	plain := poll(at.Add(3*time.Hour), "A/2 (4 subscribers; feed-id=7)", "192.0.2.1")
	plain.Compression, plain.Status, plain.Validators, plain.IfNoneMatch = false, 406, version.Unknown, "x"
	failed := poll(at.Add(4*time.Hour), "A/2 (4 subscribers; feed-id=7)", "192.0.2.1")
	failed.Method, failed.Status, failed.Validators, failed.Bytes = "POST", 502, version.Earlier, 0
	for _, r := range []Request{first, head, second, limited, plain, failed} {
		l.Record(r)
	}

	r := l.Report(ReportOptions{})
	if len(r.Readers) != 1 || len(r.Families) != 1 || len(r.Feeds) != 1 {
		t.Fatalf("%d readers, %d families, %d feeds", len(r.Readers), len(r.Families), len(r.Feeds))
	}
	row := r.Readers[0]
	if row.UserAgent != "A/2 (4 subscribers; feed-id=7)" || row.Family != "A" || row.Network != "192.0.2.0/24" || row.FeedID != "7" || row.Subscribers != 4 {
		t.Errorf("reader %+v", row)
	}
	if r.Feeds[0].Feed != feed || r.Feeds[0].Subscribers != 4 || r.Families[0].Subscribers != 4 || r.Families[0].Network != "" {
		t.Errorf("feed %+v, family %+v", r.Feeds[0], r.Families[0])
	}
	want := status.Counts{
		Requests: 6, Bytes: 20_600, Polls: 5, ShareConditional: 0.5, ShareCompressed: 0.75, MedianGap: status.Seconds(time.Hour),
		Addresses: 3, Networks: 1, Methods: status.Methods{Get: 4, Head: 1, Other: 1}, Answers: status.Answers{Full: 2, NotModified: 1, Limited: 1, Refused: 1, Failed: 1},
		Conditions: status.Conditions{IfNoneMatch: 2, IfModifiedSince: 1, Current: 1, Earlier: 1, Unknown: 1}, Early: 1, InSkipHours: 1, First: at, Last: at.Add(4 * time.Hour),
	}
	if hours := [24]int64{2, 1, 1, 1, 1}; r.Hours != hours {
		t.Errorf("by hour %v, want %v", r.Hours, hours)
	}
	for name, got := range map[string]status.Counts{"reader": row.Counts, "family": r.Families[0].Counts, "feed": r.Feeds[0].Counts, "total": r.Total} {
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s:\n%+v\nwant\n%+v", name, got, want)
		}
	}
}

func TestStatisticsTellsReadersApart(t *testing.T) {
	base := poll(start(), "A/1 (1 subscribers; feed-id=1)", "192.0.2.1")
	for _, tc := range []struct {
		name              string
		other             func(*Request)
		readers, families int
	}{
		{"the same", func(*Request) {}, 1, 1},
		{"an update, a changed address and more subscribers", func(r *Request) {
			r.UserAgent, r.Client = "A/2 (2 subscribers; feed-id=1)", netip.MustParseAddr("192.0.2.9")
		}, 1, 1},
		{"another network", func(r *Request) { r.Client = netip.MustParseAddr("192.0.3.1") }, 2, 1},
		{"another feed ID", func(r *Request) { r.UserAgent = "A/1 (1 subscribers; feed-id=2)" }, 2, 1},
		{"another program", func(r *Request) { r.UserAgent = "B/1" }, 2, 2},
		{"another feed", func(r *Request) { r.Feed += "?2" }, 1, 1},
		{"no address", func(r *Request) { r.Client = netip.Addr{} }, 2, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := NewStatistics(0)
			other := base
			tc.other(&other)
			l.Record(base)
			l.Record(other)
			r := l.Report(ReportOptions{})
			if len(r.Readers) != tc.readers || len(r.Families) != tc.families {
				t.Errorf("%d readers of %d families, want %d of %d", len(r.Readers), len(r.Families), tc.readers, tc.families)
			}
		})
	}
}

// Requests within seconds are one poll; a reader that never stops is not.
func TestPolls(t *testing.T) {
	for _, tc := range []struct {
		name    string
		seconds []int
		polls   int64
		median  int64
	}{
		{"once", []int{0}, 1, 0},
		{"a HEAD before each GET", []int{0, 1, 3600, 3601, 7200, 7201}, 3, 3600},
		{"every second", []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, 3, 5},
		{"a log slightly out of order", []int{0, 3600, 3599, 7200}, 3, 3600},
		{"a clock set back by a day", []int{86_400, 90_000, 0, 3600}, 4, 3600},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := NewStatistics(0)
			for _, s := range tc.seconds {
				l.Record(poll(start().Add(time.Duration(s)*time.Second), "A/1", "192.0.2.1"))
			}
			if got := l.Report(ReportOptions{}).Total; got.Polls != tc.polls || got.MedianGap != status.Seconds(time.Duration(tc.median)*time.Second) {
				t.Errorf("%d polls, median gap %d s; want %d, %d s", got.Polls, got.MedianGap, tc.polls, tc.median)
			}
		})
	}
}

func TestReportChooses(t *testing.T) {
	l := NewStatistics(0)
	for i, url := range []string{"https://a.example/", "https://b.example/", "https://b.example/"} {
		r := poll(start().Add(time.Duration(i)*time.Hour), fmt.Sprintf("Reader%c/1", 'A'+i), "192.0.2.1")
		r.Feed = url
		l.Record(r)
	}
	if r := l.Report(ReportOptions{Feed: "https://b.example/"}); len(r.Feeds) != 1 || len(r.Families) != 2 || r.Total.Requests != 2 {
		t.Errorf("of one feed: %+v", r)
	}
	l.Forget("https://b.example/")
	if r := l.Report(ReportOptions{}); len(r.Feeds) != 1 || len(r.Readers) != 1 || r.Total.Requests != 1 {
		t.Errorf("after forgetting one: %+v", r)
	}
}

func TestSubscribersAreCountedOncePerFeedID(t *testing.T) {
	l := NewStatistics(0)
	for i, r := range []struct{ agent, client string }{
		{"A/1 (7 subscribers; feed-id=1)", "192.0.2.1"},
		{"A/1 (9 subscribers; feed-id=1)", "198.51.100.1"}, // the same ones, from another network, later
		{"A/1 (2 subscribers; feed-id=2)", "192.0.2.1"},
		{"B/1 (30 subscribers)", "192.0.2.1"},
		{"C/1", "192.0.2.1"},
	} {
		l.Record(poll(start().Add(time.Duration(i)*time.Minute), r.agent, r.client))
	}
	r := l.Report(ReportOptions{})
	if got := r.Feeds[0].Subscribers; got != 41 {
		t.Errorf("%d subscribers of the feed, want 9 + 2 + 30", got)
	}
	if got := r.Families[0].Subscribers; got != 11 {
		t.Errorf("%d subscribers by %s, want 9 + 2", got, r.Families[0].Family)
	}
}

// A million readers with as many User-Agents and feeds cost no more than the
// capacity, and are all in the totals.
func TestStatisticsIsBounded(t *testing.T) {
	l := newStatistics(0, 1000)
	g := newLimiter(1000)
	defence := Limits{Unconditional: time.Hour, MaxRate: Rate{10, time.Hour}}
	at := start()
	fill := func(from, to int) uint64 {
		for i := from; i < to; i++ {
			r := poll(at.Add(time.Duration(i)*time.Millisecond), "R"+strconv.Itoa(i/8)+"/1", "192.0.2.1")
			r.Client = netip.AddrFrom16([16]byte{0x20, 1, 0xd, byte(i >> 16), byte(i >> 8), byte(i)})
			r.Feed = feed + "?" + strconv.Itoa(i%1009)
			if v := g.Check(defence, r); v.Status != 0 {
				t.Fatalf("the first request of reader %d is refused: %s", i, v.Reason)
			}
			g.Answered(defence, r)
			l.Record(r)
		}
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	few := fill(0, 20_000)
	many := fill(20_000, 100_000)
	if many > few+few/4+1<<20 {
		t.Errorf("heap of %d bytes after 20,000 readers, of %d after 100,000", few, many)
	}
	n := 0
	for i := range g.shards {
		n += g.shards[i].readers.Len()
	}
	if n > 1000 {
		t.Errorf("a limiter of 1000 remembers %d", n)
	}
	r := l.Report(ReportOptions{})
	if len(r.Feeds) != 125 || len(r.Readers) != 1000 {
		t.Errorf("%d feeds, %d readers", len(r.Feeds), len(r.Readers))
	}
}

// No address finer than /24 and /48 is in a report or kept as text, and lists are never null.
func TestReportHasNoAddress(t *testing.T) {
	l := NewStatistics(0)
	if found := text(t, l.Report(ReportOptions{})); strings.Contains(found, "null") {
		t.Error(found)
	}
	for _, client := range []string{"192.0.2.77", "2001:db8:1:eeee:aaaa:bbbb:cccc:dddd"} {
		l.Record(poll(start(), "A/1", client))
	}
	for _, kept := range []string{text(t, l.Report(ReportOptions{})), text(t, l.Snapshot(start(), 10))} {
		for _, secret := range []string{"2.77", "eeee", "aaaa", "dddd", "null"} {
			if strings.Contains(kept, secret) {
				t.Errorf("%q is in %s", secret, kept)
			}
		}
		if !strings.Contains(kept, "192.0.2.0/24") || !strings.Contains(kept, "2001:db8:1::/48") {
			t.Errorf("no networks in %s", kept)
		}
	}
}

func TestKnownReaderAllocatesNothing(t *testing.T) {
	l, g := NewStatistics(0), NewLimiter()
	d := Limits{Unconditional: time.Hour, SkipHours: true, RequireCompression: true, MaxRate: Rate{10, time.Hour}}
	r := conditional(poll(start(), "AntennaPod/3.3.2", "192.0.2.1"))
	if n := testing.AllocsPerRun(100, func() {
		r.Time = r.Time.Add(time.Minute)
		g.Check(d, r)
		g.Answered(d, r)
		l.Record(r)
	}); n > 0 {
		t.Errorf("%v allocations for a known reader", n)
	}
}

func TestConcurrentUse(t *testing.T) {
	l, g := newStatistics(0, 50), newLimiter(50)
	d := Limits{Unconditional: time.Hour}
	var wg sync.WaitGroup
	for worker := range 4 {
		wg.Go(func() {
			for i := range 2000 {
				r := poll(start().Add(time.Duration(i)*time.Second), fmt.Sprintf("R%d/1", i%97), "192.0.2.1")
				r.Feed = fmt.Sprint(worker, i%11)
				g.Check(d, r)
				g.Answered(d, r)
				l.Record(r)
				switch i % 500 {
				case 0:
					l.Report(ReportOptions{})
				case 250:
					l.Forget("nothing")
				}
			}
		})
	}
	wg.Wait()
}
