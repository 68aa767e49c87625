// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/feedpollard/pollard/cache/store"
)

// TestRace lets two nodes do everything at the same time. No statement may fail, neither
// for a deadlock, and no feed and no host may be granted twice.
func TestRace(t *testing.T) {
	const (
		feeds = 60 // the last third of them is forgotten now and then
		hosts = 7
		hold  = 300 * time.Millisecond
		pace  = 50 * time.Millisecond
	)
	url := server(t).Database(t)
	nodes := []store.Store{open(t, url), open(t, url)}
	var all ledger
	index := map[store.ID]int{}
	for n := range feeds {
		id, _ := feed(n)
		index[id] = n
	}
	forgotten := func(id store.ID) bool { return index[id] >= feeds*2/3 }
	named := func(r *rand.Rand) store.Claim {
		c := configured(r.IntN(feeds))
		c.Hold = hold
		c.Host = store.Host{Name: fmt.Sprint("host", r.IntN(hosts)), Domain: "domain", Spacing: pace}
		return c
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	var wg sync.WaitGroup
	for n := range 12 {
		s := nodes[n%2]
		r := rand.New(rand.NewPCG(1, uint64(n)))
		act := func() error {
			sent := time.Now()
			switch r.IntN(14) {
			default:
				claims := make([]store.Claim, 1+r.IntN(20))
				for i := range claims {
					claims[i] = named(r)
				}
				leases, err := s.Claim(context.Background(), claims)
				all.note(leases, sent)
				for _, l := range leases {
					if l.Denied == "" {
						o := outcome(l, uint64(r.IntN(2))*uint64(l.Token))
						o.In = hold
						if r.IntN(5) == 0 {
							o.Pauses = []store.Pause{{Scope: "host " + l.Host.Name, For: pace}, {Scope: "domain domain", For: time.Millisecond}}
						}
						if err := s.Commit(context.Background(), o); err != nil && !errors.Is(err, store.ErrFenced) {
							return err
						}
					}
				}
				return err
			case 0, 1, 2, 3:
				leases, _, err := s.ClaimDue(context.Background(), store.DueQuery{Limit: 10})
				all.note(leases, sent)
				return err
			case 4:
				c := named(r)
				_, err := s.Hop(context.Background(), store.Hop{ID: c.ID, Floor: hold, Host: c.Host})
				return err
			case 5:
				asked := map[store.ID]store.Asked{}
				for range 20 {
					id, _ := feed(r.IntN(feeds))
					asked[id] = store.Asked{Ago: time.Duration(r.IntN(1000)) * time.Millisecond}
				}
				return s.Touch(context.Background(), asked)
			case 6:
				_, err := s.Sweep(context.Background(), store.SweepQuery{Idle: time.Hour, MaxUnread: feeds})
				return err
			case 7:
				_, err := s.Trim(context.Background(), 100)
				return err
			case 8:
				id, _ := feed(feeds*2/3 + r.IntN(feeds/3))
				if err := s.Forget(context.Background(), id); err != nil && !errors.Is(err, store.ErrNoRecord) {
					return err
				}
				_, err := s.Lookup(context.Background(), []store.ID{id})
				return err
			case 9:
				var saved []store.Saved
				for range 5 {
					id, url := feed(feeds*2/3 + r.IntN(feeds/3))
					saved = append(saved, store.Saved{Record: store.Record{ID: id, URL: url, State: store.StateFresh}})
				}
				return s.Restore(context.Background(), saved)
			}
		}
		wg.Go(func() {
			for ctx.Err() == nil {
				if err := act(); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	all.check(t, hold, pace, forgotten)
	if n := len(all.grants); n < feeds {
		t.Errorf("%d grants: nothing was tested", n)
	}
	sameTotals(t, url, nodes[0])
	// The store tries again after a deadlock, but there should be none.
	noDeadlocks(t)
}

func noDeadlocks(t *testing.T) {
	t.Helper()
	if log := server(t).Log(); strings.Contains(log, "deadlock detected") {
		t.Errorf("there were deadlocks:\n%s", log)
	}
}

// A feed may be made, and claimed, while a redirect to its URL waits for the host. The
// redirect does not come into the way of the claim, and is not followed at the time of
// the poll.
func TestHopToAFeedThatIsJustMade(t *testing.T) {
	url := server(t).Database(t)
	s, watch := open(t, url), connect(t, url)
	host := store.Host{Name: "host"}
	other := claim(1)
	other.Host = host
	grant(t, s, other) // the host has a row
	tx := holdHost(t, url)
	id, feedURL := feed(0)
	var both sync.WaitGroup
	both.Go(func() {
		passage, err := s.Hop(context.Background(), store.Hop{ID: id, Floor: time.Minute, Host: host})
		if err != nil || passage.Denied != store.DeniedNotDue {
			t.Errorf("Hop = %+v, %v, want %s", passage, err, store.DeniedNotDue)
		}
	})
	waiting(t, watch, "hop", 1)
	if err := s.Restore(t.Context(), []store.Saved{{Record: store.Record{ID: id, URL: feedURL, State: store.StateFresh}}}); err != nil {
		t.Fatal(err)
	}
	both.Go(func() {
		c := claim(0)
		c.Host = host
		leases, err := s.Claim(context.Background(), []store.Claim{c})
		if err != nil || leases[0].Denied != "" {
			t.Errorf("Claim = %+v, %v, want a grant", leases, err)
		}
	})
	waiting(t, watch, "claim", 1)
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	both.Wait()
	noDeadlocks(t)
}

// holdHost has all claims of the host "host" wait for the end of a transaction.
func holdHost(t *testing.T, url string) pgx.Tx {
	t.Helper()
	tx, err := connect(t, url).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `select from pollard.hosts where name = 'host' for update`); err != nil {
		t.Fatal(err)
	}
	return tx
}

// waiting waits until at least n calls of a function wait for what another transaction holds.
func waiting(t *testing.T, watch *pgx.Conn, function string, n int) {
	t.Helper()
	eventually(t, fmt.Sprintf("%d calls of %s wait", n, function), func() bool {
		var waiting int
		err := watch.QueryRow(t.Context(), `select count(*) from pg_stat_activity
			where datname = current_database() and wait_event_type = 'Lock' and query like '%pollard.' || $1 || '(%'`, function).Scan(&waiting)
		if err != nil {
			t.Fatal(err)
		}
		return waiting >= n
	})
}

// However many polls wait for the database, what readers wait for is read.
func TestReadersDoNotWaitForPolls(t *testing.T) {
	url := server(t).Database(t)
	s, watch := open(t, url+"&pool_max_conns=3"), connect(t, url)
	commit(t, s, outcome(grant(t, s, claim(0)), 1))
	other := claim(1)
	other.Host = store.Host{Name: "host"}
	grant(t, s, other) // the host has a row
	tx := holdHost(t, url)
	ctx, cancel := context.WithCancel(t.Context())
	var polls sync.WaitGroup
	for range 50 {
		polls.Go(func() { _, _ = s.Claim(ctx, []store.Claim{other}) })
	}
	waiting(t, watch, "claim", 2)
	id, _ := feed(0)
	if records, err := s.Lookup(t.Context(), []store.ID{id}); err != nil || len(records) != 1 {
		t.Errorf("Lookup = %v, %v", records, err)
	}
	if _, err := store.ReadBody(t.Context(), s, id, 1); err != nil {
		t.Errorf("Body: %v", err)
	}
	cancel()
	polls.Wait()
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// sameTotals compares the totals that are kept with what is there.
func sameTotals(t *testing.T, url string, s store.Store) {
	t.Helper()
	got, err := s.Totals(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var feeds, unread, bytes int64
	err = connect(t, url).QueryRow(t.Context(), `select count(*), count(*) filter (where version = 0 and not configured),
		(select coalesce(sum(length(data)), 0) from pollard.bodies) from pollard.feeds`).Scan(&feeds, &unread, &bytes)
	if err != nil {
		t.Fatal(err)
	}
	var all int64
	for _, n := range got.Feeds {
		all += n
	}
	if all != feeds || got.Unread != unread || got.Bytes != bytes {
		t.Errorf("Totals = %+v, but there are %d feeds, %d unread, %d bytes", got, feeds, unread, bytes)
	}
}

// TestWatchConcurrentCommits has many transactions end in another order than
// they began, which is that of their numbers. No change may be missed.
func TestWatchConcurrentCommits(t *testing.T) {
	const feeds, rounds = 16, 30
	url := server(t).Database(t)
	writer, reader := open(t, url), open(t, url)

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	changes := make(chan store.Change, 10_000)
	done := make(chan error, 1)
	go func() {
		done <- reader.Watch(ctx, cursor(t, reader), func(c store.Change) error {
			changes <- c
			return nil
		})
	}()

	// A transaction that is the first to take its number and the last to end.
	long := connect(t, url)
	tx, err := long.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	slow, _ := feed(1000)
	if _, err := tx.Exec(t.Context(), `insert into pollard.changes (id, version) values ($1, 7)`, slow[:]); err != nil {
		t.Fatal(err)
	}

	var wg sync.WaitGroup
	for n := range feeds {
		wg.Go(func() {
			for v := range uint64(rounds) {
				l := ask(t, writer, claim(n))
				if l.Denied != "" {
					t.Errorf("feed %d: %+v", n, l)
					return
				}
				o := outcome(l, v+1)
				o.In = 0
				if err := writer.Commit(t.Context(), o); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	last := map[store.ID]uint64{}
	missing := feeds * rounds
	see := func() store.Change {
		select {
		case c := <-changes:
			if c.Lost {
				t.Fatal("changes were lost")
			}
			return c
		case <-time.After(patience):
			t.Fatalf("%d changes are missing", missing)
		}
		panic("not reached")
	}
	for ; missing > 0; missing-- {
		c := see()
		if c.Version != last[c.ID]+1 {
			t.Fatalf("version %d of a feed came after %d", c.Version, last[c.ID])
		}
		last[c.ID] = c.Version
	}
	wg.Wait()
	// All that began after it have been seen by now.
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	missing = 1
	if c := see(); c.ID != slow || c.Version != 7 {
		t.Errorf("saw %+v, want the change that was committed last", c)
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("Watch: %v", err)
	}
}

// TestForeignCursors has cursors that the database has not made. Whoever has one is told
// that changes are lost, and goes on.
func TestForeignCursors(t *testing.T) {
	url := server(t).Database(t)
	s := open(t, url)
	own := string(cursor(t, s))
	name, _, _ := strings.Cut(own, " ")
	for _, from := range []string{"x", "a b c d", name + " 9:1: 9:1: 0", name + " x y 0", "other" + own} {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		seen := 0
		err := s.Watch(ctx, store.Cursor(from), func(c store.Change) error {
			if seen++; seen == 1 {
				if !c.Lost {
					t.Errorf("%q: saw %+v, want a loss", from, c)
				}
				commit(t, s, outcome(grant(t, s, configured(len(from))), 1))
				return nil
			}
			if c.Lost || c.Version != 1 {
				t.Errorf("%q: saw %+v", from, c)
			}
			cancel()
			return nil
		})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%q: %v", from, err)
		}
	}
}

// TestPruned prunes the log behind a cursor.
func TestPruned(t *testing.T) {
	url := server(t).Database(t)
	s := open(t, url)
	old := cursor(t, s)
	commit(t, s, outcome(grant(t, s, claim(1)), 1))
	recent := cursor(t, s)
	sleep(t, url, time.Hour)
	if _, err := s.Sweep(t.Context(), store.SweepQuery{}); err != nil {
		t.Fatal(err)
	}
	commit(t, s, outcome(grant(t, s, claim(2)), 2))
	for from, lost := range map[store.Cursor]bool{old: true, recent: false} {
		stop := errors.New("stop")
		err := s.Watch(t.Context(), from, func(c store.Change) error {
			if c.Lost != lost || !lost && c.Version != 2 {
				t.Errorf("from a cursor that is old (%v): saw %+v", lost, c)
			}
			return stop
		})
		if !errors.Is(err, stop) {
			t.Error(err)
		}
	}
}

// cursor returns the present end of a store's log.
func cursor(t testing.TB, s store.Store) store.Cursor {
	t.Helper()
	ended := errors.New("seen")
	var at store.Cursor
	// A cursor that is not one is followed by the end.
	err := s.Watch(t.Context(), "no cursor", func(c store.Change) error {
		at = c.At
		return ended
	})
	if !errors.Is(err, ended) || at == "" {
		t.Fatalf("Watch: %v", err)
	}
	return at
}
