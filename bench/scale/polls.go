// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/feedpollard/pollard/bench/internal/rig"
)

// measurePolls starts the node with prefetching, and measures what polls cost after the
// first ten seconds.
func (n *node) measurePolls() error {
	if _, err := n.start(true); err != nil {
		return err
	}
	defer n.stop()
	fmt.Printf("\n%d feeds, %s\n\n| s | overdue | polls/s | new/s | CPU ms per poll | of the database | KB written per poll | RSS MB (anonymous) |\n| --- | --- | --- | --- | --- | --- | --- | --- |\n", n.feeds, due(n.rate))
	const step = 10 * time.Second
	before, err := n.sample()
	if err != nil {
		return err
	}
	for passed := time.Duration(0); passed < n.polls; passed += step {
		time.Sleep(step)
		after, err := n.sample()
		if err != nil {
			return err
		}
		polls := float64(max(1, after.polls-before.polls))
		fmt.Printf("| %.0f | %d | %.0f | %.0f | %.2f | %.2f | %.1f | %.0f (%.0f) |\n", (passed + step).Seconds(), after.overdue,
			polls/after.at.Sub(before.at).Seconds(), float64(after.fresh-before.fresh)/after.at.Sub(before.at).Seconds(),
			float64((after.cpu-before.cpu).Microseconds())/1e3/polls, float64((after.database-before.database).Microseconds())/1e3/polls,
			float64(after.written-before.written)/1e3/polls,
			float64(after.rss)/mb, float64(after.anonymous)/mb)
		before = after
	}
	return nil
}

func due(rate int) string {
	if rate == 0 {
		return "all due at once"
	}
	return fmt.Sprintf("%d come due in a second", rate)
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

func (n *node) sample() (s sample, err error) {
	s.at, s.polls, s.fresh = time.Now(), n.origin.requests.Load(), n.origin.fresh.Load()
	var errs [4]error
	s.cpu, errs[0] = n.process.CPU()
	s.written, errs[1] = n.process.Written()
	s.rss, s.anonymous, errs[2] = n.process.Memory()
	if n.postgres != "" {
		s.database, errs[3] = rig.CPUOf("postgres")
	}
	resp, err := http.Get("http://" + n.admin + "/pollard/stats")
	if err != nil {
		return s, err
	}
	defer resp.Body.Close()
	var stats struct{ Overdue int64 }
	err = json.NewDecoder(resp.Body).Decode(&stats)
	s.overdue = stats.Overdue
	return s, errors.Join(append(errs[:], err)...)
}
