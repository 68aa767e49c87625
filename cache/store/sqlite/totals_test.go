// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/feedpollard/pollard/cache/store"
)

// slow is a database that needs a second to count feeds.
type slow struct{ *database }

func (s slow) Used(tx store.Tx) (int64, error) {
	time.Sleep(time.Second)
	return s.database.Used(tx)
}

// TestTotals counts a thousand feeds each time, and more of them for a hundredth of the time.
func TestTotals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := store.NewDatabase(slow{NewMemory(nil).database})
		defer s.Close()
		feeds := int64(0)
		add := func(n int) {
			var saved []store.Saved
			for range n {
				feeds++
				saved = append(saved, store.Saved{Record: store.Record{ID: numbered(int(feeds)), URL: urlOf(int(feeds)), State: store.StateCold, Polled: -1, Asked: -1}})
			}
			mustDo(t, s.Restore(t.Context(), saved))
		}
		count := func(want int64) {
			t.Helper()
			if totals, err := s.Totals(t.Context()); err != nil || totals.Feeds[store.StateCold] != want {
				t.Errorf("Totals = %+v, %v, want %d feeds", totals, err, want)
			}
		}
		add(999)
		count(999)
		add(1)
		count(1000)
		add(1)
		count(1001)
		add(1)
		count(1001)
		time.Sleep(98 * time.Second)
		count(1001)
		time.Sleep(2 * time.Second)
		count(1002)
	})
}
