// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"testing"
	"time"

	"github.com/feedpollard/pollard/cache/store"
)

// server is the clock of a server, and what the nodes have written.
type server struct {
	clock time.Time
	wall  time.Time
	scale store.Time
}

func (s *server) reading() reading { return reading{s.scale, s.wall, s.clock} }

// clockNode is a node with a clock of its own, which is not set.
type clockNode struct {
	databaseClock
	elapsed time.Duration
}

func newClockNode() *clockNode {
	n := new(clockNode)
	n.sinceBoot = func() time.Duration { return n.elapsed }
	return n
}

// TestClock has two nodes work while the server's clock is set and a node sleeps, and a
// third one start at the end. No time may be ahead of the true one by more than
// maxBehind, nor that of a node that was there before by anything.
func TestClock(t *testing.T) {
	type step struct {
		pass  time.Duration // that really passes
		set   time.Duration // the server's clock is set by
		sleep bool          // the second node does not notice that time passes
		write int           // the node that writes the time, from 1; 0: none
	}
	for name, test := range map[string]struct {
		steps []step
		lag   time.Duration // the time is late by as much at the end
	}{
		"nothing happens":              {steps: []step{{pass: 5 * time.Second}, {pass: 5 * time.Second, write: 1}, {pass: 3 * time.Second}}},
		"set forward":                  {steps: []step{{pass: 5 * time.Second, set: 3 * time.Hour}, {pass: 5 * time.Second, write: 2}, {pass: 9 * time.Second}}},
		"set forward, and not written": {steps: []step{{pass: 5 * time.Second, set: 3 * time.Hour}, {pass: time.Minute}}},
		"set back": {lag: 10 * time.Second,
			steps: []step{{pass: 10 * time.Second, set: -3 * time.Hour}, {write: 1}, {pass: 9 * time.Second}}},
		"set back by a moment": {lag: 50 * time.Millisecond,
			steps: []step{{pass: 10 * time.Second, set: -50 * time.Millisecond}, {pass: time.Second, write: 1}, {pass: 9 * time.Second}}},
		"set there and back": {lag: 5 * time.Second,
			steps: []step{{set: 24 * time.Hour}, {pass: time.Second, write: 1}, {pass: 5 * time.Second, set: -24 * time.Hour}, {write: 2}}},
		"a node sleeps": {lag: time.Second,
			steps: []step{{pass: time.Hour, sleep: true, write: 1}, {pass: time.Second, write: 2}, {pass: time.Second, write: 1}}},
	} {
		t.Run(name, func(t *testing.T) {
			begin := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
			s := &server{clock: begin, wall: begin, scale: store.Time(begin.UnixNano())}
			nodes := []*clockNode{newClockNode(), newClockNode()}
			truth := s.scale
			for _, n := range nodes {
				n.now(s.reading(), n.elapsed)
			}
			for i, step := range test.steps {
				truth = truth.Add(step.pass)
				s.clock = s.clock.Add(step.pass + step.set)
				nodes[0].elapsed += step.pass
				if !step.sleep {
					nodes[1].elapsed += step.pass
				}
				for range 3 { // as often as statements are run
					for k, n := range nodes {
						if now := n.now(s.reading(), n.elapsed); now > truth {
							t.Errorf("step %d: node %d is ahead by %v", i+1, k+1, now.Sub(truth))
						}
					}
				}
				if step.write > 0 {
					n := nodes[step.write-1]
					s.scale, s.wall = n.now(s.reading(), n.elapsed), s.clock
				}
			}
			for k, n := range nodes {
				if late := truth.Sub(n.now(s.reading(), n.elapsed)); late < 0 || late > test.lag {
					t.Errorf("node %d is late by %v, want %v at most", k+1, late, test.lag)
				}
			}
			if now := newClockNode().now(s.reading(), 0); now > truth.Add(maxBehind) {
				t.Errorf("a new node is ahead by %v", now.Sub(truth))
			}
		})
	}
}
