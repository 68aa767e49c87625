// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
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
	nodesFeeds = 60
	lasting    = nodesFeeds * 2 / 3 // of these; the others are forgotten now and then
	nodesHosts = 7
	nodesHold  = 400 * time.Millisecond
	nodesPace  = 50 * time.Millisecond
)

// nodes are some of one database, and what was acknowledged to them.
type nodes struct {
	stores []*store.Database
	all    grants

	versions atomic.Uint64 // the last

	mu           sync.Mutex // guards what follows
	acknowledged map[store.ID]uint64
	failed       map[string][]error // calls, by name
	done         map[string]int
}

// startNodes opens a database by each of some URLs.
func startNodes(t *testing.T, urls ...string) *nodes {
	t.Helper()
	r := &nodes{acknowledged: map[store.ID]uint64{}, failed: map[string][]error{}, done: map[string]int{}}
	for _, u := range urls {
		r.stores = append(r.stores, open(t, u))
	}
	return r
}

// through returns a proxy in front of the server of a database, and the URL through it.
func through(t *testing.T, database string) (*postgrestest.Proxy, string) {
	t.Helper()
	host := serverOf(t, database)
	p := postgrestest.StartProxy(t, host)
	return p, strings.Replace(database, host, p.Address(), 1)
}

// serverOf returns the address of the server of a database.
func serverOf(t *testing.T, database string) string {
	u, err := url.Parse(database)
	must(t, err)
	return u.Host
}

// content is what the version of a feed says.
func content(id store.ID, version uint64) string {
	return strings.Repeat(fmt.Sprintf("%x/%d ", id, version), 200)
}

// wholeBody expects a whole version.
func wholeBody(t *testing.T, s store.Store, id store.ID) error {
	b, err := store.ReadBody(context.Background(), s, id)
	if err == nil && string(b.Data) != content(id, b.Version) {
		t.Errorf("version %d of %x has %d bytes that are not its own: %.60q", b.Version, id, len(b.Data), b.Data)
	}
	return err
}

func (r *nodes) count(name string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.failed[name] = append(r.failed[name], err)
	} else {
		r.done[name]++
	}
}

// troubled reports whether some of each of these calls were answered, and some failed.
func (r *nodes) troubled(calls ...string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !slices.ContainsFunc(calls, func(name string) bool { return r.done[name] == 0 || len(r.failed[name]) == 0 })
}

// poll commits a version for each grant.
func (r *nodes) poll(ctx context.Context, s store.Store, random *rand.Rand, asked time.Time, leases ...store.Lease) {
	r.all.add(leases, asked)
	for _, l := range leases {
		if l.Denied != "" {
			continue
		}
		version := r.versions.Add(1)
		o := outcome(l, version)
		o.In, o.Body.Data = nodesHold, []byte(content(l.ID, version))
		if random.IntN(5) == 0 {
			o.Pauses = []store.Pause{{Site: l.Site, For: nodesPace}}
		}
		err := s.Commit(ctx, o)
		if errors.Is(err, store.ErrFenced) {
			err = nil
		} else if err == nil {
			r.mu.Lock()
			r.acknowledged[l.ID] = max(r.acknowledged[l.ID], version)
			r.mu.Unlock()
		}
		r.count("commit", err)
	}
}

// act makes one call. If its caller gives up first, its outcome is not known.
func (r *nodes) act(t *testing.T, s store.Store, random *rand.Rand, patience time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	asked := time.Now()
	n, host := random.IntN(nodesFeeds), random.IntN(nodesHosts)
	c := configured(n)
	c.Hold, c.Host = nodesHold, store.Host{Site: fmt.Sprint("host", host), Spacing: nodesPace}
	id, key := storetest.Feed(lasting + random.IntN(nodesFeeds-lasting))
	switch random.IntN(16) {
	default:
		leases, err := s.Claim(ctx, []store.Claim{c})
		r.count("claim", err)
		r.poll(ctx, s, random, asked, leases...)
	case 0, 1, 2, 3:
		due, err := s.Due(ctx, store.DueQuery{Limit: 10})
		if r.count("due", err); err != nil || len(due.Feeds) == 0 {
			return
		}
		var claims []store.Claim
		for n := range nodesFeeds {
			id, url := storetest.Feed(n)
			if i := slices.IndexFunc(due.Feeds, func(f store.DueFeed) bool { return f.ID == id }); i >= 0 {
				claims = append(claims, store.Claim{ID: id, URL: url, Hold: nodesHold, Configured: true, Host: store.Host{Site: due.Feeds[i].Site, Spacing: nodesPace}})
			}
		}
		random.Shuffle(len(claims), func(i, j int) { claims[i], claims[j] = claims[j], claims[i] })
		leases, err := s.Claim(ctx, claims)
		r.count("claim due", err)
		r.poll(ctx, s, random, asked, leases...)
	case 5:
		touched := map[store.ID]store.Asked{}
		for range 20 {
			id, _ := storetest.Feed(random.IntN(nodesFeeds))
			touched[id] = store.Asked{Ago: time.Duration(random.IntN(1000)) * time.Millisecond}
			if random.IntN(4) == 0 {
				touched[id] = store.Asked{Ago: -1, Poke: &store.Poke{Floor: nodesHold}}
			}
		}
		r.count("touch", s.Touch(ctx, touched))
	case 6:
		_, err := s.Sweep(ctx, store.SweepQuery{Idle: time.Hour})
		r.count("sweep", err)
	case 7:
		_, err := s.Sweep(ctx, store.SweepQuery{Disk: 100})
		r.count("full sweep", err)
	case 8:
		err := s.Forget(ctx, id)
		if errors.Is(err, store.ErrNoRecord) {
			err = nil
		}
		r.count("forget", err)
	case 9:
		r.count("restore", s.Restore(ctx, []store.Saved{{Record: store.Record{ID: id, URL: key, State: store.StateFresh}}}))
	case 10, 11:
		records, err := s.Lookup(ctx, []store.ID{c.ID})
		if r.count("read", err); err == nil && len(records) > 0 && records[0].Version != 0 {
			if err = wholeBody(t, s, c.ID); errors.Is(err, store.ErrNoBody) && n < lasting {
				t.Errorf("a body is said to be lost: %v", err)
			}
		}
	}
}

