// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/feedpollard/pollard/cache"
	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/cache/store/sqlite"
	"github.com/feedpollard/pollard/policy"
)

// Validators are octets, and seldom UTF-8 if they are not ASCII.
func TestValidatorsOutliveARestartByteForByte(t *testing.T) {
	const etag, date = "\"caf\xe9\"", "Mon, 02 M\xe4r 2026 10:00:00 GMT"
	bubble(t, func(t *testing.T, dir string) {
		g := newGateway(t, dir, func(policy.Ask) policy.Answer {
			return ok(rss(2, ""), "ETag", etag, "Last-Modified", date)
		}).open()
		defer func() { g.close() }()
		g.get(feedURL)
		g.restart()
		time.Sleep(25 * time.Hour)
		g.get(feedURL)
		if v := g.origin.last().Validators; g.origin.polls() != 2 || v.ETag != etag || v.LastModified != date {
			t.Errorf("poll %d carries %q", g.origin.polls(), v)
		}
		if code := g.get(feedURL, "If-None-Match", etag).Code; code != 304 {
			t.Errorf("the origin's ETag gets %d", code)
		}
	})
}

// A poll that never comes is not one in three hundred years.
func TestGoneFeedStaysGoneAfterARestart(t *testing.T) {
	bubble(t, func(t *testing.T, dir string) {
		g := newGateway(t, dir, func(policy.Ask) policy.Answer { return failed(410, policy.FailureGone) })
		healthy := g.origin.answer
		g.origin.answers(func(policy.Ask) policy.Answer { return ok(rss(2, ""), "ETag", `"1"`) })
		g.open()
		defer func() { g.close() }()
		g.get(feedURL)
		g.origin.answers(healthy)
		time.Sleep(25 * time.Hour)
		g.get(feedURL)
		for range 2 {
			account, err := g.Status(t.Context(), feedURL)
			if err != nil || account.State != "gone" || !account.NextPoll.IsZero() {
				t.Errorf("it is %s and its next poll %v (%v)", account.State, account.NextPoll, err)
			}
			if got := g.get(feedURL).Header().Get("Cache-Control"); got != "max-age=86400" {
				t.Errorf("Cache-Control: %s", got)
			}
			g.restart()
		}
	})
}

// A poll that is put off from Friday to Saturday keeps out of skipDays all the same.
func TestPollPutOffIntoASkippedDay(t *testing.T) {
	bubble(t, func(t *testing.T, dir string) {
		body := `<rss version="2.0"><channel><title>T</title><skipDays><day>Saturday</day></skipDays><item><title>1</title></item></channel></rss>`
		g := newGateway(t, dir, func(policy.Ask) policy.Answer { return ok(body, "ETag", `"1"`) }).open()
		defer func() { g.close() }()
		saturday := time.Date(2026, time.March, 7, 0, 0, 0, 0, time.UTC)
		time.Sleep(time.Until(saturday.Add(-3 * time.Hour)))
		g.get(feedURL)
		time.Sleep(time.Until(saturday.Add(-time.Minute)))
		g.pause(2 * time.Minute)
		g.get(feedURL)
		for range 24 {
			time.Sleep(time.Hour)
			g.get(feedURL)
		}
		for _, at := range g.origin.at {
			if at.Weekday() == time.Saturday {
				t.Errorf("polled at %v", at)
			}
		}
		time.Sleep(2 * time.Hour)
		if g.get(feedURL); g.origin.polls() != 2 {
			t.Errorf("%d polls, want one more on Sunday", g.origin.polls())
		}
	})
}

// The record of a decision says what put a poll off, in the words of the feed.
func TestPostponementKeepsTheRawHint(t *testing.T) {
	bubble(t, func(t *testing.T, dir string) {
		body := `<rss version="2.0"><channel><title>T</title><skipHours><hour>13</hour><hour>14</hour></skipHours><item><title>1</title></item></channel></rss>`
		g := newGateway(t, dir, func(policy.Ask) policy.Answer { return ok(body, "ETag", `"1"`) }).open()
		defer g.close()
		g.get(feedURL)
		time.Sleep(3*time.Hour + time.Minute)
		g.get(feedURL)
		account, err := g.Status(t.Context(), feedURL)
		if err != nil || account.Winner != policy.HintSkipHours || account.NextPoll.Hour() != 15 {
			t.Fatalf("it waits until %v for %s, %v", account.NextPoll, account.Winner, err)
		}
		for _, term := range account.Considered {
			if term.Hint == policy.HintSkipHours && (term.Raw != "13,14" || !term.Used || term.Seconds == 0) {
				t.Errorf("considered %+v", term)
			}
		}
	})
}

