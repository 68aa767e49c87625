// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package postgres_test

import (
	"testing"
	"time"

	"github.com/feedpollard/pollard/cache/store/postgres"
)

// A node whose machine has slept has missed changes: what was forgotten meanwhile has no row any more.
func TestWatchAfterSleep(t *testing.T) {
	url := server(t).Database(t)
	t.Parallel()
	open(t, url) // makes the tables
	boot := time.Hour
	look, closed, err := postgres.Looker(t.Context(), url, func() time.Duration { return boot })
	must(t, err)
	defer closed()
	for _, step := range []struct {
		sleep time.Duration
		lost  bool
	}{{0, true}, {time.Second, false}, {time.Hour, true}} {
		boot += step.sleep
		changes, err := look(t.Context())
		if err != nil || (len(changes) > 0 && changes[0].Lost) != step.lost {
			t.Errorf("after %v: changes %+v, %v, want a loss: %v", step.sleep, changes, err, step.lost)
		}
	}
}
