// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package shield

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/feedpollard/pollard/caddymodule/internal/stage"
	"github.com/feedpollard/pollard/caddymodule/poller"
)

// A shield has a bounded number of keys in memory. Invented URLs do not evict an honest feed
// from it, and an evicted key keeps its feed in the store.
func TestShieldMemoryIsBounded(t *testing.T) {
	stage.Run(t, stage.ShieldedSite(blog, ""), stage.Feed(stage.Sample), func(s *stage.Stage) {
		const limit = 20
		s.Get(blog + "/feed")
		memory := memoryOf(t)
		var err error
		if memory.byKey, err = lru.New2Q[string, *entry](limit); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			s.Get(blog + "/feed")
		}
		s.Expect(1, "a feed")
		for i := range 2 * limit {
			s.Get(fmt.Sprintf("%s/feed?bust=%d", blog, i))
		}
		s.Expect(2*limit, "invented URLs")
		if n := memory.byKey.Len(); n > limit {
			t.Errorf("%d keys are in memory, want at most %d", n, limit)
		}
		if memory.get(feedKey("/feed")) == nil {
			t.Error("the honest feed is not in memory")
		}
		for i := range 2 * limit {
			s.Get(fmt.Sprintf("%s/feed?bust=%d", blog, i))
		}
		s.Get(blog + "/feed")
		s.Expect(0, "feeds that are stored")
		s.Load(stage.ShieldedSite(blog, "{\nstatus /feed/status\n}"))
		if memoryOf(t) != memory {
			t.Error("a reload loses the memory")
		}
		synctest.Wait()
		_, c := poller.Running()
		if n := len(c.Keys(context.Background(), poller.ShieldCommon)); n != 2*limit+1 {
			t.Errorf("%d feeds are stored, want %d", n, 2*limit+1)
		}
	})
}
