// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// A node that is stopped between an answer and its commit comes back when others have
// polled meanwhile. What it brings then changes nothing: no reader gets an older version
// again, and no poll is sooner than the later answers have asked for.
func TestLateOutcomeChangesNothing(t *testing.T) {
	setFlag(t, "rapid.checks", "3")
	setFlag(t, "rapid.seed", "7")
	setFlag(t, "rapid.nofailfile", "true")
	rapid.Check(t, func(rt *rapid.T) {
		minutes := func(from, to int, label string) time.Duration {
			return time.Duration(rapid.IntRange(from, to).Draw(rt, label)) * time.Minute
		}
		// It polls as soon as one of the feeds is due, and has the answer then.
		deeds := []deed{{do: "stall", pause: minutes(60, 90, "until it polls")}}
		for feed := range adversary {
			habit := rapid.IntRange(0, 2).Draw(rt, "habit") // good ones
			deeds = append(deeds, deed{do: "habit", feed: feed, habit: habit})
		}
		deeds = append(deeds, deed{do: "reload", node: 1, pause: minutes(60, 12*60, "away")})
		reads := func() {
			for feed := range adversary {
				deeds = append(deeds, deed{do: "read", node: 1, feed: feed})
			}
		}
		reads()
		deeds = append(deeds, deed{do: "continue", pause: minutes(0, 5, "back")})
		for range 12 {
			reads()
			deeds = append(deeds, deed{do: "reload", node: 1, pause: minutes(1, 30, "later")})
		}
		var violations []string
		synctest.Test(t, func(t *testing.T) { violations = lead(newCluster(t, "", 2), deeds) })
		for _, v := range violations {
			rt.Error(v)
		}
	})
}
