// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/feedpollard/pollard/cache"
	"github.com/feedpollard/pollard/policy"
)

// A ping at one node shows the change to the readers of all, and pings at all nodes cause one poll per
// MinInterval.
func TestPingsAtSeveralNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(epoch))
		var polls, entries atomic.Int64
		entries.Store(1)
		origin := &script{answer: func(policy.Ask) policy.Answer {
			polls.Add(1)
			return ok(rss(int(entries.Load()), ""), "Cache-Control", "max-age=86400")
		}}
		db := sharedStore(t)
		one, two := node(t, db, origin, cache.Settings{}), node(t, db, origin, cache.Settings{})
		ping := func(nodes ...*gateway) {
			t.Helper()
			for _, n := range nodes {
				if err := n.Ping(t.Context(), feedURL); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(time.Second) // until the other node knows
		}
		expect := func(when, want string, most int64) {
			t.Helper()
			wantBody(t, one.get(feedURL), 200, want)
			wantBody(t, two.get(feedURL), 200, want)
			if n := polls.Load(); n != most {
				t.Errorf("%s: %d polls, want %d", when, n, most)
			}
		}
		two.get(feedURL)
		expect("at first", "Entry 1", 1)

		time.Sleep(2 * time.Hour)
		entries.Store(2)
		expect("before the ping", "Entry 1", 1)
		ping(one)
		expect("after a ping at the first node", "Entry 2", 2)

		entries.Store(3)
		for range 40 { // minutes, of an hour
			ping(one, two)
			time.Sleep(time.Minute)
			expect("too early", "Entry 2", 2)
		}
		time.Sleep(30 * time.Minute)
		expect("when the interval has passed", "Entry 3", 3)
		time.Sleep(2 * time.Hour)
		expect("later", "Entry 3", 3)
	})
}
