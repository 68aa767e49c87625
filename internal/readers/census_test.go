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

func TestCensusTellsReadersApart(t *testing.T) {
	type reader struct{ agent, address string }
	tests := []struct {
		name    string
		readers []reader
		want    int
	}{
		{"nobody", nil, 0},
		{"one", []reader{{"FreshRSS/1.24.1 (Linux)", "192.0.2.1"}}, 1},
		{"one that asks often", []reader{{"A/1", "192.0.2.1"}, {"A/1", "192.0.2.1"}}, 1},
		{"an update", []reader{{"A/1.2", "192.0.2.1"}, {"A/10.3.4", "192.0.2.1"}}, 1},
		{"two programs in a house", []reader{{"A/1", "192.0.2.1"}, {"B/1", "192.0.2.1"}}, 2},
		{"a changed address in one network", []reader{{"A/1", "192.0.2.1"}, {"A/1", "192.0.2.200"}}, 1},
		{"two networks", []reader{{"A/1", "192.0.2.1"}, {"A/1", "192.0.3.1"}}, 2},
		{"one IPv6 network", []reader{{"A/1", "2001:db8::1"}, {"A/1", "2001:db8::ffff:1"}}, 1},
		{"two IPv6 networks", []reader{{"A/1", "2001:db8::1"}, {"A/1", "2001:db8:0:1::1"}}, 2},
		{"IPv4 in IPv6 clothes", []reader{{"A/1", "192.0.2.1"}, {"A/1", "::ffff:192.0.2.7"}}, 1},
		{"no address", []reader{{"A/1", ""}, {"B/1", ""}}, 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := NewCensus()
			c.seed = 1 // by chance two readers may fall on one bit: always the same seed, never by chance
			for _, r := range tt.readers {
				address, _ := netip.ParseAddr(r.address)
				c.Tally(feed).Note(r.agent, address)
			}
			if got := c.Count(feed, start()); got != tt.want {
				t.Errorf("counted %d, want %d", got, tt.want)
			}
		})
	}
}

func TestCensusEstimates(t *testing.T) {
	for _, want := range []int{10, 100, 1000, 5000, 20_000} {
		c := NewCensus()
		c.seed = 1
		for i := range want {
			c.Tally(feed).Note("A", netip.AddrFrom4([4]byte{byte(i >> 16), byte(i >> 8), byte(i), 1}))
		}
		got := c.Count(feed, start())
		if off := math.Abs(float64(got-want)) / float64(want); off > 0.10 {
			t.Errorf("%d readers were counted as %d", want, got)
		}
	}
}

func TestCensusForgetsWhoStaysAway(t *testing.T) {
	c := NewCensus()
	c.seed = 1
	now := start()
	tally := c.Tally(feed)
	gone, stays := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("198.51.100.1")
	tally.Note("A", gone)
	steps := []struct{ day, want int }{{0, 2}, {6, 2}, {8, 2}, {16, 1}}
	for _, s := range steps {
		at := now.AddDate(0, 0, s.day)
		c.Count(feed, at) // turn over first, as a poll on the day before would have
		tally.Note("A", stays)
		if got := c.Count(feed, at); got != s.want {
			t.Errorf("day %d: counted %d, want %d", s.day, got, s.want)
		}
	}
}

// Invented feeds take room from each other: a feed with readers stays, and a new one is
// counted.
func TestCensusIsBounded(t *testing.T) {
	c := NewCensus()
	c.limit = 100
	one, two := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("198.51.100.1")
	for _, client := range []netip.Addr{one, two} {
		c.Tally(feed).Note("A", client)
	}
	for i := range 10_000 {
		c.Tally(fmt.Sprint("https://invented.example/", i)).Note("A", one)
	}
	if got := c.count.Load(); got != c.limit {
		t.Errorf("%d tallies, want %d", got, c.limit)
	}
	if got := c.Count(feed, start()); got != 2 {
		t.Errorf("the feed has %d readers, want 2", got)
	}
	const fresh = "https://new.example/feed.xml"
	c.Tally(fresh).Note("A", one)
	if got := c.Count(fresh, start()); got != 1 {
		t.Errorf("a new feed has %d readers, want 1", got)
	}
	c.Forget(fresh)
	c.Forget("https://unknown.example/")
	if got := c.count.Load(); got != c.limit-1 || c.Count(fresh, start()) != 0 {
		t.Errorf("%d tallies are counted, want %d", got, c.limit-1)
	}
}

func TestNoteAllocatesNothing(t *testing.T) {
	tally := NewCensus().Tally(feed)
	client := netip.MustParseAddr("192.0.2.1")
	if n := testing.AllocsPerRun(100, func() { tally.Note("FreshRSS/1.24.1 (Linux; https://freshrss.org)", client) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
