// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/feedpollard/pollard/cache"
	"github.com/feedpollard/pollard/policy"
)

// Which groups have asked for a feed outlives memory and the process, although its next poll is
// hours away.
func TestGroupsOutliveMemory(t *testing.T) {
	for name, lose := range map[string]func(g *gateway){
		"a stop": func(g *gateway) { g.restart() },
		"eviction": func(g *gateway) {
			for i := range 60 {
				g.get(fmt.Sprintf("https://origin.test/%d", i))
			}
			time.Sleep(2 * time.Minute)
		},
	} {
		bubble(t, name, func(t *testing.T) {
			g := newGateway(t, func(policy.Ask) policy.Answer { return ok(rss(2, ""), "Cache-Control", "max-age=80000") })
			g.budget = 100 << 10
			g.open()
			ask := func(of cache.Group) {
				must(g.Feed(t.Context(), feedURL)).AskedBy(of)
				g.get(feedURL)
			}
			ask(1)
			time.Sleep(time.Hour)
			ask(2)
			groupsOf := func() (asked []cache.Group) {
				g.Shows(t.Context(), feedURL, func(_, _ string, groups []cache.Group) bool { asked = groups; return true })
				return asked
			}
			lose(g)
			if groups := groupsOf(); !slices.Contains(groups, 1) || !slices.Contains(groups, 2) {
				t.Errorf("groups %v have asked, want 1 and 2", groups)
			}
			if name != "a stop" {
				return
			}
			time.Sleep(31 * 24 * time.Hour)
			if groups := groupsOf(); len(groups) != 0 {
				t.Errorf("after 31 days: groups %v", groups)
			}
		})
	}
}
