// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"fmt"
	"testing"
	"time"
)

// at is a moment of these tests, in hours. 100 is the present.
func at(hours int) Time { return Time(hours) * Time(time.Hour) }

// The rule for when a URL may be asked before its feed is due, by all that it depends on. The floor is two hours.
func TestMayAsk(t *testing.T) {
	for _, tt := range []struct {
		name        string
		row         func(*feedRow)
		since, want Time
	}{
		{"it was never asked", func(*feedRow) {}, Never, Never},
		{"its next poll is to come", func(f *feedRow) { f.next = at(110) }, Never, Never},
		{"its polling has ended", func(f *feedRow) { f.next = End }, Never, Never},
		{"it was polled", func(f *feedRow) { f.last = at(99) }, Never, at(101)},
		{"a redirect led to it", func(f *feedRow) { f.hopped = at(99) }, Never, at(101)},
		{"both", func(f *feedRow) { f.last, f.hopped = at(95), at(99) }, Never, at(101)},
		{"its origin asked for a pause", func(f *feedRow) { f.earliest, f.next = at(130), at(130) }, Never, at(130)},
		{"a server is lost", func(f *feedRow) { f.next = at(103) }, at(99), at(101)},
	} {
		f := newFeed(ID{1})
		tt.row(&f)
		if got := f.mayAsk(2*time.Hour, tt.since); got != tt.want {
			t.Errorf("%s: it may be asked %v from now, want %v", tt.name, got.Sub(at(100)), tt.want.Sub(at(100)))
		}
	}
}

// Feeds of the rank of a pause and below wait for it. An exhausted rate limit holds for better ranks too,
// unless their own last good answer had no such fields.
func TestHostMayAsk(t *testing.T) {
	now := at(100)
	paused := func(scope string, step int) func(*hostRow) {
		return func(h *hostRow) {
			h.pauses = append(h.pauses, newPauseRow(scope, now.Add(5*time.Minute), "why", step, ""))
		}
	}
	for _, tt := range []struct {
		name  string
		row   func(*hostRow)
		waits [ranks]bool
	}{
		{"none", func(*hostRow) {}, [ranks]bool{}},
		{"of rank 3", paused("host example.com 3", 1), [ranks]bool{false, false, true, true, true}},
		{"of rank 1", paused("host example.com 1", 1), [ranks]bool{true, true, true, true, true}},
		{"of the edition before", paused("host example.com", 1), [ranks]bool{true, true, true, true, true}},
		{"of the domain", paused("domain example.com 4", 1), [ranks]bool{false, false, false, true, true}},
		{"of the domain, and it answered well", func(h *hostRow) {
			paused("domain example.com 4", 1)(h)
			h.good = at(90)
		}, [ranks]bool{}},
		{"a rate limit", paused("ratelimit example.com", 4), [ranks]bool{true, true, true, true, true}},
		{"a rate limit that ranks 1 and 2 have not", func(h *hostRow) {
			paused("ratelimit example.com", 4)(h)
			h.plain = 1<<1 | 1<<2 | 1<<5
		}, [ranks]bool{false, false, true, true, true}},
		{"of an impossible rank", paused("host example.com 9", 1), [ranks]bool{}},
		{"of an impossible length", func(h *hostRow) {
			h.pauses = []pauseRow{newPauseRow("host example.com 1", now.Add(1000*time.Hour), "why", 1, "")}
		}, [ranks]bool{}},
	} {
		h := &hostRow{name: "example.com", good: Never}
		tt.row(h)
		for r := RankOperator; int(r) <= ranks; r++ {
			at, p := h.mayAsk(r, false, time.Second, now, Never)
			if waits := at > now; waits != tt.waits[r-1] || waits != (p != nil) {
				t.Errorf("pause %s: rank %d waits %v", tt.name, r, at.Sub(now))
			}
			if at, _ := h.mayAsk(r, true, time.Second, now, Never); r == RankOperator && at > now {
				t.Errorf("pause %s: the operator's feed waits by hand", tt.name)
			}
		}
	}
}

// Of four polls of a host three are for the best rank that waits, of the rest three of four for the next one;
// those below have a share each.
func TestRankOfSlot(t *testing.T) {
	for _, tt := range []struct {
		waiting []Rank
		want    map[Rank]int // of 960
	}{
		{[]Rank{5}, map[Rank]int{5: 960}},
		{[]Rank{1, 5}, map[Rank]int{1: 720, 5: 240}},
		{[]Rank{2, 3, 5}, map[Rank]int{2: 720, 3: 180, 5: 60}},
		{[]Rank{1, 2, 3, 4, 5}, map[Rank]int{1: 720, 2: 180, 3: 20, 4: 20, 5: 20}},
	} {
		got := make(map[Rank]int)
		for n := range int64(960) {
			got[rankOfSlot(n+1, tt.waiting)]++
		}
		if fmt.Sprint(got) != fmt.Sprint(tt.want) {
			t.Errorf("of %v: %v, want %v", tt.waiting, got, tt.want)
		}
	}
}

// Impossible values of the columns of rank do not make a better rank.
func TestRank(t *testing.T) {
	for _, tt := range []struct {
		f    feedRow
		want Rank
	}{
		{feedRow{configured: true}, RankOperator},
		{feedRow{owner: Operator, established: true}, RankOperator},
		{feedRow{owner: OwnerOf(KindToken, ""), established: true}, RankNamed},
		{feedRow{owner: OwnerOf(KindShield, "")}, RankNamedNew},
		{feedRow{owner: OwnerOf(KindPublic, ""), established: true}, RankPublic},
		{feedRow{}, RankPublicNew},
		{feedRow{owner: -1}, RankPublicNew},
		{feedRow{owner: OwnerOf(6, ""), established: true}, RankPublic},
	} {
		if got := tt.f.rank(); got != tt.want {
			t.Errorf("configured %v, owner %x, established %v: rank %d, want %d", tt.f.configured, uint64(tt.f.owner), tt.f.established, got, tt.want)
		}
	}
}
