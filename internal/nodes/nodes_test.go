// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

// Package nodes_test runs several Pollard processes on one PostgreSQL database and lets
// them die, stop, reload and lose their database, while rude readers ask all of them; in
// the end a standby that lags behind takes the database's place.
package nodes_test

import (
	"flag"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/feedpollard/pollard/cache/store/postgres/postgrestest"
)

var (
	length    = flag.Duration("nodes.for", 12*time.Second, "how long things go wrong")
	feedCount = flag.Int("nodes.feeds", 300, "number of feeds")
	rudeCount = flag.Int("nodes.readers", 20, "number of readers")
	recover   = flag.Bool("nodes.recover", false, "wait until all feeds are polled again after a standby was promoted")
)

const (
	perHost  = 15              // feeds of a host, fewer than its spacing lets through
	crowded  = 40              // feeds of one host, more than that
	fast     = 4               // feeds by which delays between nodes are measured
	patience = 5 * time.Minute // nothing is asserted about it
)

// stage is three nodes, their origins and their readers.
type stage struct {
	*testing.T
	cluster *postgrestest.Cluster
	web     *web
	crowd   *host
	feeds   []*feed // that readers ask for
	fast    []*feed
	nodes   []*node
	readers *readers
	began   time.Time
}

func newStage(t *testing.T) *stage {
	s := &stage{T: t, cluster: postgrestest.Start(t), web: &web{paths: make(map[string]*feed)}}
	w := s.web
	for len(s.feeds) < *feedCount {
		h := w.addHost(t)
		for range perHost {
			s.feeds = append(s.feeds, w.addFeed(h, 3, floor))
		}
	}
	h := w.addHost(t)
	for range fast {
		s.fast = append(s.fast, w.addFeed(h, 1, fastFloor))
	}
	s.crowd = w.addHost(t)
	for range crowded {
		w.addFeed(s.crowd, 3, floor)
	}
	t.Setenv("POLLARD_TEST_PASSWORD", "secret%2Fwith%3Asigns")
	database, err := url.Parse(s.cluster.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	binary := build(t)
	for _, name := range []string{"A", "B", "C"} {
		p := postgrestest.StartProxy(t, database.Host)
		through := *database
		through.Host = p.Address()
		s.nodes = append(s.nodes, newNode(t, name, binary, through.String(), p, w))
	}
	for _, n := range s.nodes {
		n.start(t)
	}
	s.readers, s.began = newReaders(w, s.nodes), time.Now()
	return s
}

// await waits until a condition holds.
func (s *stage) await(what string, holds func() bool) {
	s.Helper()
	for deadline := time.Now().Add(patience); !holds(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			s.Errorf("%s: not within %v", what, patience)
			return
		}
	}
}

// warm asks all nodes for all feeds until they are answered.
func (s *stage) warm() {
	began := time.Now()
	s.everywhere("a first version", func(n *node, f *feed) bool { _, err := s.readers.get(n, f); return err == nil })
	s.Logf("%d feeds of %d hosts answered by %d nodes after %v", len(s.feeds), len(s.web.hosts), len(s.nodes), time.Since(began).Round(time.Millisecond))
}

// everywhere waits until a condition holds of each feed at each node. It returns the longest
// that one of them took.
func (s *stage) everywhere(what string, holds func(n *node, f *feed) bool) (longest time.Duration) {
	const atOnce = 16
	var (
		mu  sync.Mutex // guards longest
		all sync.WaitGroup
	)
	for _, n := range s.nodes {
		for i := range atOnce {
			all.Go(func() {
				for f := i; f < len(s.feeds) && !s.Failed(); f += atOnce {
					began := time.Now()
					s.await(what+" of "+s.feeds[f].path+" at node "+n.name, func() bool { return holds(n, s.feeds[f]) })
					mu.Lock()
					longest = max(longest, time.Since(began))
					mu.Unlock()
				}
			})
		}
	}
	all.Wait()
	return longest
}

