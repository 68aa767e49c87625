// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package postgres_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/cache/store/postgres"
	"github.com/feedpollard/pollard/cache/store/postgres/postgrestest"
	"github.com/feedpollard/pollard/cache/store/storetest"
)

func noDeadlocks(t *testing.T) {
	t.Helper()
	if log := server(t).Log(); strings.Contains(log, "deadlock detected") {
		t.Errorf("there were deadlocks:\n%s", log)
	}
}

// holdHost has all claims of a host wait for the end of a transaction.
func holdHost(t *testing.T, url, name string) pgx.Tx {
	t.Helper()
	tx, err := connect(t, url).Begin(t.Context())
	must(t, err)
	_, err = tx.Exec(t.Context(), `select from pollard.host where name = $1 for update`, name)
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
	other.Host = store.Host{Site: "host"}
	storetest.Grant(t, s, other) // the host has a row
	tx := holdHost(t, url, "host")
	ctx, cancel := context.WithCancel(t.Context())
	var polls sync.WaitGroup
	for range 50 {
		polls.Go(func() { _, _ = s.Claim(ctx, []store.Claim{other}) })
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

// TestWatchConcurrentCommits has a transaction end some time after it began, and after others
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
	seen := map[store.ID]uint64{}
	see := func(id store.ID, version uint64) bool {
		for {
			select {
			case c := <-changes:
				if c.Lost {
					t.Fatal("changes were lost")
				}
				seen[c.ID] = max(seen[c.ID], c.Version)
			default:
				return seen[id] == version
			}
		}
	}
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
	for version := rounds + 1; ; version++ { // until this machine is so fast that the transaction takes no longer than any may
		tx, err := connect(t, url).Begin(t.Context())
		must(t, err)
		began := time.Now()
		_, err = tx.Exec(t.Context(), `update pollard.feed set version = $2, news = 1,
			changed = (select scale + (1e9 * extract(epoch from clock_timestamp() - wall))::bigint from pollard.server) where id = $1`, slow.ID[:], version)
		must(t, err)
		later := outcome(storetest.Grant(t, writer, storetest.Claim(feeds)), version)
		later.In = 0
		storetest.Commit(t, writer, later)
		eventually(t, "a version of later is seen", func() bool { return see(later.ID, version) })
		must(t, tx.Commit(t.Context()))
		if time.Since(began) < postgres.LookBack/2 {
			eventually(t, "the version of the transaction is seen", func() bool { return see(slow.ID, version) })
			break
		}
	}
	wg.Wait()
	for n := range feeds {
		id, _ := storetest.Feed(n)
		eventually(t, "a version is seen", func() bool { return see(id, rounds) })
	}
}

// Statements see what was committed before, whatever the default of the server is.
func TestIsolationOfServer(t *testing.T) {
	url := server(t).Database(t)
	t.Parallel()
	exec(t, url, `do $$ begin execute format('alter database %I set default_transaction_isolation = serializable', current_database()); end $$`)
	s := open(t, url)
	var polls sync.WaitGroup
	for n := range 8 {
		polls.Go(func() {
			for range 10 {
				c := storetest.Claim(n)
				c.Host = store.Host{Site: "host"}
				if _, err := s.Claim(t.Context(), []store.Claim{c}); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	polls.Wait()
}

// If a call has no answer in its time, the error names locks, though the server's own word for it comes too late.
func TestLockedTables(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes the 5 s that a call may take")
	}
	url := server(t).Database(t)
	t.Parallel()
	proxy, by := through(t, url)
	s := open(t, by)
	storetest.Grant(t, s, storetest.Claim(1))
	tx, err := connect(t, url).Begin(t.Context())
	must(t, err)
	_, err = tx.Exec(t.Context(), `lock table pollard.host`)
	must(t, err)
	proxy.Set(postgrestest.Fault{Delay: 200 * time.Millisecond})
	paced := storetest.Claim(2)
	paced.Host = store.Host{Site: "host"}
	if _, err := s.Claim(t.Context(), []store.Claim{paced}); err == nil || !strings.Contains(err.Error(), "another session holds locks") {
		t.Errorf("Claim: %v", err)
	}
	must(t, tx.Rollback(t.Context()))
}

// A call finds no row of a feed and waits for that of another one. The row that is made meanwhile is no row that it has
// locked: it leaves it alone, and what another node writes there is not lost.
func TestRowThatIsMadeWhileAnotherIsAwaited(t *testing.T) {
	url := server(t).Database(t)
	t.Parallel()
	s, other, watch := open(t, url), open(t, url), connect(t, url)
	first, last := storetest.Claim(0), storetest.Claim(1)
	if last.ID.Compare(first.ID) < 0 {
		first, last = last, first
	}
	storetest.Grant(t, s, last)
	tx, err := connect(t, url).Begin(t.Context())
	must(t, err)
	_, err = tx.Exec(t.Context(), `select from pollard.feed where id = $1 for update`, last.ID[:])
	must(t, err)

	var made store.Lease
	commit := sync.OnceFunc(func() { storetest.Commit(t, other, outcome(made, 1)) })
	touched := make(chan error, 1)
	go func() {
		touched <- s.Touch(t.Context(), map[store.ID]store.Asked{
			first.ID: {FeedState: func([]byte) []byte { commit(); return []byte("of a row that was not locked") }},
			last.ID:  {},
		})
	}()
	waiting(t, watch, 1)
	made = storetest.Grant(t, other, first)
	must(t, tx.Rollback(t.Context()), <-touched)
	commit()
	records, err := s.Lookup(t.Context(), []store.ID{first.ID})
	if err != nil || len(records) != 1 || records[0].Version != 1 {
		t.Errorf("a committed version is lost: %+v, %v", records, err)
	}
}
