// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package postgres_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/cache/store/postgres"
	"github.com/feedpollard/pollard/cache/store/postgres/postgrestest"
	"github.com/feedpollard/pollard/cache/store/storetest"
)

// TestFailover cuts off a standby, polls on, loses the server, and promotes the standby,
// which knows nothing of the last polls.
func TestFailover(t *testing.T) {
	t.Parallel()
	primary := postgrestest.Start(t)
	url := primary.Database(t)
	one := open(t, url)

	for n := 2; n <= 3; n++ { // due when the standby is cut off
		storetest.Commit(t, one, outcome(storetest.Grant(t, one, configured(n)), 1))
	}
	sleep(t, url, 2*time.Hour)
	storetest.Grant(t, one, configured(1)) // not due for an hour, so known to be polled

	standby := primary.Standby(t)
	eventually(t, "the standby has all", func() bool {
		conn := connect(t, standby.URL("feeds1"))
		defer conn.Close(t.Context())
		var n int
		return conn.QueryRow(t.Context(), `select count(*) from pollard.feed where token <> 0`).Scan(&n) == nil && n == 3
	})
	standby.Crash()

	// Of these grants, the standby never hears.
	lost := storetest.Grant(t, one, configured(2))
	fresh := storetest.Grant(t, one, configured(4))
	primary.Crash()
	one.Close()

	standby.Start(t)
	_, err := postgres.Open(t.Context(), postgres.Options{URL: standby.URL("feeds1")})
	if err == nil || !strings.Contains(err.Error(), "this is a standby") {
		t.Fatalf("Open of a standby: %v", err)
	}
	standby.Promote(t)
	two := open(t, standby.URL("feeds1"))

	// Every feed that may have been polled by the other server waits for its hold, whether
	// its record is there or not, and however it is claimed.
	if l := storetest.Ask(t, two, configured(2)); l.Denied != store.DeniedNotDue || l.Wait < 50*time.Minute {
		t.Errorf("feed 2: %+v", l)
	}
	leases, wait, err := two.ClaimDue(t.Context(), store.DueQuery{Limit: 10})
	if err != nil || len(leases) > 0 || wait < 50*time.Second {
		t.Errorf("ClaimDue = %+v, %v, %v", leases, wait, err)
	}
	for n := 1; n <= 4; n++ {
		if l := storetest.Ask(t, two, configured(n)); l.Denied != store.DeniedNotDue || l.Wait < 50*time.Minute {
			t.Errorf("feed %d: %+v", n, l)
		}
	}
	// The other server's grants are void here, and its tokens do not come again.
	for _, l := range []store.Lease{lost, fresh} {
		if err := two.Commit(t.Context(), outcome(l, 1)); !errors.Is(err, store.ErrFenced) {
			t.Errorf("Commit of a lost lease: %v", err)
		}
	}
	sleep(t, standby.URL("feeds1"), 2*time.Hour)
	for n := 1; n <= 4; n++ {
		if l := storetest.Grant(t, two, configured(n)); l.Token <= lost.Token || l.Token <= fresh.Token {
			t.Errorf("feed %d: token %d after %d and %d", n, l.Token, lost.Token, fresh.Token)
		}
	}
}

// configured asks for a poll of the nth feed, which the operator has written down.
func configured(n int) store.Claim {
	c := storetest.Claim(n)
	c.Configured = true
	return c
}

// TestDump goes on with a copy of a store, whose records are of the past.
func TestDump(t *testing.T) {
	c := server(t)
	url := c.Database(t)
	s := open(t, url)
	storetest.Grant(t, s, configured(1))
	sleep(t, url, 2*time.Hour)
	s = open(t, c.Copy(t, url))
	if l := storetest.Ask(t, s, configured(1)); l.Denied != store.DeniedNotDue || l.Wait < 50*time.Minute {
		t.Errorf("after a dump was restored: %+v", l)
	}
}

// TestClockOfServer sets the clock of the server by hours. Neither a node that was there nor
// one that starts finds anything due.
func TestClockOfServer(t *testing.T) {
	if testing.Short() {
		t.Skip("a node that starts waits ten seconds for the other one to correct the time")
	}
	c := server(t)
	t.Parallel()
	for _, by := range []string{"3 hours", "-3 hours"} {
		t.Run(by, func(t *testing.T) {
			t.Parallel()
			url := c.Database(t)
			one := open(t, url)
			storetest.Commit(t, one, outcome(storetest.Grant(t, one, configured(1)), 1)) // for two hours
			storetest.Grant(t, one, configured(2))
			// As if it had been set: it shows so much more than when the time was written.
			setServer(t, url, `wall = wall - interval '`+by+`'`)
			for n, s := range []store.Store{one, open(t, url), one} {
				leases, _, err := s.ClaimDue(t.Context(), store.DueQuery{Limit: 10})
				if err != nil || len(leases) > 0 {
					t.Errorf("node %d: ClaimDue = %+v, %v", n, leases, err)
				}
				if l := storetest.Ask(t, s, configured(2)); l.Denied != store.DeniedNotDue || l.Wait < 59*time.Minute || l.Wait > time.Hour+time.Minute {
					t.Errorf("node %d: %+v", n, l)
				}
			}
		})
	}
}

// TestAwayForDays finds the time when no node ran.
func TestAwayForDays(t *testing.T) {
	url := server(t).Database(t)
	t.Parallel()
	s := open(t, url)
	storetest.Commit(t, s, outcome(storetest.Grant(t, s, configured(1)), 1))
	s.Close()
	setServer(t, url, `wall = wall - interval '3 hours'`)
	storetest.Grant(t, open(t, url), configured(1))
}

// Work that reads nothing is committed once, although another server has taken over.
func TestFailoverCommitsOnce(t *testing.T) {
	url := server(t).Database(t)
	t.Parallel()
	s := open(t, url)
	exec(t, url, `create table pollard.saved (data bytea);
		create function pollard.keep() returns trigger language plpgsql as $$begin insert into pollard.saved values (new.data); return null; end$$;
		create trigger keep after insert or update on pollard.counters for each row execute function pollard.keep()`)
	setServer(t, url, `name = 'another'`)
	must(t, s.SaveCounters(t.Context(), "one", []byte("1")))
	var n int
	if err := connect(t, url).QueryRow(t.Context(), `select count(*) from pollard.saved`).Scan(&n); err != nil || n != 1 {
		t.Errorf("saved %d times, %v", n, err)
	}
}
