// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/feedpollard/pollard/bench/internal/rig"
)

// measurePolls starts the node with prefetching, and measures what polls cost after the
// first ten seconds.
func (n *node) measurePolls() {
	n.start("prefetch")
	defer n.stop()
	due := "all due at once"
	if n.rate > 0 {
		due = fmt.Sprintf("%d come due in a second", n.rate)
	}
	fmt.Printf("\n%d feeds, %s\n\n| s | overdue | polls/s | new/s | CPU ms per poll | of the database | KB written per poll | RSS MB (anonymous) |\n| --- | --- | --- | --- | --- | --- | --- | --- |\n", n.feeds, due)
	const step = 10 * time.Second
	before := n.sample()
	for passed := step; passed < n.polls+step; passed += step {
		time.Sleep(step)
		after := n.sample()
		polls, took := float64(max(1, after.polls-before.polls)), after.at.Sub(before.at).Seconds()
		fmt.Printf("| %.0f | %d | %.0f | %.0f | %.2f | %.2f | %.1f | %.0f (%.0f) |\n", passed.Seconds(), after.overdue,
			polls/took, float64(after.fresh-before.fresh)/took,
			float64((after.cpu-before.cpu).Microseconds())/1e3/polls, float64((after.database-before.database).Microseconds())/1e3/polls,
			float64(after.written-before.written)/1e3/polls,
			float64(after.rss)/mb, float64(after.anonymous)/mb)
		before = after
	}
}

// sample is what is counted at a moment.
type sample struct {
	at             time.Time
	polls, fresh   int64
	cpu, database  time.Duration
	written        int64
	rss, anonymous int64
	overdue        int64
}

func (n *node) sample() sample {
	s := sample{at: time.Now(), polls: n.origin.requests.Load(), fresh: n.origin.fresh.Load(), cpu: n.process.CPU(), written: n.process.Written()}
	s.rss, s.anonymous = n.process.Memory()
	if n.postgres != "" {
		s.database = rig.CPUOf("postgres")
	}
	resp := rig.Must(http.Get("http://" + n.admin + "/pollard/stats"))
	defer resp.Body.Close()
	var stats struct{ Overdue int64 }
	rig.Check(json.NewDecoder(resp.Body).Decode(&stats))
	s.overdue = stats.Overdue
	return s
}
