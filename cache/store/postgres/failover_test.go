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
// which knows nothing of the last polls. What it knows counts. A feed whose poll it does not know may be polled once more, and
// the outcome of the poll before cannot be committed.
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

	if l := storetest.Ask(t, two, configured(1)); l.Denied != store.DeniedNotDue || l.Wait < 50*time.Minute {
		t.Errorf("feed 1: %+v", l)
	}
	fenced := func() {
		t.Helper()
		for _, l := range []store.Lease{lost, fresh} {
			if err := two.Commit(t.Context(), outcome(l, 1)); !errors.Is(err, store.ErrFenced) {
				t.Errorf("Commit of a lost lease: %v", err)
			}
		}
	}
	fenced()
	for n := 2; n <= 4; n++ {
		if l := storetest.Grant(t, two, configured(n)); l.Token == lost.Token || l.Token == fresh.Token {
			t.Errorf("feed %d: token %d again", n, l.Token)
		}
	}
	fenced()
}

// configured asks for a poll of the nth feed, which the operator has written down.
func configured(n int) store.Claim {
	c := storetest.Claim(n)
	c.Configured = true
	return c
}

// TestDump goes on with a copy of a store. What it knows counts.
func TestDump(t *testing.T) {
	c := server(t)
	url := c.Database(t)
	s := open(t, url)
	storetest.Grant(t, s, configured(1))
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
				due, err := s.Due(t.Context(), store.DueQuery{Limit: 10})
				if err != nil || len(due.Feeds) > 0 {
					t.Errorf("node %d: Due = %+v, %v", n, due, err)
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