func TestNodesOfOneDatabase(t *testing.T) {
	if testing.Short() {
		t.Skip("runs three processes and a database for half a minute")
	}
	s := newStage(t)
	s.warm()
	s.limit()
	s.propagation()

	stop := make(chan struct{})
	all := s.readers.run(*rudeCount, s.feeds, stop)
	s.trouble()
	s.healed()
	s.databaseAway()
	s.standbyPromoted()
	close(stop)
	all.Wait()

	r := s.readers
	problems := slices.Concat(s.web.early, r.lost, r.unanswered, s.web.crowds(len(s.nodes)))
	for _, problem := range problems[:min(len(problems), 20)] {
		t.Error(problem)
	}
	t.Logf("%v after the start: %d polls, %d too early; %d answers to readers, %d of them by the second node asked, the slowest after %v; %d unanswered, %d versions lost",
		time.Since(s.began).Round(time.Second), s.web.polled(), len(s.web.early), r.answers, r.elsewhere, r.slowest.Round(time.Millisecond), len(r.unanswered), len(r.lost))
	if s.web.polled() < 2*len(s.feeds) || r.answers < 1000 {
		t.Error("too little happened: this shows nothing")
	}
	if t.Failed() {
		for _, n := range s.nodes {
			t.Logf("node %s:\n%s", n.name, tail(n.said()))
		}
	}
}

// limit has a tenth of the feeds answer the next poll with a 429: all nodes wait as long
// as it says.
func (s *stage) limit() {
	s.web.mu.Lock()
	defer s.web.mu.Unlock()
	for i := 0; i < len(s.feeds); i += 10 {
		s.feeds[i].limit = true
	}
}

// propagation measures how much later than the first node the others give a version.
func (s *stage) propagation() {
	const enough = 8 * time.Second
	type sight struct {
		feed    *feed
		version int
		node    *node
	}
	var (
		mu    sync.Mutex // guards first
		first = make(map[sight]time.Time)
		all   sync.WaitGroup
	)
	until := time.Now().Add(enough)
	for _, f := range s.fast {
		for _, n := range s.nodes {
			all.Go(func() {
				last := 0
				for time.Now().Before(until) {
					if version, err := s.readers.get(n, f); err == nil && version > last {
						mu.Lock()
						first[sight{f, version, n}] = time.Now()
						mu.Unlock()
						last = version
					}
					time.Sleep(10 * time.Millisecond)
				}
			})
		}
	}
	all.Wait()
	var delays []time.Duration
	for _, f := range s.fast {
		for version := 2; version < s.readers.newest(f); version++ {
			var times []time.Time
			for _, n := range s.nodes {
				if at, ok := first[sight{f, version, n}]; ok {
					times = append(times, at)
				}
			}
			slices.SortFunc(times, time.Time.Compare)
			for i := 1; i < len(times); i++ {
				delays = append(delays, times[i].Sub(times[0]))
			}
		}
	}
	if len(delays) == 0 {
		s.Error("no version was seen at two nodes")
		return
	}
	slices.Sort(delays)
	at := func(share float64) time.Duration {
		return delays[int(share*float64(len(delays)-1))].Round(time.Millisecond)
	}
	s.Logf("a version reaches other nodes after %v (p50), %v (p99), %v (the longest), of %d", at(.5), at(.99), at(1), len(delays))
	if at(.5) > 5*time.Second { // far less, where the machine has nothing else to do
		s.Errorf("half of the versions take longer than five seconds")
	}
}

// trouble lets nodes die, stop, reload, and lose sight of the database, one after the
// other, by chance.
func (s *stage) trouble() {
	kinds := map[string]func(n *node){
		"killed":  func(n *node) { n.kill(); n.start(s.T) },
		"stopped": func(n *node) { n.signal(syscall.SIGSTOP); time.Sleep(between(1, 4)); n.signal(syscall.SIGCONT) },
		"reloaded": func(n *node) {
			if err := n.reload(); err != nil {
				s.Errorf("reloading node %s: %v", n.name, err)
			}
		},
		"delayed": func(n *node) {
			n.proxy.Set(postgrestest.Fault{Delay: 100 * time.Millisecond})
			time.Sleep(between(1, 3))
			n.proxy.Set(postgrestest.Fault{})
		},
		"cut off": func(n *node) {
			n.proxy.Set(postgrestest.Fault{Cut: true})
			time.Sleep(between(1, 3))
			n.proxy.Set(postgrestest.Fault{})
		},
		"unheard": func(n *node) {
			n.proxy.Set(postgrestest.Fault{Hang: true})
			time.Sleep(between(2, 7))
			n.proxy.Set(postgrestest.Fault{})
		},
	}
	names := []string{"killed", "stopped", "reloaded", "delayed", "cut off", "unheard"}
	counts := make(map[string]int)
	away := time.Now()
	for until := time.Now().Add(*length); time.Now().Before(until); time.Sleep(between(0, 1)) {
		// Each kind comes before any comes again; a run that is long loses the database as well.
		if len(names) == 0 {
			names = slices.Collect(func(yield func(string) bool) {
				for name := range kinds {
					if !yield(name) {
						return
					}
				}
			})
			if time.Since(away) > 30*time.Second {
				s.databaseAway()
				away = time.Now()
			}
		}
		i := rand.IntN(len(names))
		name := names[i]
		names = slices.Delete(names, i, i+1)
		n := s.nodes[rand.IntN(len(s.nodes))]
		s.Logf("%s: node %s is %s", time.Now().Format(time.TimeOnly), n.name, name)
		kinds[name](n)
		counts[name]++
	}
	s.Logf("%v after the start, nodes were %v", time.Since(s.began).Round(time.Second), counts)
}

