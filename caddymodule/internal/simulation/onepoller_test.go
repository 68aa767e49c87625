// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

var seeds = flag.Int("simulations", 1, "how many simulations to run, each of another seed")
var firstSeed = flag.Uint64("seed", 1, "of the first simulation")

// simulated is how long most feeds are simulated: permanent redirects are adopted within it.
const simulated = 11 * day

// In eleven days of bad readers and bad publishers each origin sees one polite poller, and
// readers get the last good version.
func TestOnePoller(t *testing.T) {
	if testing.Short() {
		t.Skip("eleven days, of which TestAdversary and TestLaptop have three and four")
	}
	for i := range *seeds {
		seed := *firstSeed + uint64(i)
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			resources := slices.Concat(soundFeeds(), hintedFeeds(), brokenFeeds(), neighbours(), movedFeeds())
			began := time.Now()
			simulate(t, seed, resources, func(sim *simulation) {
				sim.live(len(habits), simulated)
				sim.settle()
				sim.report()
			})
			t.Logf("seed %d took %v", seed, time.Since(began).Round(time.Millisecond))
		})
	}
}

// settle lets every feed be polled once more, without restarts, and checks what readers
// have then.
func (sim *simulation) settle() {
	r := newReader(sim, 0)
	defer r.client.CloseIdleConnections()
	// The answer of a slow origin comes after that to the reader who caused the poll, so all are asked once more.
	for _, pause := range append(slices.Repeat([]time.Duration{5 * time.Hour}, 6), time.Minute) {
		time.Sleep(pause)
		for _, s := range sim.feeds {
			r.send(sim.t.Context(), r.request("GET", s), s)
		}
	}
	sim.look()
	for _, s := range sim.feeds {
		sim.origins.mu.Lock()
		delivered, asked := s.delivered, s.asked
		sim.origins.mu.Unlock()
		if !s.served {
			sim.violation("%s was never served, after %d polls", s.url, asked)
		}
		if !s.moves && s.newest != delivered {
			sim.violation("%s: readers have version %d, the origin has given %d", s.url, s.newest, delivered)
		}
	}
}

// score is what an origin's log says about its poller.
type score struct {
	polls, unconditional, full int
	shortest                   time.Duration
}

// report checks the origins' logs: they should look like those of a good
// reader.
func (sim *simulation) report() {
	scores := make(map[string]*score)
	last := make(map[string]time.Time)
	for _, v := range sim.origins.polls {
		s := scores[v.url]
		if s == nil {
			s = &score{shortest: 1000 * day}
			scores[v.url] = s
		} else {
			s.shortest = min(s.shortest, v.at.Sub(last[v.url]))
		}
		last[v.url] = v.at
		s.polls++
		if v.header.Get("If-None-Match") == "" && v.header.Get("If-Modified-Since") == "" {
			s.unconditional++
		}
		if v.status == 200 {
			s.full++
		}
	}
	var table strings.Builder
	for _, s := range sim.feeds {
		got := scores[s.url]
		if got == nil {
			sim.violation("%s was never polled", s.url)
			continue
		}
		fmt.Fprintf(&table, "%-45s %4d polls, %3d full, %3d unconditional, shortest gap %v\n", s.url, got.polls, got.full, got.unconditional, got.shortest.Round(time.Second))
		sim.checkScore(s, got)
	}
	sim.t.Logf("what the origins saw:\n%s", table.String())
	sim.checkAdoption(last)
}

func (sim *simulation) checkScore(s *feed, got *score) {
	if got.shortest < floor && !s.early {
		sim.violation("%s was polled twice within %v", s.url, got.shortest)
	}
	first := 1
	if s.instead != nil || s.moves {
		return // answers before the first good one bring no validators
	}
	if s.resource.etag != nil && s.wait >= day {
		first = 1 + int((simulated+2*day)/s.wait) // its answers never have validators
	}
	if s.target {
		first++ // of a feed that redirects here
	}
	if s.doubted {
		first++
	}
	if got.unconditional > first && s.url != "http://fresh.test/feed" {
		sim.violation("%s was asked %d times without validators", s.url, got.unconditional)
	}
	// It is polled at least a third as often as it may be.
	interval := max(floor, s.wait, s.wait304, s.retryAfter) + time.Hour
	if least := int(simulated / interval / 3); got.polls < least && s.slow == nil && !s.never304 && s.days == nil && s.hours == nil {
		sim.violation("%s was polled %d times, less than %d", s.url, got.polls, least)
	}
}

// checkAdoption checks that permanent redirects are adopted, and no others. It takes seven
// days of evidence and the interval of a poll.
func (sim *simulation) checkAdoption(last map[string]time.Time) {
	latest, end := sim.epoch.Add(9*day), sim.clock.truth().Add(-day)
	for url, adopted := range map[string]bool{
		"http://moved.test/feed": true, "http://permanent.test/feed": true, "http://www.one.test/feed": true,
		"http://found.test/feed": false, "http://fiveday.test/feed": false, "http://portal.test/feed": false, "http://one.test/rss": false,
	} {
		if got := last[url].Before(end); got && !adopted || adopted && !last[url].Before(latest) {
			sim.violation("%s was asked last after %v: adopted %v, want %v", url, last[url].Sub(sim.epoch), got, adopted)
		}
	}
}
