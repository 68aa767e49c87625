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

// All feeds of a site wait for its pause, and those without a version for one of theirs.
func TestSiteMayAsk(t *testing.T) {
	now := at(100)
	for _, tt := range []struct {
		name       string
		row        func(*hostRow)
		all, fresh time.Duration
	}{
		{"none", func(*hostRow) {}, 0, 0},
		{"of the site", func(h *hostRow) { h.site.until = now.Add(5 * time.Minute) }, 5 * time.Minute, 5 * time.Minute},
		{"of new feeds", func(h *hostRow) { h.fresh.until = now.Add(5 * time.Minute) }, 0, 5 * time.Minute},
		{"of both", func(h *hostRow) { h.site.until, h.fresh.until = now.Add(9*time.Minute), now.Add(5*time.Minute) }, 9 * time.Minute, 9 * time.Minute},
		{"of an impossible length", func(h *hostRow) { h.site.until = now.Add(1000 * time.Hour) }, 0, 0},
	} {
		h := newHostRow("example.com")
		tt.row(h)
		for hasVersion, want := range map[bool]time.Duration{true: tt.all, false: tt.fresh} {
			at, p := h.mayAsk(hasVersion, time.Second, now, Never)
			if waits := max(0, at.Sub(now)); waits != want || (want > 0) != (p != nil) {
				t.Errorf("pause %s: a feed with a version (%v) waits %v, want %v", tt.name, hasVersion, waits, want)
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
