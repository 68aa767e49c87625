// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/feedpollard/pollard/cache/store"
)

// On a full disk, new feeds of public networks that are read daily become established, beside others that have
// been read daily for long.
func TestNewFeedsBecomeEstablishedOnAFullDisk(t *testing.T) {
	const size, disk, daily, settle = 20_000, 4 << 20, 10, 12
	w := newWorld(t)
	read := func(url string, day int) { w.read(url, named(store.KindPublic, 1+day%3), size) }
	for day := range 4 {
		for n := range 250 {
			read(fmt.Sprintf("https://old.test/%d", n), n)
		}
		_, err := w.s.Trim(t.Context(), disk)
		w.must(err)
		w.now = w.now.Add(24*time.Hour + time.Duration(day)*time.Minute)
	}
	established := 0
	for day := range settle {
		for born := max(0, day-4); born <= day; born++ {
			for n := range daily {
				url := fmt.Sprintf("https://new.test/%d/%d", born, n)
				read(url, n)
				if r, known := w.record(url); day == born+4 && known && r.Rank.Established() {
					established++
				}
			}
			_, err := w.s.Trim(t.Context(), disk)
			w.must(err)
			w.now = w.now.Add(time.Hour)
		}
		w.now = w.now.Add(24*time.Hour - time.Duration(min(day, 4)+1)*time.Hour)
		_, err := w.s.Sweep(t.Context(), store.SweepQuery{Idle: 90 * 24 * time.Hour, Unread: 24 * time.Hour})
		w.must(err)
	}
	if want := daily * (settle - 4); established < want*8/10 {
		t.Errorf("%d of %d new feeds that are read daily are established", established, want)
	}
}

// What is remembered of feeds that gave way is bounded: if it takes all that such feeds may take, the store says so until some
// of it has ended.
func TestCrowded(t *testing.T) {
	const disk = 1 << 20
	w := newWorld(t)
	crowded := func() bool {
		_, err := w.s.Trim(t.Context(), disk)
		w.must(err)
		totals, err := w.s.Totals(t.Context())
		w.must(err)
		return totals.Crowded
	}
	n := 0
	for ; n < 2000 && !crowded(); n++ {
		l := w.claim(fmt.Sprint("https://invented.test/", n), named(store.KindPublic, 1), store.Host{})
		o := store.Outcome{ID: l.ID, Token: l.Token, In: time.Hour, Hold: time.Hour, State: store.StateFresh, FeedState: make([]byte, 3000)}
		w.must(w.s.Commit(t.Context(), o))
	}
	if n == 2000 {
		t.Fatal("never crowded")
	}
	w.now = w.now.Add(25 * time.Hour)
	_, err := w.s.Sweep(t.Context(), store.SweepQuery{})
	w.must(err)
	if crowded() {
		t.Error("crowded a day later")
	}
}
