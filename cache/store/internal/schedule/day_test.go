// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"encoding/binary"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/policy"
)

var dayFeeds = flag.Int("day.feeds", 2000, "number of feeds in the simulated day; what it takes is told by -v")

// habit is what feeds have in common that ask to be polled alike.
type habit struct {
	name    string
	share   int // of 100 feeds
	control string
	hints   policy.Hints
	gap     time.Duration // between entries; 0: unknown
	fails   bool
}

func pointer(n int64) *int64 { return &n }

// habits are a guess at the feeds of a reader's service: what HTTP says goes before what
// documents say, most blogs are quiet, and some feeds have died.
var habits = []habit{
	{name: "max-age=300", share: 15, control: "max-age=300"},
	{name: "max-age=3600", share: 20, control: "max-age=3600"},
	{name: "max-age=86400", share: 5, control: "max-age=86400"},
	{name: "ttl 60", share: 10, hints: policy.Hints{TTL: pointer(60)}},
	{name: "sy hourly", share: 10, hints: policy.Hints{SyPeriod: "hourly", SyFrequency: pointer(1)}},
	{name: "an entry a day", share: 10, gap: 24 * time.Hour},
	{name: "an entry a week", share: 15, gap: 7 * 24 * time.Hour},
	{name: "an entry a month", share: 10, gap: 30 * 24 * time.Hour},
	{name: "fails", share: 5, fails: true},
}

// one is a feed, as far as it is its own.
type one struct {
	habit    *habit
	interval time.Duration
	failures int
	polled   Time
	polls    int
}

// poll makes a poll that brings nothing new, and decides when the next one is.
func (o *one) poll(now Time, rng *rand.Rand) policy.Decision {
	at := dayBegan.Add(time.Duration(now))
	a := policy.Answer{Asked: at, At: at, Status: http.StatusNotModified, Header: http.Header{}}
	if o.habit.control != "" {
		a.Header["Cache-Control"] = []string{o.habit.control}
	}
	if o.habit.fails {
		a.Status, a.Failure = http.StatusInternalServerError, policy.FailureStatus
	}
	h := policy.History{Hints: o.habit.hints, Validated: true, Answered: true, Interval: o.interval, Failures: o.failures}
	if o.habit.gap != 0 {
		h.Rhythm = policy.Rhythm{Entries: 20, Newest: at.Add(-o.habit.gap), Median: o.habit.gap}
	}
	h = h.Learn(a, nil, true)
	d := policy.Decide(policy.DefaultRules(), h, a, at, rng.Float64())
	h = h.Decided(d)
	o.interval, o.failures = h.Interval, h.Failures
	return d
}

var dayBegan = time.Date(2026, time.March, 2, 0, 0, 0, 0, time.UTC)

// TestDay polls many feeds for a day: policy and schedule alone, with nothing sent and
// nothing stored. No feed is polled more often than the rules allow, and none is late by
// more than its host's others take.
func TestDay(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	feeds := make([]one, *dayFeeds)
	shelf := &shelf{feeds: make(map[store.ID]*Feed, len(feeds)), texts: make(map[store.ID]Text, len(feeds))}
	for n := range feeds {
		feeds[n].habit = pick(rng.IntN(100))
		feeds[n].polled = Never
		if feeds[n].habit.fails {
			feeds[n].failures = 6
		}
		// As on any day: each is somewhere between two polls.
		next := Time(rng.Float64() * float64(feeds[n].poll(0, rng).Interval))
		id := dayID(n, rng)
		shelf.feeds[id] = &Feed{Next: next, Hold: time.Hour, Polled: Never, State: store.StateFresh, Version: 1, File: 1, Host: dayHost(n)}
		shelf.texts[id] = Text{URL: "https://feed.example/"}
	}
	before := liveHeap()
	s, err := New(0, shelf, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.ClaimDue(0, store.DueQuery{Limit: 1, Idle: math.MaxInt64}); err != nil {
		t.Fatal(err)
	}
	index := liveHeap() - before
	cpu := cpuTime(t)
	var hours [24]int
	for second := range 24 * 60 * 60 {
		now := Time(time.Duration(second) * time.Second)
		leases, _, err := s.ClaimDue(now, store.DueQuery{Limit: math.MaxInt, Idle: math.MaxInt64})
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range leases {
			f := &feeds[binary.BigEndian.Uint64(l.ID[8:])]
			if f.polled != Never && now.Sub(f.polled) < policy.DefaultRules().MinInterval {
				t.Fatalf("a feed (%s) is polled %v after its last poll", f.habit.name, now.Sub(f.polled))
			}
			d := f.poll(now, rng)
			f.polled = now
			f.polls++
			hours[second/3600]++
			o := store.Outcome{ID: l.ID, Token: l.Token, In: d.Interval, Hold: d.Interval, State: l.State, Host: l.Host}
			if _, err := s.Commit(now, o, 0); err != nil {
				t.Fatal(err)
			}
			s.Confirm()
		}
	}
	cpu = cpuTime(t) - cpu
	total := 0
	for _, n := range hours {
		total += n
	}
	if overdue := s.Totals(Time(24 * time.Hour)).Overdue; overdue > int64(1+total/1000) {
		t.Errorf("%d feeds are overdue in the end", overdue)
	}
	t.Logf("%d feeds, %d polls in a day: %.1f a second, %.1f to %.1f by the hour; %.1f us of CPU time for a decision and the schedule of it; %d bytes of memory a feed for the index",
		len(feeds), total, float64(total)/86400, float64(slices.Min(hours[:]))/3600, float64(slices.Max(hours[:]))/3600,
		cpu.Seconds()*1e6/float64(total), index/len(feeds))
	polls, of := make(map[*habit]int), make(map[*habit]int)
	for n := range feeds {
		polls[feeds[n].habit] += feeds[n].polls
		of[feeds[n].habit]++
	}
	for i := range habits {
		h := &habits[i]
		t.Logf("%-16s %2d %% of feeds, %4.1f polls a feed", h.name, h.share, float64(polls[h])/float64(max(1, of[h])))
		if of[h] > 20 && polls[h] > 24*of[h] {
			t.Errorf("%s: %d polls of %d feeds", h.name, polls[h], of[h])
		}
	}
}

func pick(n int) *habit {
	for i := range habits {
		if n -= habits[i].share; n < 0 {
			return &habits[i]
		}
	}
	return &habits[len(habits)-1]
}

// dayID hashes, as IDs do, and tells which feed it is.
func dayID(n int, rng *rand.Rand) (id store.ID) {
	binary.BigEndian.PutUint64(id[:8], rng.Uint64())
	binary.BigEndian.PutUint64(id[8:], uint64(n))
	return id
}

// dayHost is that of a feed: every tenth is one of a hundred at its host.
func dayHost(n int) store.Host {
	name := fmt.Sprintf("site-%d.example", n)
	if n%10 == 0 {
		name = fmt.Sprintf("host-%d.example", n/1000)
	}
	return store.Host{Name: name, Domain: name, Spacing: 2 * time.Second}
}

func liveHeap() int {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

func cpuTime(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
