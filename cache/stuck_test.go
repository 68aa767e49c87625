// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/feedpollard/pollard/policy"
)

// An origin that answers only 304 is asked without validators once in 30 days, in place of a
// regular poll, whether readers or the background cause it.
func TestOnly304sForAMonth(t *testing.T) {
	const gap = 25 * time.Hour // a little more than max-age
	for name, c := range map[string]struct {
		prefetch bool
		days     int
		want     []time.Duration // days of the unconditional polls
	}{"read daily": {false, 62, []time.Duration{0, 29, 58}}, "in the background": {true, 31, []time.Duration{0, 29}}} {
		bubble(t, name, func(t *testing.T) {
			var entries atomic.Int64 // the background polls as well
			entries.Store(1)
			g := newGateway(t, func(ask policy.Ask) policy.Answer {
				if ask.Validators.Empty() {
					return ok(rss(int(entries.Load()), ""), "ETag", `"same"`, "Cache-Control", "max-age=90000")
				}
				return unchanged()
			})
			g.settings.Prefetch, g.settings.Feeds, g.settings.IdleAfter = c.prefetch, []string{feedURL}, 100*24*time.Hour
			g.rules(policy.Rules{MinInterval: time.Hour, DefaultInterval: time.Hour, MaxInterval: gap, Timeout: time.Minute, MaxBody: 1 << 20})
			g.open()
			for day := range c.days {
				if !c.prefetch {
					g.get(feedURL)
				}
				switch day {
				case 10:
					entries.Store(2)
				case 20:
					g.restart()
				}
				time.Sleep(gap)
			}
			wantBody(t, g.get(feedURL), 200, "Entry 2")
			var unconditional []time.Duration
			for i, ask := range g.origin.asks {
				if ask.Validators.Empty() {
					unconditional = append(unconditional, g.origin.at[i].Sub(g.origin.at[0]).Round(gap)/gap)
				}
			}
			if !slices.Equal(unconditional, c.want) {
				t.Errorf("unconditional polls after %d days", unconditional)
			}
		})
	}
}
