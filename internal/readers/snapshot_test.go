// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package readers

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/feedpollard/pollard/cache/version"
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

// saved returns a snapshot as a store returns it.
func saved(t *testing.T, s *Statistics, now time.Time, limit int) (read Snapshot) {
	t.Helper()
	if err := json.Unmarshal([]byte(text(t, s.Snapshot(now, limit))), &read); err != nil {
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
	q.Compression = r.IntN(2) == 0
	q.Status = []int{200, 200, 304, 429, 404, 503}[r.IntN(6)]
	q.SkipHours = Hours{3, 4}
	if r.IntN(3) == 0 {
		q.IfNoneMatch, q.Validators = `"x"`, version.Standing(r.IntN(4))
	}
	return q
}

// Restarts change nothing in a report.
func TestResume(t *testing.T) {
	for seed := range uint64(6) {
		r := rand.New(rand.NewPCG(seed, 1))
		whole, part := NewStatistics(0), NewStatistics(0)
		at := start()
		for range 500 {
			at = at.Add(time.Duration(6+r.IntN(3000)) * time.Second)
			q := randomly(r, at)
			whole.Record(q)
			part.Record(q)
			if r.IntN(40) == 0 {
				before := saved(t, part, start(), 1000)
				part = NewStatistics(0)
				part.Resume(before)
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
	nodes := []*Statistics{NewStatistics(0), NewStatistics(0)}
	whole := NewStatistics(0)
	at := start()
	for range 500 {
		at = at.Add(time.Hour)
		q := randomly(r, at)
		nodes[r.IntN(2)].Record(q)
		whole.Record(q)
	}
	var reports []status.ReaderReport
	for i, n := range nodes {
		reports = append(reports, n.Report(ReportOptions{Others: []Snapshot{saved(t, nodes[1-i], at, 1000)}}))
	}
	if one, two := text(t, reports[0]), text(t, reports[1]); one != two {
		t.Errorf("one node reports\n%s\nthe other\n%s", one, two)
	}
	want := whole.Report(ReportOptions{})
	got := reports[0]
	if !slices.IsSortedFunc(got.Families, func(a, b status.Reader) int {
		return cmp.Or(cmp.Compare(b.Requests, a.Requests), cmp.Compare(a.Family, b.Family))
	}) {
		t.Errorf("the order is %s", text(t, got.Families))
	}
	if got.Total.Requests != want.Total.Requests || got.Total.Bytes != want.Total.Bytes || got.Hours != want.Hours ||
		len(got.Readers) != len(want.Readers) || got.Total.Addresses != want.Total.Addresses || got.Feeds[0].Requests != want.Feeds[0].Requests {
		t.Errorf("both report\n%s\nwant\n%s", text(t, got), text(t, want))
	}
}

// A report covers two periods.
func TestPeriods(t *testing.T) {
	s := NewStatistics(Period)
	now := time.Unix(0, 0).Add(700 * Period)
	for i := range 2 { // in two periods
		s.Record(poll(now.Add(time.Duration(i)*Period), "A/1", "192.0.2.1"))
	}
	for i, want := range []int64{2, 2, 1, 0} {
		at := now.Add(time.Duration(i) * Period)
		if got := s.Report(ReportOptions{Now: at}).Total.Requests; got != want {
			t.Errorf("%d periods later: %d requests, want %d", i, got, want)
		}
		restarted := NewStatistics(Period)
		restarted.Resume(saved(t, s, at, 1000))
		r := restarted.Report(ReportOptions{})
		if r.Total.Requests != want || len(r.Readers) != int(min(want, 1)) || len(r.Feeds) != len(r.Readers) {
			t.Errorf("%d periods later, after a restart: %d requests of %d readers, want %d", i, r.Total.Requests, len(r.Readers), want)
		}
		if i == 1 {
			restarted.Forget(feed)
			if found := text(t, restarted.Snapshot(at, 10)); strings.Contains(found, feed) {
				t.Errorf("a forgotten feed is in %s", found)
			}
		}
	}
}

func TestSnapshotsAreBounded(t *testing.T) {
	s := newStatistics(0, 50)
	for i := range 100 {
		q := poll(start().Add(time.Duration(i)*time.Second), fmt.Sprintf("R%d/1", i), "192.0.2.1")
		q.Feed = fmt.Sprint("https://example.com/", i)
		s.Record(q)
	}
	got := s.Snapshot(start(), 10)
	if last := got[ofReaders]; len(last) != 10 || last[9].UserAgent != "R99/1" || len(got[ofFeeds]) != 6 {
		t.Errorf("%d readers of %d feeds are saved", len(last), len(got[ofFeeds]))
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