func between(from, to int) time.Duration {
	return time.Duration(from)*time.Second + rand.N(time.Duration(to-from)*time.Second)
}

// databaseAway stops the database for some seconds: nobody polls, and all are answered.
func (s *stage) databaseAway() {
	stop, how := s.cluster.Stop, "stopped"
	if rand.IntN(2) == 0 {
		stop, how = s.cluster.Crash, "crashed"
	}
	began := time.Now()
	stop()
	s.silence(between(2, 4))
	if err := s.cluster.Start(); err != nil {
		s.Fatal(err)
	}
	back := time.Now()
	before := s.web.polled()
	s.await("the first poll after the database was back", func() bool { return s.web.polled() > before })
	s.Logf("the database %s at %s, and back after %v; the first poll %v later", how,
		began.Format(time.TimeOnly), back.Sub(began).Round(time.Millisecond), time.Since(back).Round(time.Millisecond))
}

// silence expects no poll while there is no database.
func (s *stage) silence(length time.Duration) {
	s.Helper()
	var before int
	// What was granted before is under way.
	s.await("the end of polls without a database", func() bool {
		before = s.web.polled()
		time.Sleep(time.Second)
		return s.web.polled() == before
	})
	time.Sleep(length)
	if n := s.web.polled() - before; n > 0 {
		s.Errorf("%d polls while the database was away", n)
	}
}

// standbyPromoted replaces the database by a standby that has not heard of its last
// seconds. What it was not told is presumed polled: no feed is polled too early. Versions
// that it was not told are lost with the other server, and come back with the next poll.
func (s *stage) standbyPromoted() {
	standby, err := s.cluster.Standby()
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(standby.Remove)
	known := s.readers.versions()
	if err := s.cluster.CatchUp(standby); err != nil {
		s.Fatal(err)
	}
	standby.Stop()
	cutOff := s.web.polled()
	time.Sleep(between(4, 6)) // polls that it never hears of
	missed := s.web.polled() - cutOff
	s.readers.lossy(known)
	s.cluster.Crash()
	for _, n := range s.nodes {
		address, err := url.Parse(standby.URL("feeds1"))
		if err != nil {
			s.Fatal(err)
		}
		n.proxy.Redirect(address.Host)
	}
	if err := standby.Start(); err != nil {
		s.Fatal(err)
	}
	s.silence(2 * time.Second) // it grants nothing before it is promoted
	if err := standby.Promote(); err != nil {
		s.Fatal(err)
	}
	s.cluster = standby
	promoted, before := time.Now(), s.web.polled()
	time.Sleep(8 * time.Second)
	if missed == 0 {
		s.Error("the standby has missed nothing: this shows nothing")
	}
	if *recover {
		s.healed()
	}
	s.readers.mu.Lock()
	defer s.readers.mu.Unlock()
	s.Logf("a standby promoted that had missed %d polls; %d polls in the %v after that, %d answers with a version before the last",
		missed, s.web.polled()-before, time.Since(promoted).Round(time.Second), s.readers.wentBack)
}

// healed waits until all nodes give the newest version of each feed that any has given.
func (s *stage) healed() {
	longest := s.everywhere("the newest version", func(n *node, f *feed) bool {
		want := s.readers.newest(f)
		version, err := s.readers.get(n, f)
		return err == nil && version >= want
	})
	s.Logf("the newest version of a feed was had from each node within %v; a reader of a feed that is due waits for up to 3 s", longest.Round(time.Millisecond))
	for _, n := range s.nodes {
		if strings.Contains(n.said(), "secret") {
			s.Errorf("node %s has told the password", n.name)
		}
	}
}
