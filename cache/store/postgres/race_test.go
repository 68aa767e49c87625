// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package postgres_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/cache/store/storetest"
)

func noDeadlocks(t *testing.T) {
	t.Helper()
	if log := server(t).Log(); strings.Contains(log, "deadlock detected") {
		t.Errorf("there were deadlocks:\n%s", log)
	}
}

// holdHost has all claims of the host "host" wait for the end of a transaction.
func holdHost(t *testing.T, url string) pgx.Tx {
	t.Helper()
	tx, err := connect(t, url).Begin(t.Context())
	must(t, err)
	_, err = tx.Exec(t.Context(), `select from pollard.host where name = 'host' for update`)
	must(t, err)
	return tx
}

// waiting waits until n sessions wait for what another transaction holds.
func waiting(t *testing.T, watch *pgx.Conn, n int) {
	t.Helper()
	eventually(t, fmt.Sprintf("%d sessions wait", n), func() bool {
		var waiting int
		err := watch.QueryRow(t.Context(), `select count(*) from pg_stat_activity
			where datname = current_database() and wait_event_type = 'Lock'`).Scan(&waiting)
		must(t, err)
		return waiting >= n
	})
}

// However many polls wait for the database, what readers wait for is read.
func TestReadersDoNotWaitForPolls(t *testing.T) {
	url := server(t).Database(t)
	t.Parallel()
	s, watch := open(t, url+"&pool_max_conns=3"), connect(t, url)
	storetest.Commit(t, s, outcome(storetest.Grant(t, s, storetest.Claim(0)), 1))
	other := storetest.Claim(1)
	other.Host = store.Host{Name: "host"}
	storetest.Grant(t, s, other) // the host has a row
	tx := holdHost(t, url)
	ctx, cancel := context.WithCancel(t.Context())
	var polls sync.WaitGroup
	for range 50 {
		polls.Go(func() { _, _ = s.Claim(ctx, other) })
	}
	waiting(t, watch, 2)
	id, _ := storetest.Feed(0)
	if records, err := s.Lookup(t.Context(), []store.ID{id}); err != nil || len(records) != 1 {
		t.Errorf("Lookup = %v, %v", records, err)
	}
	if _, err := store.ReadBody(t.Context(), s, id); err != nil {
		t.Errorf("Body: %v", err)
	}
	cancel()
	polls.Wait()
	must(t, tx.Rollback(t.Context()))
}

// TestWatchConcurrentCommits has a transaction end long after it began, and after others
// that began later. Watch reports its changes.
func TestWatchConcurrentCommits(t *testing.T) {
	const feeds = 16
	rounds := uint64(8)
	if testing.Short() {
		rounds = 2
	}
	url := server(t).Database(t)
	t.Parallel()
	writer := open(t, url)
	slow := storetest.Grant(t, writer, storetest.Claim(1000))
	changes := storetest.Watch(t, open(t, url))

	tx, err := connect(t, url).Begin(t.Context())
	must(t, err)
	_, err = tx.Exec(t.Context(), `update pollard.feed set version = 7, news = 1,
		changed = (select scale + (1e9 * extract(epoch from clock_timestamp() - wall))::bigint from pollard.server) where id = $1`, slow.ID[:])
	must(t, err)
	var wg sync.WaitGroup
	for n := range feeds {
		wg.Go(func() {
			for v := range rounds {
				o := outcome(storetest.Grant(t, writer, storetest.Claim(n)), v+1)
				o.In = 0
				storetest.Commit(t, writer, o)
			}
		})
	}
	wg.Wait()
	seen := map[store.ID]uint64{}
	see := func(n int, version uint64) {
		t.Helper()
		id, _ := storetest.Feed(n)
		eventually(t, "a version is seen", func() bool {
			select {
			case c := <-changes:
				if c.Lost {
					t.Fatal("changes were lost")
				}
				seen[c.ID] = max(seen[c.ID], c.Version)
			default:
			}
			return seen[id] == version
		})
	}
	for n := range feeds {
		see(n, rounds)
	}
	must(t, tx.Commit(t.Context()))
	see(1000, 7)
}
