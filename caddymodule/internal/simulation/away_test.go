// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"slices"
	"testing"
	"time"
)

// Without a network no feed is given up: all are polled soon after it is back, each
// host's one after the other.
func TestNetworkAway(t *testing.T) {
	resources := slices.Concat(soundFeeds(), neighbours())
	for _, r := range resources {
		r.instead, r.slow = nil, nil
	}
	simulate(t, *firstSeed, resources, func(sim *simulation) {
		sim.live(4, 6*time.Hour) // without a network from the start
		if n := len(sim.origins.polls); n > 0 {
			t.Fatalf("the simulation is wrong: %d requests without a network", n)
		}
		sim.comeBack("at the start")
		sim.live(len(habits), 6*time.Hour)
		asked := make(map[string]int)
		for _, s := range sim.feeds {
			asked[s.url] = s.asked
		}
		sim.net.Away.Store(true)
		sim.live(len(habits), 10*time.Hour)
		for _, s := range sim.feeds {
			if s.asked > asked[s.url]+1 { // one may have been under way
				t.Fatal("the simulation is wrong")
			}
		}
		sim.comeBack("after ten hours")
		sim.settle()
	}, func(sim *simulation) {
		sim.always = true
		sim.net.Away.Store(true)
	})
}

// comeBack ends an outage of the network, after which all feeds must be polled soon.
func (sim *simulation) comeBack(when string) {
	back := time.Now()
	sim.net.Away.Store(false)
	time.Sleep(5 * time.Minute)
	sim.origins.mu.Lock()
	defer sim.origins.mu.Unlock()
	polled := make(map[string]bool)
	for _, v := range sim.origins.polls {
		if !v.at.Before(back) {
			polled[v.url] = true
		}
	}
	for _, s := range sim.feeds {
		if !polled[s.url] {
			sim.violation("%s: %s was not polled within five minutes of the network's return", when, s.url)
		}
	}
}
