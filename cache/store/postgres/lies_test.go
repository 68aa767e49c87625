// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/cache/store/postgres/postgrestest"
	"github.com/feedpollard/pollard/cache/store/storetest"
)

const (
	liesFeeds = 24
	liesHold  = 400 * time.Millisecond
)

// reached is a database as two nodes reach it, each by a proxy, and what was acknowledged.
type reached struct {
	nodes   []store.Store
	proxies []*postgrestest.Proxy
	all     grants

	versions atomic.Uint64 // the last

	mu           sync.Mutex // guards what follows
	acknowledged map[store.ID]uint64
	failed       map[string]int // calls, by name
	done         map[string]int
}

func reach(t *testing.T, database string) *reached {
	t.Helper()
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	r := &reached{acknowledged: map[store.ID]uint64{}, failed: map[string]int{}, done: map[string]int{}}
	for range 2 {
		p := postgrestest.StartProxy(t, u.Host)
		through := *u
		through.Host = p.Address()
		r.proxies = append(r.proxies, p)
		r.nodes = append(r.nodes, open(t, through.String()))
	}
	return r
}

// content is what the version of a feed says.
func content(id store.ID, version uint64) string {
	return strings.Repeat(fmt.Sprintf("%x/%d ", id, version), 200)
}

// check expects a whole version.
func (r *reached) check(t *testing.T, s store.Store, id store.ID, version uint64) error {
	b, err := store.ReadBody(context.Background(), s, id)
	if err == nil && string(b.Data) != content(id, b.Version) {
		t.Errorf("version %d of %x has %d bytes that are not its own: %.60q", b.Version, id, len(b.Data), b.Data)
	}
	return err
}

// act makes one call. None outlasts the patience of its caller, which then does not know
// what has become of it.
func (r *reached) act(t *testing.T, s store.Store, random *rand.Rand) {
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond+rand.N(900*time.Millisecond))
	defer cancel()
	count := func(name string, err error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		if err != nil {
			r.failed[name]++
		} else {
			r.done[name]++
		}
	}
	polled := func(leases []store.Lease, asked time.Time) {
		r.all.add(leases, asked)
		for _, l := range leases {
			if l.Denied != "" {
				continue
			}
			version := r.versions.Add(1)
			o := outcome(l, version)
			o.In, o.Hold, o.Body.Data = liesHold, liesHold, []byte(content(l.ID, version))
			err := s.Commit(ctx, o)
			if errors.Is(err, store.ErrFenced) {
				err = nil
			} else if err == nil {
				r.mu.Lock()
				r.acknowledged[l.ID] = max(r.acknowledged[l.ID], o.Body.Version)
				r.mu.Unlock()
			}
			count("commit", err)
		}
	}
	asked := time.Now()
	switch random.IntN(4) {
	case 0:
		leases, _, err := s.ClaimDue(ctx, store.DueQuery{Limit: 5})
		count("claim due", err)
		polled(leases, asked)
	case 1:
		id, _ := storetest.Feed(random.IntN(liesFeeds))
		records, err := s.Lookup(ctx, []store.ID{id})
		if err == nil && len(records) > 0 && records[0].Version != 0 {
			err = r.check(t, s, id, records[0].Version)
		}
		if errors.Is(err, store.ErrNoBody) {
			t.Errorf("a body is said to be lost: %v", err)
		}
		count("read", err)
	default:
		c := configured(random.IntN(liesFeeds))
		c.Hold = liesHold
		leases, err := s.Claim(ctx, []store.Claim{c})
		count("claim", err)
		polled(leases, asked)
	}
}

// work lets both nodes work until ctx ends.
func (r *reached) work(t *testing.T, ctx context.Context) *sync.WaitGroup {
	all := new(sync.WaitGroup)
	for n := range 8 {
		random := rand.New(rand.NewPCG(2, uint64(n)))
		all.Go(func() {
			for ctx.Err() == nil {
				r.act(t, r.nodes[n%2], random)
				time.Sleep(rand.N(20 * time.Millisecond))
			}
		})
	}
	return all
}

// TestLies has a database that is slow, breaks off in the middle of a row, and does what
// it is asked without saying so. No feed is granted twice, no token comes again, and
// what was acknowledged is there, whole.
func TestLies(t *testing.T) {
	if testing.Short() {
		t.Skip("each fault takes a moment")
	}
	database := server(t).Database(t)
	r := reach(t, database)
	ctx, stop := context.WithCancel(t.Context())
	all := r.work(t, ctx)
	faults := []postgrestest.Fault{
		{Mute: true}, {Break: 1}, {Break: 40}, {Break: 700}, {Break: 3000}, {Delay: 60 * time.Millisecond}, {Delay: 300 * time.Millisecond}, {Hang: true}, {Cut: true},
	}
	for range 2 {
		for _, i := range rand.Perm(len(faults)) {
			p := r.proxies[rand.IntN(2)]
			p.Set(faults[i])
			time.Sleep(150 * time.Millisecond)
			p.Set(postgrestest.Fault{})
			time.Sleep(100 * time.Millisecond)
		}
	}
	stop()
	all.Wait()
	t.Logf("calls that were answered: %v; that were not: %v", r.done, r.failed)
	for _, name := range []string{"claim", "read"} {
		if r.done[name] == 0 || r.failed[name] == 0 {
			t.Errorf("%s: %d were answered and %d were not, which shows nothing", name, r.done[name], r.failed[name])
		}
	}
	r.all.check(t, liesHold, 0, func(store.ID) bool { return false })

	s := open(t, database)
	for n := range liesFeeds {
		id, url := storetest.Feed(n)
		records, err := s.Lookup(t.Context(), []store.ID{id})
		if err != nil {
			t.Fatalf("Lookup of %s: %v", url, err)
		}
		var got store.Record // of a feed that was never claimed
		if len(records) > 0 {
			got = records[0]
		}
		if got.Version < r.acknowledged[id] {
			t.Errorf("%s has version %d; version %d was acknowledged", url, got.Version, r.acknowledged[id])
		}
		if got.Version == 0 {
			continue
		}
		if err := r.check(t, s, id, got.Version); err != nil {
			t.Errorf("%s: %v", url, err)
		}
	}
	sameTotals(t, database, s)
}

// TestFailoverUnderWay promotes a standby in the middle of everything: the server dies
// with transactions under way, and the standby may not have heard of the last.
func TestFailoverUnderWay(t *testing.T) {
	t.Parallel()
	primary := postgrestest.Start(t)
	r := reach(t, primary.Database(t))
	standby := primary.Standby(t)
	ctx, stop := context.WithCancel(t.Context())
	all := r.work(t, ctx)
	eventually(t, "feeds are polled", func() bool { return r.all.count() >= 2*liesFeeds })
	primary.Crash()
	u, err := url.Parse(standby.URL("feeds1"))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range r.proxies {
		p.Redirect(u.Host)
	}
	before := r.all.count()
	standby.Promote(t)
	eventually(t, "feeds are polled again", func() bool { return r.all.count() >= before+2*liesFeeds })
	stop()
	all.Wait()
	r.all.check(t, liesHold, 0, func(store.ID) bool { return false })
	s := open(t, standby.URL("feeds1"))
	for n := range liesFeeds {
		id, url := storetest.Feed(n)
		records, err := s.Lookup(t.Context(), []store.ID{id})
		if err != nil || len(records) == 0 || records[0].Version == 0 {
			continue // of which the standby has not heard
		}
		if err := r.check(t, s, id, records[0].Version); err != nil {
			t.Errorf("%s: %v", url, err)
		}
	}
}
