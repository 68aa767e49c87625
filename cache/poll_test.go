// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/feedpollard/pollard/cache/feedstate"
	"github.com/feedpollard/pollard/policy"
)

func TestSlowPollKeepsAReaderForSecondsOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		delay := time.Duration(0)
		version := 1
		g := newGateway(t, func(policy.Ask) policy.Answer {
			time.Sleep(delay)
			return ok(rss(version, ""))
		}).open()
		g.get(feedURL)
		time.Sleep(25 * time.Hour)
		delay, version = 20*time.Second, 2

		began := time.Now()
		w := g.get(feedURL)
		if d := time.Since(began); d != 3*time.Second {
			t.Errorf("waited %v for a slow poll, want 3s", d)
		}
		wantBody(t, w, 200, "Entry 1")
		time.Sleep(time.Second)
		began = time.Now()
		g.get(feedURL)
		if d := time.Since(began); d != 0 {
			t.Errorf("the next reader waited %v, want not at all", d)
		}
		time.Sleep(20 * time.Second)
		wantBody(t, g.get(feedURL), 200, "Entry 2")
		if n := g.origin.polls(); n != 2 {
			t.Errorf("%d polls, want 2", n)
		}
	})
}

// A floor that is raised holds for the poll that was planned before.
func TestRaisedFloorHoldsAtOnce(t *testing.T) {
	for name, prefetch := range map[string]bool{"readers": false, "prefetch": true} {
		bubble(t, name, func(t *testing.T) {
			g := newGateway(t, func(policy.Ask) policy.Answer {
				return ok(rss(2, ""), "ETag", `"v"`, "Cache-Control", "max-age=3600")
			})
			g.settings.Prefetch = prefetch
			g.open()
			g.get(feedURL)
			time.Sleep(30 * time.Minute)
			rules := g.settings.Rules(feedstate.ParseKey(feedURL))
			rules.MinInterval = 6 * time.Hour
			g.settings.Rules = func(feedstate.Key) policy.Rules { return rules }
			g.Apply(g.settings)
			for range 5 * 12 {
				wantBody(t, g.get(feedURL), 200, "Entry 2")
				time.Sleep(5 * time.Minute)
			}
			if n := g.origin.polls(); n != 1 {
				t.Errorf("%d polls within 5 h 30 min, want one", n)
			}
			if a, err := g.Status(t.Context(), feedURL); err != nil || a.Winner != policy.HintFloor {
				t.Errorf("it waits because of %q (%v)", a.Winner, err)
			}
			g.restart()
			time.Sleep(20 * time.Minute)
			g.get(feedURL)
			if n := g.origin.polls(); n != 1 {
				t.Errorf("%d polls after a restart, want one", n)
			}
			time.Sleep(time.Hour)
			g.get(feedURL)
			if n := g.origin.polls(); n != 2 {
				t.Errorf("%d polls after 7 h, want two", n)
			}
		})
	}
}

// An origin that answers only 304 is asked without validators after each eight days, in place of a regular
// poll, whether readers or the background cause it.
func TestOnly304s(t *testing.T) {
	slow(t)
	const gap = 25 * time.Hour // a little more than max-age
	for name, c := range map[string]struct {
		prefetch bool
		days     int
		want     []time.Duration // days of the unconditional polls
	}{"read daily": {false, 62, []time.Duration{0, 8, 16, 24, 32, 40, 48, 56}}, "in the background": {true, 31, []time.Duration{0, 8, 16, 24}}} {
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
			time.Sleep(time.Hour) // no poll is under way at a restart
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

// A document without an end counts at once if all entries of the stored version are still there, and an
// empty one at the second poll, with the store's version in between.
func TestOddDocuments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		body := rss(2, "")
		g := newGateway(t, func(ask policy.Ask) policy.Answer { return ok(body, "ETag", `"v"`, "Cache-Control", "max-age=3600") })
		g.restart()
		g.get(feedURL)
		for _, step := range []struct{ body, shown string }{
			{strings.TrimSuffix(rss(3, ""), "</channel></rss>"), "Entry 3"},
			{rss(4, ""), "Entry 4"},
			{rss(0, ""), "Entry 4"},
			{rss(0, ""), ""},
		} {
			body = step.body
			g.restart() // nothing is in memory
			time.Sleep(61 * time.Minute)
			g.get(feedURL)
			w := g.get(feedURL)
			if shown := entryTitle.FindString(w.Body.String()); w.Code != 200 || shown != step.shown {
				t.Errorf("%.40q...: readers get %q", step.body, shown)
			}
		}
	})
}

var entryTitle = regexp.MustCompile(`Entry \d+`)

// Errors say which limit a document exceeds.
func TestTooComplexDocument(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGateway(t, func(policy.Ask) policy.Answer { return ok("<rss><channel>" + strings.Repeat("<x>", 100_000)) }).open()
		wantBody(t, g.get(feedURL), 502, "too complex a document: elements nested more than 256 deep")
	})
}
