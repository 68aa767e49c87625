// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package readers

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/feedpollard/pollard/internal/status"
)

func text(t *testing.T, v any) string {
	t.Helper()
	b, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// saved is a snapshot as a store returns it.
func saved(t *testing.T, s *Snapshot) *Snapshot {
	t.Helper()
	var read *Snapshot
	if err := json.Unmarshal([]byte(text(t, s)), &read); err != nil {
		t.Fatal(err)
	}
	if err := read.Check(); err != nil {
		t.Fatal(err)
	}
	return read
}

// randomly is a request of one of some readers for one of some feeds.
func randomly(r *rand.Rand, at time.Time) Request {
	agents := []string{"FreshRSS/1.24 (Linux)", "Feedly/1.0 (%d subscribers; feed-id=7)", "", "NetNewsWire/6 (macOS)", "curl/8"}
	agent := agents[r.IntN(len(agents))]
	if agent == agents[1] {
		agent = fmt.Sprintf(agent, 1+r.IntN(50))
	}
	q := poll(at, agent, netip.AddrFrom4([4]byte{192, 0, byte(r.IntN(3)), byte(r.IntN(4))}).String())
	q.Feed = fmt.Sprint("https://example.com/", r.IntN(4))
	q.Bytes = r.Int64N(100_000)
	q.Compressible, q.Referer = r.IntN(2) == 0, r.IntN(5) == 0
	q.Status = []int{200, 200, 304, 429, 404, 503}[r.IntN(6)]
	q.SkipHours = HoursOf([]int{3, 4})
	if r.IntN(3) == 0 {
		q.IfNoneMatch, q.Validators = `"x"`, Validators(r.IntN(4))
	}
	if r.IntN(9) == 0 {
		q.Token = "alice"
	}
	return q
}

// Restarts change nothing in a report.
func TestResume(t *testing.T) {
	for seed := range uint64(6) {
		r := rand.New(rand.NewPCG(seed, 1))
		whole, part := NewStatistics(Options{Seed: 7}), NewStatistics(Options{Seed: 8})
		at := start()
		for range 500 {
			at = at.Add(time.Duration(6+r.IntN(3000)) * time.Second)
			q := randomly(r, at)
			whole.Record(q)
			part.Record(q)
			if r.IntN(40) == 0 {
				current, previous := part.Snapshots(start(), 1000)
				part = NewStatistics(Options{Seed: seed})
				part.Resume(start(), saved(t, current), saved(t, previous))
			}
		}
		if got, want := text(t, part.Report(ReportOptions{})), text(t, whole.Report(ReportOptions{})); got != want {
			t.Fatalf("seed %d: after restarts\n%s\nwant\n%s", seed, got, want)
		}
	}
}

// The reports of two nodes are the same, and sum up what both have counted.
func TestNodesAreMerged(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	nodes := []*Statistics{NewStatistics(Options{}), NewStatistics(Options{})}
	whole := NewStatistics(Options{})
	at := start()
	for range 500 {
		at = at.Add(time.Hour)
		q := randomly(r, at)
		nodes[r.IntN(2)].Record(q)
		whole.Record(q)
	}
	var reports []status.ReaderReport
	for i, n := range nodes {
		current, _ := nodes[1-i].Snapshots(at, 1000)
		reports = append(reports, n.Report(ReportOptions{Others: []*Snapshot{saved(t, current)}}))
	}
	if one, two := text(t, reports[0]), text(t, reports[1]); one != two {
		t.Errorf("one node reports\n%s\nthe other\n%s", one, two)
	}
	want := whole.Report(ReportOptions{})
	got := reports[0]
	if got.Total.Requests != want.Total.Requests || got.Total.Bytes != want.Total.Bytes || got.Hours != want.Hours ||
		len(got.Readers) != len(want.Readers) || got.Total.Addresses != want.Total.Addresses || got.Feeds[0].Requests != want.Feeds[0].Requests {
		t.Errorf("both report\n%s\nwant\n%s", text(t, got), text(t, want))
	}
}

// A report covers two periods.
func TestPeriods(t *testing.T) {
	s := NewStatistics(Options{})
	now := time.Unix(0, 0).Add(700 * period)
	s.Snapshots(now, 1) // begins the period
	s.Record(poll(now, "A/1", "192.0.2.1"))
	for i, want := range []int64{1, 1, 0} {
		at := now.Add(time.Duration(i) * period)
		current, previous := s.Snapshots(at, 1000)
		if got := s.Report(ReportOptions{}).Total.Requests; got != want {
			t.Errorf("%d periods later: %d requests, want %d", i, got, want)
		}
		restarted := NewStatistics(Options{})
		restarted.Resume(at, saved(t, current), saved(t, previous))
		if got := restarted.Report(ReportOptions{}).Total.Requests; got != want {
			t.Errorf("%d periods later, after a restart: %d requests, want %d", i, got, want)
		}
	}
}

// The most recent readers are saved.
func TestSnapshotsAreBounded(t *testing.T) {
	s := NewStatistics(Options{Readers: 50, Feeds: 3})
	const requests = 100
	for i := range requests {
		q := poll(start().Add(time.Duration(i)*time.Second), fmt.Sprintf("R%d/1", i), "192.0.2.1")
		q.Feed = fmt.Sprint("https://example.com/", i)
		s.Record(q)
	}
	current, _ := s.Snapshots(start(), 10)
	if len(current.Readers) != 10 || current.Readers[9].UserAgent != "R99/1" || len(current.Feeds) != 3 {
		t.Errorf("%d readers of %d feeds are saved", len(current.Readers), len(current.Feeds))
	}
	restarted := NewStatistics(Options{})
	restarted.Resume(start(), saved(t, current))
	if got := restarted.Report(ReportOptions{}).Total.Requests; got != requests {
		t.Errorf("%d requests in the sum, want %d", got, requests)
	}
}

// No full address is saved.
func TestSnapshotHasNoAddress(t *testing.T) {
	s := NewStatistics(Options{})
	s.Record(poll(start(), "A/1", "198.51.100.77"))
	s.Record(poll(start(), "A/1", "2001:db8:1:eeee:3:4:5:6"))
	current, _ := s.Snapshots(start(), 10)
	found := text(t, current)
	for _, secret := range []string{"100.77", "eeee", "3:4:5:6"} {
		if strings.Contains(found, secret) {
			t.Errorf("%s is in %s", secret, found)
		}
	}
	if !strings.Contains(found, "198.51.100.0/24") || !strings.Contains(found, "2001:db8:1::/48") {
		t.Errorf("no networks in %s", found)
	}
}

func TestForgottenFeedIsNotSaved(t *testing.T) {
	s := NewStatistics(Options{})
	now := start()
	for range 2 { // in both periods
		s.Snapshots(now, 1)
		s.Record(poll(now, "A/1", "192.0.2.1"))
		now = now.Add(period)
	}
	s.Forget(feed)
	current, previous := s.Snapshots(now.Add(-period), 10)
	if found := text(t, current) + text(t, previous); strings.Contains(found, feed) {
		t.Errorf("a forgotten feed is in %s", found)
	}
}

func TestDamagedSnapshotsAreRefused(t *testing.T) {
	for _, c := range []SavedCounters{
		{Sums: make([]int64, 1000)},
		{Sums: []int64{-1}},
		{Hours: make([]uint32, 25)},
		{Gaps: make([]uint32, 1000)},
		{Network: netip.PrefixFrom(netip.MustParseAddr("192.0.2.1"), 24)},
		{Identities: []byte{1}},
		{Networks: []byte(strings.Repeat("\xff", 64))},
	} {
		for name, s := range map[string]*Snapshot{
			"feeds": {Feeds: []SavedCounters{c}}, "families": {Families: []SavedCounters{c}},
			"readers": {Readers: []SavedCounters{c}}, "rest": {Rest: c},
		} {
			if err := s.Check(); err == nil {
				t.Errorf("%+v among %s: no error", c, name)
			}
		}
	}
}

// Sketches of nodes and of earlier processes are merged.
func TestSketchesAreMerged(t *testing.T) {
	now := start()
	nodes := []*Feeds{NewFeeds(nil), NewFeeds(nil)}
	var all []FeedSketch
	for i, f := range nodes {
		for n := range 100 {
			f.Feed(feed).CountReader("A", netip.AddrFrom4([4]byte{byte(i), byte(n), 0, 1}))
		}
		all = append(all, f.Sketches(now, 10)...)
	}
	for name, f := range map[string]*Feeds{"the first": nodes[0], "the second": nodes[1], "a new one": NewFeeds(nil)} {
		f.MergeSketches(all, now)
		if got := f.Subscribers(feed, now); got < 180 || got > 220 {
			t.Errorf("%s counts %d readers, want about 200", name, got)
		}
	}
	for weeks, want := range []int{200, 200, 0} {
		f, at := NewFeeds(nil), now.Add(time.Duration(weeks)*week)
		f.MergeSketches(all, at)
		if got := f.Subscribers(feed, at); got < want*9/10 || got > want*11/10 {
			t.Errorf("%d weeks later: %d readers, want about %d", weeks, got, want)
		}
	}
	if CheckSketches(all) != nil || CheckSketches([]FeedSketch{{feed, weekOf(now), []byte("short")}}) == nil {
		t.Error("a damaged sketch is not told from a good one")
	}
	if got := nodes[0].Sketches(now, 0); len(got) != 0 {
		t.Errorf("%d sketches beyond the limit", len(got))
	}
}

// The answers of each feed are taken once, also those of a feed that is evicted.
func TestAnswersAreTakenOnce(t *testing.T) {
	var taken Served
	add := func(s Served) { taken.Answers += s.Answers; taken.Bytes += s.Bytes }
	f := NewFeeds(add)
	f.limit = 10
	for i := range 100 {
		f.Feed(fmt.Sprint("https://example.com/", i%25)).CountAnswer(5)
		if i%40 == 0 {
			f.Take(add)
		}
	}
	f.Take(add)
	f.Take(add)
	if taken.Answers != 100 || taken.Bytes != 500 {
		t.Errorf("%+v", taken)
	}
}
