// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"flag"
	"fmt"
	"slices"
	"testing"
	"time"
)

var seeds = flag.Int("simulations", 1, "how many simulations to run, each of another seed")
var firstSeed = flag.Uint64("seed", 1, "of the first simulation")

// simulated is how long most feeds are simulated.
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
			simulate(t, seed, resources, func(sim *simulation) {
				sim.live(len(habits), simulated)
				sim.settle()
				sim.checkFrequency()
				sim.checkMoves()
			})
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

// checkFrequency checks that feeds whose origins always answer were polled at least a third as often as they
// may be. Each poll was checked when it arrived.
func (sim *simulation) checkFrequency() {
	for _, s := range sim.feeds {
		if s.instead != nil || s.moves || s.slow != nil || s.never304 || s.ignoresETag || s.days != nil || s.hours != nil {
			continue
		}
		interval := max(floor, s.wait, s.wait304, s.retryAfter) + time.Hour
		if least := int(simulated / interval / 3); s.asked < least {
			sim.violation("%s was polled %d times, less than %d", s.url, s.asked, least)
		}
	}
}

// checkMoves checks that URLs that redirect for good are looked at once a day, and others more often.
func (sim *simulation) checkMoves() {
	times := make(map[string]int)
	for _, p := range sim.origins.polls {
		times[p.url]++
	}
	for url, moved := range map[string]bool{
		"http://moved.test/feed": true, "http://permanent.test/feed": true, "http://www.one.test/feed": true, "http://found.test/feed": false,
	} {
		if n, most := times[url], int(sim.clock.truth().Sub(sim.epoch)/day)+2; (n <= most) != moved {
			sim.violation("%s was asked %d times", url, n)
		}
	}
}
