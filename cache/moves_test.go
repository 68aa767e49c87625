// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"testing"
	"time"

	"github.com/feedpollard/pollard/policy"
)

const movedURL = "https://new.test/feed.xml"

// redirected answers as upstream does after following a redirect to movedURL.
func redirected(status int, ask policy.Ask) policy.Answer {
	if ask.URL == movedURL {
		return ok(rss(2, ""), "ETag", `"new"`, "Cache-Control", "max-age=60")
	}
	moves := []policy.Move{{From: ask.URL, To: movedURL, Status: status}}
	if err := ask.Hop(movedURL); err != nil {
		return policy.Answer{Status: status, URL: ask.URL, Moves: moves, Failure: policy.FailureDelegated, Err: err}
	}
	a := ok(rss(2, ""), "ETag", `"new"`, "Cache-Control", "max-age=60")
	a.URL, a.Moves = movedURL, moves
	return a
}

func TestPermanentRedirectIsAdoptedAfterSevenDays(t *testing.T) {
	for status, adopted := range map[int]bool{301: true, 308: true, 302: false, 303: false, 307: false} {
		bubble(t, func(t *testing.T, dir string) {
			g := newGateway(t, dir, func(ask policy.Ask) policy.Answer { return redirected(status, ask) }).open()
			defer func() { g.close() }()
			began := time.Now()
			for time.Since(began) < 9*24*time.Hour {
				wantBody(t, g.get(feedURL), 200, "Entry 2")
				time.Sleep(25 * time.Hour)
			}
			g.restart()
			first := time.Time{}
			for i, ask := range g.origin.asks {
				if ask.URL == movedURL && first.IsZero() {
					first = g.origin.at[i]
				}
			}
			if got := !first.IsZero(); got != adopted {
				t.Errorf("%d adopted: %v, want %v", status, got, adopted)
			}
			if adopted && first.Sub(began) < 7*24*time.Hour {
				t.Errorf("%d adopted after %v", status, first.Sub(began))
			}
		})
	}
}

func TestInterruptedRedirectStartsAnew(t *testing.T) {
	bubble(t, func(t *testing.T, dir string) {
		redirects := true
		g := newGateway(t, dir, func(ask policy.Ask) policy.Answer {
			if redirects {
				return redirected(301, ask)
			}
			return ok(rss(2, ""))
		}).open()
		defer g.close()
		for day := range 12 {
			redirects = day != 5
			g.get(feedURL)
			time.Sleep(25 * time.Hour)
		}
		for _, ask := range g.origin.asks {
			if ask.URL != feedURL {
				t.Fatal("adopted a redirect that has not held for seven days")
			}
		}
	})
}

func TestFeedThatFailsAtItsNewAddressGoesHome(t *testing.T) {
	bubble(t, func(t *testing.T, dir string) {
		dead := false
		g := newGateway(t, dir, func(ask policy.Ask) policy.Answer {
			switch {
			case !dead:
				return redirected(301, ask)
			case ask.URL == movedURL:
				return failed(404, policy.FailureNotFound)
			}
			return ok(rss(3, ""))
		}).open()
		defer g.close()
		for range 10 {
			g.get(feedURL)
			time.Sleep(25 * time.Hour)
		}
		if g.origin.last().URL != movedURL {
			t.Fatal("the redirect has not been adopted")
		}
		dead = true
		for range 5 {
			g.get(feedURL)
			time.Sleep(25 * time.Hour)
		}
		wantBody(t, g.get(feedURL), 200, "Entry 3")
	})
}

func TestValidatorsAreNotSentToAnotherURL(t *testing.T) {
	bubble(t, func(t *testing.T, dir string) {
		g := newGateway(t, dir, func(ask policy.Ask) policy.Answer { return redirected(302, ask) }).open()
		defer g.close()
		g.get(feedURL)
		time.Sleep(25 * time.Hour)
		g.get(feedURL)
		if v := g.origin.last().Validators; v.URL != movedURL || v.ETag != `"new"` {
			t.Errorf("validators %+v, want them bound to the URL that gave them", v)
		}
	})
}

// Two feeds that lead to one URL make one poll in an interval, whichever was
// known first.
func TestFeedsThatConvergeArePolledOnce(t *testing.T) {
	for name, order := range map[string][]string{"redirect first": {feedURL, movedURL}, "target first": {movedURL, feedURL}} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, dir string) {
				var hits []time.Time // of the final URL
				g := newGateway(t, dir, func(ask policy.Ask) policy.Answer {
					a := redirected(301, ask)
					if a.Failure == policy.FailureNone {
						hits = append(hits, time.Now())
					}
					return a
				}).open()
				defer g.close()
				for range 24 * 10 {
					for _, url := range order {
						wantBody(t, g.get(url), 200, "Entry 2")
						time.Sleep(10 * time.Minute)
					}
					time.Sleep(40 * time.Minute)
				}
				for i := 1; i < len(hits); i++ {
					if gap := hits[i].Sub(hits[i-1]); gap < time.Hour {
						t.Fatalf("the shared URL was polled twice within %v", gap)
					}
				}
				if len(hits) < 100 {
					t.Errorf("%d polls in ten days of hourly polling", len(hits))
				}
			})
		})
	}
}

func TestFeedsThatRedirectToEachOtherFailAndDoNotHang(t *testing.T) {
	bubble(t, func(t *testing.T, dir string) {
		g := newGateway(t, dir, func(ask policy.Ask) policy.Answer {
			to := movedURL
			if ask.URL == movedURL {
				to = feedURL
			}
			if err := ask.Hop(to); err != nil {
				return policy.Answer{Status: 301, Failure: policy.FailureDelegated, Err: err, Moves: []policy.Move{{From: ask.URL, To: to, Status: 301}}}
			}
			return policy.Answer{Failure: policy.FailureRedirect}
		}).open()
		defer g.close()
		if _, err := g.Feed(movedURL); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if w := g.get(feedURL); w.Code < 500 {
			t.Errorf("got %d", w.Code)
		}
		if d := time.Since(began); d > 10*time.Second {
			t.Errorf("hung for %v", d)
		}
	})
}
