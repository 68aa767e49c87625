// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package postgres_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/cache/store/storetest"
)

// TestClaimsReadFewRows polls feeds of many hosts while one host that is paused has as many
// feeds that are due, and a program keeps a transaction open. No statement reads all feeds,
// hosts or changes, nor what is left of rows that were replaced.
func TestClaimsReadFewRows(t *testing.T) {
	if testing.Short() {
		t.Skip("thousands of rows take a while")
	}
	const (
		hosts  = 1000
		rounds = 3
	)
	url := server(t).Database(t)
	s := open(t, url)
	var saved []store.Saved
	for n := range 2 * hosts {
		id, url := storetest.Feed(n)
		host := store.Host{Site: fmt.Sprint("host", n), Spacing: time.Second}
		if n >= hosts {
			host.Site = "paused"
		}
		saved = append(saved, store.Saved{Record: store.Record{ID: id, URL: url, Configured: true, State: store.StateCold, Hold: time.Hour, Host: host, Polled: -1, Asked: -1}})
	}
	must(t, s.Restore(t.Context(), saved))
	c := configured(hosts)
	c.Host = store.Host{Site: "paused"}
	o := outcome(storetest.Grant(t, s, c), 0)
	o.Pauses = []store.Pause{{Site: "paused", For: 100 * time.Hour}}
	storetest.Commit(t, s, o)

	foreign, err := connect(t, server(t).URL("postgres")).Begin(t.Context())
	must(t, err)
	defer foreign.Rollback(t.Context())
	_, err = foreign.Exec(t.Context(), `select pg_current_xact_id()`)
	must(t, err)
	mine, err := connect(t, url).Begin(t.Context())
	must(t, err)
	defer mine.Rollback(t.Context())
	_, err = mine.Exec(t.Context(), `set transaction isolation level repeatable read; select from pollard.feed limit 1`)
	must(t, err)

	storetest.Watch(t, open(t, url))
	must(t, s.Close())
	for range rounds {
		s := open(t, url)
		before, polls := rowsRead(t, url), 0
		written := rowsWritten(t, url)
		for {
			leases, _, err := s.ClaimDue(t.Context(), store.DueQuery{Limit: 50})
			must(t, err)
			var commits sync.WaitGroup
			for _, l := range leases {
				commits.Go(func() {
					if err := s.Commit(t.Context(), outcome(l, 0)); err != nil {
						t.Error(err)
					}
				})
			}
			commits.Wait()
			if polls += len(leases); len(leases) == 0 {
				break
			}
		}
		if err := s.Close(); err != nil { // sessions report what they did when they end
			t.Fatal(err)
		}
		eventually(t, "sessions have reported", func() bool { return rowsWritten(t, url) >= written+2*int64(polls) })
		if n := (rowsRead(t, url) - before) / int64(max(1, polls)); polls < hosts || n > 250 {
			t.Errorf("%d polls read %d rows and entries of indexes each", polls, n)
		}
		sleep(t, url, 3*time.Hour)
	}
}

// rowsRead returns how many rows and entries of indexes were read so far.
func rowsRead(t *testing.T, url string) int64 {
	return statistic(t, url, `select (select sum(seq_tup_read + idx_tup_fetch) from pg_stat_user_tables)::bigint
		+ (select sum(idx_tup_read) from pg_stat_user_indexes)::bigint`)
}

// rowsWritten returns how often rows of feeds were written so far: twice by each poll.
func rowsWritten(t *testing.T, url string) int64 {
	return statistic(t, url, `select n_tup_upd from pg_stat_user_tables where relname = 'feed'`)
}

func statistic(t *testing.T, url, query string) (n int64) {
	t.Helper()
	conn := connect(t, url)
	defer conn.Close(t.Context())
	must(t, conn.QueryRow(t.Context(), query).Scan(&n))
	return n
}
