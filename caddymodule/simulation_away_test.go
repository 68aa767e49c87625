// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package caddymodule_test

import (
	"slices"
	"testing"
	"time"
)

// A gateway without a network is no reason to give up feeds: they are polled as soon
// as there is one again, one after the other of each host.
func TestNetworkAway(t *testing.T) {
	resources := slices.Concat(soundFeeds(), neighbours())
	for _, r := range resources {
		r.spell, r.slow = nil, nil
	}
	simulate(t, *firstSeed, resources, func(sim *simulation) {
		sim.live(4, 6*time.Hour) // from the start
		if n := len(sim.web.visits); n > 0 {
			t.Fatalf("the simulation is wrong: %d requests while nobody can be reached", n)
		}
		sim.comeBack("at the start")
		sim.live(len(rude), 10*time.Hour)
		asked := make(map[string]int)
		for _, s := range sim.subjects {
			asked[s.url] = s.asked
		}
		sim.net.away.Store(true)
		sim.live(len(rude), 30*time.Hour)
		for _, s := range sim.subjects {
			if s.asked > asked[s.url]+1 { // one may have been under way
				t.Fatal("the simulation is wrong")
			}
		}
		sim.comeBack("after a day")
		sim.settle()
	}, func(sim *simulation) {
		sim.always = true
		sim.net.away.Store(true)
	})
}

// comeBack ends an outage of the network, after which all feeds must be polled soon.
func (sim *simulation) comeBack(when string) {
	back := time.Now()
	sim.net.away.Store(false)
	time.Sleep(5 * time.Minute)
	sim.web.mu.Lock()
	defer sim.web.mu.Unlock()
	polled := make(map[string]bool)
	for _, v := range sim.web.visits {
		if !v.at.Before(back) {
			polled[v.url] = true
		}
	}
	for _, s := range sim.subjects {
		if !polled[s.url] {
			sim.violation("%s: %s was not polled within five minutes of the network's return", when, s.url)
		}
	}
}
