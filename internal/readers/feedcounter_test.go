// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package readers

import (
	"fmt"
	"math"
	"net/netip"
	"testing"
	"time"
)

const feed = "https://example.com/feed.xml"

func start() time.Time { return time.Date(2026, time.March, 1, 0, 0, 0, 0, time.UTC) }

func TestFeedsTellReadersApart(t *testing.T) {
	type reader struct{ agent, address string }
	tests := []struct {
		name    string
		readers []reader
		want    int
	}{
		{"none", nil, 0},
		{"one", []reader{{"FreshRSS/1.24.1 (Linux)", "192.0.2.1"}}, 1},
		{"one that asks often", []reader{{"A/1", "192.0.2.1"}, {"A/1", "192.0.2.1"}}, 1},
		{"an update", []reader{{"A/1.2", "192.0.2.1"}, {"A/10.3.4", "192.0.2.1"}}, 1},
		{"two programs in a house", []reader{{"A/1", "192.0.2.1"}, {"B/1", "192.0.2.1"}}, 2},
		{"a changed address in one network", []reader{{"A/1", "192.0.2.1"}, {"A/1", "192.0.2.200"}}, 1},
		{"two networks", []reader{{"A/1", "192.0.2.1"}, {"A/1", "192.0.3.1"}}, 2},
		{"one IPv6 network", []reader{{"A/1", "2001:db8::1"}, {"A/1", "2001:db8::ffff:1"}}, 1},
		{"two IPv6 networks", []reader{{"A/1", "2001:db8::1"}, {"A/1", "2001:db8:1::1"}}, 2},
		{"IPv4 mapped to IPv6", []reader{{"A/1", "192.0.2.1"}, {"A/1", "::ffff:192.0.2.7"}}, 1},
		{"no address", []reader{{"A/1", ""}, {"B/1", ""}}, 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := NewFeeds(nil)
			for _, r := range tt.readers {
				address, _ := netip.ParseAddr(r.address)
				c.Feed(feed).CountReader(key.Reader(r.agent, address))
			}
			if got := c.Subscribers(feed, start()); got != tt.want {
				t.Errorf("counted %d, want %d", got, tt.want)
			}
		})
	}
}

func TestSubscribersAreEstimated(t *testing.T) {
	for _, want := range []int{10, 100, 1000, 5000, 20_000} {
		c := NewFeeds(nil)
		for i := range want {
			c.Feed(feed).CountReader(key.Reader("A", netip.AddrFrom4([4]byte{byte(i >> 16), byte(i >> 8), byte(i), 1})))
		}
		got := c.Subscribers(feed, start())
		if off := math.Abs(float64(got-want)) / float64(want); off > 0.10 {
			t.Errorf("%d readers were counted as %d", want, got)
		}
	}
}

func TestSubscribersOfTheLastWeeks(t *testing.T) {
	c := NewFeeds(nil)
	now := start()
	counter := c.Feed(feed)
	gone, stays := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("198.51.100.1")
	counter.CountReader(key.Reader("A", gone))
	steps := []struct{ day, want int }{{0, 2}, {6, 2}, {8, 2}, {16, 1}}
	for _, s := range steps {
		at := now.AddDate(0, 0, s.day)
		c.Subscribers(feed, at) // turn over first, as a poll on the day before would have
		counter.CountReader(key.Reader("A", stays))
		if got := c.Subscribers(feed, at); got != s.want {
			t.Errorf("day %d: counted %d, want %d", s.day, got, s.want)
		}
	}
}

// Invented feeds evict each other: a feed with readers stays, and a new one is counted.
func TestFeedsAreBounded(t *testing.T) {
	c := NewFeeds(nil)
	c.limit = 100
	one, two := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("198.51.100.1")
	for _, client := range []netip.Addr{one, two} {
		c.Feed(feed).CountReader(key.Reader("A", client))
	}
	for i := range 3000 {
		c.Feed(fmt.Sprint("https://invented.example/", i)).CountReader(key.Reader("A", one))
	}
	if got := c.count.Load(); got != c.limit {
		t.Errorf("%d counters, want %d", got, c.limit)
	}
	if got := c.Subscribers(feed, start()); got != 2 {
		t.Errorf("the feed has %d readers, want 2", got)
	}
	const fresh = "https://new.example/feed.xml"
	c.Feed(fresh).CountReader(key.Reader("A", one))
	if got := c.Subscribers(fresh, start()); got != 1 {
		t.Errorf("a new feed has %d readers, want 1", got)
	}
	c.Forget(fresh)
	c.Forget("https://unknown.example/")
	if got := c.count.Load(); got != c.limit-1 || c.Subscribers(fresh, start()) != 0 {
		t.Errorf("%d counters are counted, want %d", got, c.limit-1)
	}
}

func TestCountReaderAllocatesNothing(t *testing.T) {
	counter := NewFeeds(nil).Feed(feed)
	client := netip.MustParseAddr("192.0.2.1")
	if n := testing.AllocsPerRun(100, func() { counter.CountReader(key.Reader("FreshRSS/1.24.1 (Linux; https://freshrss.org)", client)) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

var key = NewKey([]byte("secret"))
