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

// TestClaimsReadFewRows polls feeds of many sites, and a program keeps a transaction open. No statement reads all feeds,
// sites or changes, and what is left of rows that were replaced is read once.
func TestClaimsReadFewRows(t *testing.T) {
	if testing.Short() {
		t.Skip("thousands of rows take a while")
	}
	const (
		sites  = 1000
		rounds = 3
	)
	url := server(t).Database(t)
	s := open(t, url)
	var saved []store.Saved
	urls := make(map[store.ID]string)
	for n := range sites {
		id, url := storetest.Feed(n)
		urls[id] = url
		saved = append(saved, store.Saved{Record: store.Record{ID: id, URL: url, Configured: true, State: store.StateCold, Site: fmt.Sprint("site", n), Polled: -1, Asked: -1, First: -1}})
	}
	must(t, s.Restore(t.Context(), saved))

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
		for q, read := (store.DueQuery{Limit: 50}), true; read; {
			due, err := s.Due(t.Context(), q)
			must(t, err)
			q.From, read = due.To, due.Wait <= 0
			var claims []store.Claim
			for _, f := range due.Feeds {
				claims = append(claims, store.Claim{ID: f.ID, URL: urls[f.ID], Hold: time.Hour, Configured: true, Host: store.Host{Site: f.Site, Spacing: time.Second}})
			}
			leases, err := s.Claim(t.Context(), claims)
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
			polls += len(leases)
		}
		if err := s.Close(); err != nil { // sessions report what they did when they end
			t.Fatal(err)
		}
		eventually(t, "sessions have reported", func() bool { return rowsWritten(t, url) >= written+2*int64(polls) })
		if n := (rowsRead(t, url) - before) / int64(max(1, polls)); polls < sites || n > 250 {
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
