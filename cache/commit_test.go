// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/feedpollard/pollard/policy"
)

// A node does not read back what it has just written.
func TestOwnCommitsAreNotReadBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lookups atomic.Int64
		g := newGateway(t, func(ask policy.Ask) policy.Answer {
			if ask.Validators.ETag != "" {
				return unchanged()
			}
			return ok(rss(2, ""), "ETag", `"a"`)
		})
		g.store.hook(func(_ context.Context, call string) error {
			if call == "Lookup" {
				lookups.Add(1)
			}
			return nil
		}, nil)
		g.open()
		g.get(feedURL)
		time.Sleep(2 * time.Hour)
		before := lookups.Load()
		for range 3 {
			g.get(feedURL)
			time.Sleep(2 * time.Hour)
		}
		if n, polls := lookups.Load()-before, g.origin.polls(); n != 0 || polls != 4 {
			t.Errorf("%d records were read for %d polls, want none for 4", n, polls)
		}
	})
}
