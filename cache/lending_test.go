// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/feedpollard/pollard/policy"
)

// redirecting answers for feedURL with a redirect to movedURL, and for that as it is told.
func redirecting(target func(policy.Ask) policy.Answer, headers ...string) func(policy.Ask) policy.Answer {
	return func(ask policy.Ask) policy.Answer {
		if ask.URL == movedURL {
			return target(ask)
		}
		a := redirected(302, ask)
		a.Header = ok("", headers...).Header
		return a
	}
}

// A feed that another one's polls serve has that one's interval, not that of a
// feed without validators.
func TestBorrowedVersionKeepsPaceWithItsLender(t *testing.T) {
	bubble(t, func(t *testing.T, dir string) {
		g := newGateway(t, dir, redirecting(func(ask policy.Ask) policy.Answer {
			entries := 2 + int(time.Since(epoch)/(6*time.Hour))
			if etag := fmt.Sprintf(`"%d"`, entries); ask.Validators.ETag != etag {
				return ok(rss(entries, ""), "ETag", etag)
			}
			return unchanged()
		})).open()
		defer g.close()
		for range 3 * 24 {
			g.get(movedURL)
			g.get(feedURL)
			time.Sleep(time.Hour + time.Minute)
		}
		polls := 0
		for _, ask := range g.origin.asks {
			if ask.URL == feedURL {
				polls++
			}
		}
		if polls < 30 {
			t.Errorf("%d polls in three days", polls)
		}
		if lent, own := g.get(feedURL).Body.String(), g.get(movedURL).Body.String(); lent != own {
			t.Error("the feeds differ")
		}
	})
}

// A redirect that was asked for was a poll, whether the feed that it leads to has
// a version by then or not.
func TestRedirectToAFeedWithoutAVersion(t *testing.T) {
	bubble(t, func(t *testing.T, dir string) {
		g := newGateway(t, dir, redirecting(func(policy.Ask) policy.Answer {
			time.Sleep(25 * time.Second)
			return ok(rss(2, ""), "ETag", `"1"`)
		})).open()
		defer g.close()
		go g.get(movedURL)
		time.Sleep(time.Second)
		var last time.Time
		for range 4 * 60 {
			g.get(feedURL)
			time.Sleep(time.Minute)
		}
		for i, ask := range g.origin.asks {
			if ask.URL != feedURL {
				continue
			}
			if gap := g.origin.at[i].Sub(last); gap < time.Hour {
				t.Errorf("polled again after %v", gap)
			}
			last = g.origin.at[i]
		}
		wantBody(t, g.get(feedURL), 200, "Entry 2")
	})
}

// The redirect's own Retry-After counts, wherever it leads.
func TestPauseAskedForByARedirect(t *testing.T) {
	bubble(t, func(t *testing.T, dir string) {
		g := newGateway(t, dir, redirecting(func(policy.Ask) policy.Answer { return ok(rss(2, ""), "ETag", `"1"`) }, "Retry-After", "20000")).open()
		defer func() { g.close() }()
		g.get(movedURL)
		g.get(feedURL)
		g.restart()
		account, err := g.Account(feedURL)
		if wait := account.NextPoll.Sub(account.LastPoll); err != nil || wait < 20000*time.Second || account.Winner != "retry-after" {
			t.Errorf("it waits %v for %s: %v", wait, account.Winner, err)
		}
	})
}
