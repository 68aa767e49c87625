// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/feedpollard/pollard/internal/feedurl"
	"github.com/feedpollard/pollard/internal/status"
)

// longestRound is how long one poll of each feed of a site may take before it is reported.
const longestRound = time.Hour

// lookForSlow finds the sites whose pace does not fit their feeds. Each is logged once a day. It is called by
// maintain alone.
func (c *Cache) lookForSlow(ctx context.Context) {
	totals, err := c.store.Totals(ctx)
	if err != nil {
		return // in an hour again
	}
	var list []status.SlowSite
	logged, now := make(map[string]time.Duration), c.elapsed()
	for _, s := range totals.Sites {
		round := time.Duration(s.Feeds) * c.spacingOf(s.Site)
		if round <= longestRound && !s.Refuses {
			continue
		}
		slow := status.SlowSite{Site: s.Site, Feeds: s.Feeds, Round: status.Seconds(round), Refuses: s.Refuses}
		list = append(list, slow)
		at, known := c.slowLogged[s.Site]
		if !known || now-at >= 24*time.Hour {
			at = now
			c.log().Warn("the pace of a site does not fit its feeds", zap.String("site", s.Site), zap.String("problem", slow.Sentence()))
		}
		logged[s.Site] = at
	}
	c.slowLogged = logged
	c.slow.Store(&list)
}

// spacingOf returns the spacing of a site's own host; 0 if it cannot be told.
func (c *Cache) spacingOf(site string) time.Duration {
	u, err := feedurl.Parse("https://" + site + "/")
	if err != nil {
		return 0
	}
	return c.origin.Host(u).Spacing
}