// A record of which only the reservation was written does not know its readers.
func TestFeedWhoseFirstOutcomeWasLostIsNotForgotten(t *testing.T) {
	bubble(t, func(t *testing.T, dir string) {
		g := newGateway(t, dir, func(policy.Ask) policy.Answer { return ok(rss(2, ""), "ETag", `"1"`) })
		var broken *failing
		g.wrap = func(s store.Store) store.Store { broken = &failing{Store: s}; return broken }
		g.open()
		defer func() { g.close() }()
		broken.refuse(nil, errors.New("the machine has stopped"))
		g.get(feedURL)
		g.restart()
		time.Sleep(61 * time.Minute)
		if _, err := g.Refresh(t.Context(), feedURL); err != nil {
			t.Fatal(err)
		}
		g.restart()
		time.Sleep(5 * time.Hour)
		wantBody(t, g.get(feedURL), 200, "Entry 2")
		if n := g.origin.polls(); n != 3 || g.origin.last().Validators.Empty() {
			t.Errorf("%d polls, the last without validators: the feed was forgotten", n)
		}
	})
}

// ClaimDue moves the next poll by the plan in force, also of a feed that backs off and whose poll
// crashes.
func TestCrashOfAPrefetchedPollKeepsTheBackOff(t *testing.T) {
	bubble(t, func(t *testing.T, dir string) {
		g := newGateway(t, dir, func(policy.Ask) policy.Answer { return ok(rss(2, ""), "ETag", `"v"`) })
		var broken *failing
		g.wrap = func(s store.Store) store.Store { broken = &failing{Store: s}; return broken }
		g.settings.Prefetch, g.settings.Feeds = true, []string{feedURL}
		g.open()
		defer func() { g.close() }()
		time.Sleep(time.Minute)
		g.origin.answers(func(policy.Ask) policy.Answer { return failed(500, policy.FailureStatus) })
		for g.origin.polls() < 4 {
			time.Sleep(time.Minute)
		}
		account, err := g.Status(t.Context(), feedURL)
		if err != nil {
			t.Fatal(err)
		}
		plan := time.Until(account.NextPoll)
		broken.refuse(nil, errors.New("the machine has stopped"))
		for g.origin.polls() < 5 {
			time.Sleep(time.Minute)
		}
		g.restart()
		for g.origin.polls() < 6 {
			time.Sleep(time.Minute)
		}
		at := g.asked(feedURL)
		if gap := at[5].Sub(at[4]); gap < plan {
			t.Errorf("polled again %v after the crash, want the back-off of %v kept", gap, plan)
		}
	})
}

// A clock that is put forward while nothing runs makes nothing due, as long as the machine
// is not booted. After that a week at most is believed, and what is due then is spread.
func TestClockPutForwardWhileNothingRuns(t *testing.T) {
	for _, booted := range []bool{false, true} {
		t.Run(fmt.Sprintf("booted %v", booted), func(t *testing.T) {
			bubbleOnDisk(t, func(t *testing.T, dir string) {
				g := newGateway(t, dir, func(policy.Ask) policy.Answer { return ok(rss(2, ""), "ETag", `"v"`) })
				const feeds = 100
				for i := range feeds {
					g.settings.Feeds = append(g.settings.Feeds, fmt.Sprintf("https://host%d.test/feed", i))
				}
				life, began, step := "one", time.Now(), time.Duration(0)
				open := func() {
					now := func() time.Time { return time.Now().Add(step).Round(0) }
					db, err := sqlite.Open(dir, sqlite.Options{Clocks: func() sqlite.Moment {
						return sqlite.Moment{Wall: now(), Since: time.Since(began), Boot: life}
					}})
					if err != nil {
						t.Fatal(err)
					}
					g.store = db
					if g.Cache, err = cache.New(cache.Options{Store: db, Origin: g.origin, Memory: 1 << 20, Now: now}); err != nil {
						t.Fatal(err)
					}
					g.Apply(g.settings)
				}
				g.settings.Prefetch = true
				open()
				time.Sleep(10 * time.Minute)
				g.close()
				if n := g.origin.polls(); n != feeds {
					t.Fatalf("%d polls of %d feeds", n, feeds)
				}
				step = 30 * 24 * time.Hour
				if booted {
					life, began = "two", time.Now()
				}
				open()
				defer g.close()
				time.Sleep(5 * time.Second)
				if n := g.origin.polls() - feeds; !booted && n != 0 || booted && n > 50 {
					t.Errorf("%d polls at once after the clock was put forward", n)
				}
				time.Sleep(10 * time.Minute)
				if n := g.origin.polls() - feeds; !booted && n != 0 || booted && n != feeds {
					t.Errorf("%d polls in ten minutes after the clock was put forward", n)
				}
			})
		})
	}
}

// A 304 needs no body, even if nothing is in memory.
func TestNotModifiedReadsNoBody(t *testing.T) {
	bubble(t, func(t *testing.T, dir string) {
		db := new(distant)
		g := newGateway(t, dir, func(policy.Ask) policy.Answer { return ok(rss(1, ""), "ETag", `"1"`) })
		g.wrap = func(s store.Store) store.Store { db.Store = s; return db }
		g.open()
		defer func() { g.close() }()
		tag := g.get(feedURL).Header().Get("ETag")
		g.restart()
		if w := g.get(feedURL, "If-None-Match", tag); w.Code != 304 || db.bodies.Load() != 0 {
			t.Errorf("got %d, %d bodies were read", w.Code, db.bodies.Load())
		}
		if w := g.get(feedURL); w.Code != 200 || db.bodies.Load() != 1 {
			t.Errorf("got %d, %d bodies were read", w.Code, db.bodies.Load())
		}
	})
}