// work lets all nodes work until ctx ends.
func (r *nodes) work(t *testing.T, ctx context.Context, patience func() time.Duration) *sync.WaitGroup {
	all := new(sync.WaitGroup)
	for n := range 9 {
		random := rand.New(rand.NewPCG(2, uint64(n)))
		all.Go(func() {
			for ctx.Err() == nil {
				r.act(t, r.stores[n%len(r.stores)], random, patience())
			}
		})
	}
	return all
}

// impatience is that of a caller in trouble.
func impatience() time.Duration { return 100*time.Millisecond + rand.N(900*time.Millisecond) }

// check expects that no feed and no site was granted too early, and that the versions that are there are whole. Unless acknowledged
// may be lost, none is older than what was acknowledged.
func (r *nodes) check(t *testing.T, s store.Store, lost bool) {
	t.Helper()
	lasts := map[store.ID]bool{}
	for n := range lasting {
		id, _ := storetest.Feed(n)
		lasts[id] = true
	}
	r.all.check(t, nodesHold, nodesPace, func(id store.ID) bool { return !lasts[id] })
	for n := range lasting {
		id, _ := storetest.Feed(n)
		records, err := s.Lookup(t.Context(), []store.ID{id})
		if err != nil {
			t.Fatalf("Lookup of feed %d: %v", n, err)
		}
		version := uint64(0) // of a feed that was never claimed
		if len(records) > 0 {
			version = records[0].Version
		}
		if version < r.acknowledged[id] && !lost {
			t.Errorf("feed %d has version %d; version %d was acknowledged", n, version, r.acknowledged[id])
		}
		if version != 0 {
			if err := wholeBody(t, s, id); err != nil {
				t.Errorf("feed %d: %v", n, err)
			}
		}
	}
}

// TestRace lets three nodes do everything at the same time. No call may fail, neither for a deadlock, and no feed and
// no site may be granted twice.
func TestRace(t *testing.T) {
	database := server(t).Database(t)
	r := startNodes(t, database, database, database)
	ctx, stop := context.WithCancel(t.Context())
	all := r.work(t, ctx, func() time.Duration { return patience })
	polls := 5 * nodesFeeds
	if testing.Short() {
		polls = nodesFeeds
	}
	eventually(t, "feeds are polled", func() bool { return r.all.count() >= polls })
	stop()
	all.Wait()
	r.check(t, r.stores[0], false)
	if len(r.failed) > 0 {
		t.Errorf("calls failed: %v", r.failed)
	}
	noDeadlocks(t) // the store tries again after one, but there should be none
}

// TestLies has a database that is slow, breaks off in the middle of a row, and does what
// it is asked without saying so. No feed is granted twice, no token comes again, and
// what was acknowledged is there, whole.
func TestLies(t *testing.T) {
	if testing.Short() {
		t.Skip("each fault takes a moment")
	}
	database := server(t).Database(t)
	one, urlOfOne := through(t, database)
	other, urlOfOther := through(t, database)
	proxies := []*postgrestest.Proxy{one, other}
	r := startNodes(t, urlOfOne, urlOfOther)
	ctx, stop := context.WithCancel(t.Context())
	all := r.work(t, ctx, impatience)
	faults := []postgrestest.Fault{
		{Mute: true}, {Break: 1}, {Break: 40}, {Break: 700}, {Break: 3000}, {Delay: 60 * time.Millisecond}, {Delay: 300 * time.Millisecond}, {Hang: true}, {Cut: true},
	}
	for rounds := 0; rounds < 2 || rounds < 20 && !r.troubled("claim", "read"); rounds++ {
		for _, i := range rand.Perm(len(faults)) {
			p := proxies[rand.IntN(2)]
			p.Set(faults[i])
			time.Sleep(150 * time.Millisecond)
			p.Set(postgrestest.Fault{})
			time.Sleep(100 * time.Millisecond)
		}
	}
	stop()
	all.Wait()
	if !r.troubled("claim", "read") {
		t.Errorf("%v were answered, and these were not, which shows nothing: %v", r.done, r.failed)
	}
	r.check(t, open(t, database), false)
}

// TestFailoverUnderWay promotes a standby in the middle of everything: the server dies
// with transactions under way, and the standby may not have heard of the last.
func TestFailoverUnderWay(t *testing.T) {
	t.Parallel()
	primary := postgrestest.Start(t)
	database := primary.Database(t)
	p, u := through(t, database)
	r := startNodes(t, u, u)
	standby := primary.Standby(t)
	ctx, stop := context.WithCancel(t.Context())
	all := r.work(t, ctx, impatience)
	eventually(t, "feeds are polled", func() bool { return r.all.count() >= nodesFeeds })
	primary.Crash()
	p.Redirect(serverOf(t, standby.URL("feeds1")))
	before := r.all.count()
	r.all.lost = time.Now() // calls of before have failed, or their answers were lost
	standby.Promote(t)
	eventually(t, "feeds are polled again", func() bool { return r.all.count() >= before+nodesFeeds })
	stop()
	all.Wait()
	r.check(t, open(t, standby.URL("feeds1")), true)
}
