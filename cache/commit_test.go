// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/policy"
)

// counted is a store that counts the records that are looked up.
type counted struct {
	store.Store
	lookups atomic.Int64
}

func (s *counted) Lookup(ctx context.Context, ids []store.ID) ([]store.Record, error) {
	s.lookups.Add(1)
	return s.Store.Lookup(ctx, ids)
}

// A node does not read back what it has just written.
func TestOwnCommitsAreNotReadBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := new(counted)
		g := newGateway(t, "", func(ask policy.Ask) policy.Answer {
			if ask.Validators.ETag != "" {
				return unchanged()
			}
			return ok(rss(2, ""), "ETag", `"a"`)
		})
		g.wrap = func(s store.Store) store.Store { db.Store = s; return db }
		g.open()
		defer g.close()
		g.get(feedURL)
		time.Sleep(2 * time.Hour)
		before := db.lookups.Load()
		for range 3 {
			g.get(feedURL)
			time.Sleep(2 * time.Hour)
		}
		if n, polls := db.lookups.Load()-before, g.origin.polls(); n != 0 || polls != 4 {
			t.Errorf("%d records were read for %d polls, want none for 4", n, polls)
		}
	})
}
