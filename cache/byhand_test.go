// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/feedpollard/pollard/cache"
	"github.com/feedpollard/pollard/cache/feedstate"
	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/internal/feedurl"
	"github.com/feedpollard/pollard/internal/origintest"
	"github.com/feedpollard/pollard/policy"
)

// meanwhile lets something happen once, in the middle of what asks for the rules next.
func (g *gateway) meanwhile(happens func()) {
	rules := g.settings.Rules
	var happened atomic.Bool // no sync.Once: what happens may ask for the rules as well
	changed := g.settings
	changed.Rules = func(url feedstate.Key) policy.Rules {
		if happened.CompareAndSwap(false, true) {
			happens()
		}
		return rules(url)
	}
	g.Apply(changed)
}

func wantTooEarly(t *testing.T, err error, why string) {
	t.Helper()
	early, ok := errors.AsType[*cache.TooEarly](err)
	if !ok || !strings.Contains(early.Why, why) {
		t.Errorf("got %v, want too early because of %s", err, why)
	}
}

// A refresh that finds a poll under way does not take its postponement for its own.
func TestRefreshInsistsAfterAPollThatKeepsOutOfSkipHours(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		body := strings.Replace(rss(2, ""), "<item>", "<skipHours><hour>12</hour></skipHours><item>", 1)
		g := newGateway(t, func(policy.Ask) policy.Answer { return ok(body, "ETag", `"v"`) }).open()
		g.get(feedURL)
		time.Sleep(2*time.Hour + time.Minute) // 12:01, in the skipped hour
		var wg sync.WaitGroup
		g.meanwhile(func() {
			wg.Go(func() {
				if _, err := g.Refresh(t.Context(), feedURL); err != nil {
					t.Error(err)
				}
			})
			time.Sleep(time.Second)
		})
		g.get(feedURL)
		wg.Wait()
		if n := g.origin.polls(); n != 2 {
			t.Errorf("%d polls, want the second by hand", n)
		}
	})
}

func TestRefreshThatCannotPollSaysWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGateway(t, func(policy.Ask) policy.Answer { return ok(rss(2, ""), "ETag", `"v"`) }).open()
		g.get(feedURL)
		time.Sleep(25 * time.Hour)
		g.pause(time.Hour)
		_, err := g.Refresh(t.Context(), feedURL)
		wantTooEarly(t, err, "host-cooldown")
		if _, err = g.Refresh(t.Context(), "https://unknown.test/"); !errors.Is(err, cache.ErrUnknownFeed) {
			t.Errorf("an unknown feed: %v", err)
		}
	})
}

// A poll by hand obeys the pause of the site.
func TestRefreshDuringAPauseOfTheSite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGateway(t, func(policy.Ask) policy.Answer { return ok(rss(2, ""), "ETag", `"v"`) })
		g.settings.Feeds = []string{feedURL}
		g.open()
		g.get(feedURL)
		time.Sleep(25 * time.Hour)
		g.pause(2 * time.Hour)
		if g.get(feedURL); g.accounts()[0].Winner != policy.HintHostCooldown {
			t.Fatalf("it waits for %s", g.accounts()[0].Winner)
		}
		_, err := g.Refresh(t.Context(), feedURL)
		wantTooEarly(t, err, policy.HintHostCooldown)
		polls := g.origin.polls()
		time.Sleep(2*time.Hour + time.Minute) // it is polled when the pause ends
		if g.origin.polls() != polls+1 {
			t.Errorf("after the pause: %d polls", g.origin.polls()-polls)
		}
	})
}

func TestRefreshRevivesWhatWasGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGateway(t, func(policy.Ask) policy.Answer { return failed(410, policy.FailureGone) }).open()
		if w := g.get(feedURL); w.Code != http.StatusGone || w.Header().Get("Retry-After") != "" {
			t.Errorf("got %d", w.Code)
		}
		g.restart()
		_, err := g.Refresh(t.Context(), feedURL)
		wantTooEarly(t, err, "min_interval")
		g.origin.answers(func(policy.Ask) policy.Answer { return ok(rss(2, ""), "ETag", `"v"`) })
		time.Sleep(time.Hour + time.Second) // it is polled as soon as it may be
		if account := must(g.Status(t.Context(), feedURL)); account.State != "fresh" {
			t.Errorf("it is %s", account.State)
		}
		time.Sleep(2 * time.Hour)
		wantBody(t, g.get(feedURL), 200, "Entry 2")
		if n := g.origin.polls(); n != 3 {
			t.Errorf("%d polls, want automatic polling to go on", n)
		}
	})
}

// A poll of which nothing was sent may be tried again by hand at any time, and trying puts off
// nothing. Requests that were sent count.
func TestRefreshAfterNothingWasSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		good := ok(rss(2, ""), "ETag", `"v"`, "Cache-Control", "max-age=36000")
		g := newGateway(t, func(policy.Ask) policy.Answer { return refused }).open()
		g.get(feedURL)
		for range 8 {
			time.Sleep(5 * time.Second)
			_, err := g.Refresh(t.Context(), feedURL)
			wantTooEarly(t, err, "unsent")
		}
		if n := g.origin.polls(); n != 9 {
			t.Errorf("%d polls were tried, want each by hand", n)
		}
		time.Sleep(30 * time.Second) // 70 s after the first
		if g.get(feedURL); g.origin.polls() != 10 {
			t.Error("the reader's poll was put off by those by hand")
		}
		time.Sleep(2*time.Minute + 15*time.Second) // not the interval after nine failures
		if g.get(feedURL); g.origin.polls() != 11 {
			t.Error("polls by hand count among those that failed")
		}
		g.origin.answers(func(policy.Ask) policy.Answer { return good })
		time.Sleep(time.Second)
		if account, err := g.Refresh(t.Context(), feedURL); err != nil || account.State != "fresh" {
			t.Errorf("when it can be reached: %s, %v", account.State, err)
		}
		time.Sleep(time.Minute)
		_, err := g.Refresh(t.Context(), feedURL)
		wantTooEarly(t, err, "min_interval")
		if n := g.origin.polls(); n != 12 {
			t.Errorf("%d polls", n)
		}
	})
}

// A poll by hand that could not be made is made once, as soon as it may be, and brings no other one forward.
func TestRefreshThatCannotPollIsMadeOnce(t *testing.T) {
	for name, prevent := range map[string]func(*gateway){
		"the host is paused": func(g *gateway) { g.pause(time.Minute) },
		"nothing was sent": func(g *gateway) {
			g.origin.answers(func(policy.Ask) policy.Answer { return policy.Answer{Failure: policy.FailureNotStarted} })
		},
		"the store refuses": func(g *gateway) { g.store.refuse(errors.New("no space left on device"), "Claim") },
	} {
		bubble(t, name, func(t *testing.T) {
			g := newGateway(t, func(policy.Ask) policy.Answer { return ok(rss(2, ""), "ETag", `"v"`, "Cache-Control", "max-age=36000") }).open()
			g.get(feedURL)
			time.Sleep(2 * time.Hour)
			good := g.origin.answer
			prevent(g)
			_, err := g.Refresh(t.Context(), feedURL)
			if _, ok := errors.AsType[*cache.TooEarly](err); !ok {
				t.Errorf("got %v", err)
			}
			g.origin.answer = good
			g.store.refuse(nil)
			sent := g.origin.polls()
			for hour := range 7 {
				time.Sleep(time.Hour)
				g.get(feedURL)
				if hour == 3 {
					g.restart()
				}
			}
			if n := g.origin.polls() - sent; n != 1 {
				t.Errorf("%d polls within max-age", n)
			}
			time.Sleep(10 * time.Hour)
			if g.get(feedURL); g.origin.polls() != sent+2 {
				t.Errorf("%d polls after max-age", g.origin.polls()-sent)
			}
		})
	}
}

// The record that is forgotten must not be that of a poll which began meanwhile:
// the next reader would cause another one.
func TestNoPollComesBetweenForgettingAndItsEnd(t *testing.T) {
	for name, feeds := range map[string][]string{"configured": {feedURL}, "asked for": nil} {
		bubble(t, name, func(t *testing.T) {
			g := newGateway(t, func(policy.Ask) policy.Answer {
				time.Sleep(5 * time.Second)
				return ok(rss(2, ""), "ETag", `"v"`)
			})
			g.store.delay(time.Second, "Forget")
			g.settings.Feeds = feeds
			g.open()
			g.get(feedURL)
			time.Sleep(25 * time.Hour)
			var wg sync.WaitGroup
			wg.Go(func() {
				if err := g.Forget(t.Context(), feedURL); err != nil {
					t.Error(err)
				}
			})
			for range 100 {
				time.Sleep(100 * time.Millisecond)
				wg.Go(func() { g.get(feedURL) })
			}
			wg.Wait()
			wantBody(t, g.get(feedURL), 200, "Entry 2")
			if n := g.origin.polls(); n != 2 {
				t.Errorf("%d polls, want one before and one after the feed was forgotten", n)
			}
		})
	}
}

// A feed that was forgotten is not polled sooner, and says so.
func TestForgottenFeedWaits(t *testing.T) {
	for name, feeds := range map[string][]string{"configured": {feedURL}, "asked for": nil} {
		bubble(t, name, func(t *testing.T) {
			g := newGateway(t, func(policy.Ask) policy.Answer { return ok(rss(2, ""), "ETag", `"v"`, "Cache-Control", "max-age=7200") })
			g.settings.Feeds = feeds
			g.open()
			g.get(feedURL)
			time.Sleep(20 * time.Minute)
			if err := g.Forget(t.Context(), feedURL); err != nil {
				t.Fatal(err)
			}
			wantBody(t, g.get(feedURL), 503, "the feed cannot be polled yet: its site was asked for it not long ago")
			a := g.accounts()[0]
			reason, next := a.Explain(time.Now(), nil).String(), a.Headline(time.Now())
			if !strings.HasPrefix(reason, "The feed cannot be polled yet. Next try: 12:0") || feeds != nil && next != "The next poll is in 2 h." {
				t.Errorf("%s: %s %s", a.State, reason, next)
			}
			_, err := g.Refresh(t.Context(), feedURL)
			if wantTooEarly(t, err, "min_interval"); err != nil && !strings.HasPrefix(err.Error(), "not before 2026-03-02T11:00:0") {
				t.Error(err)
			}
			time.Sleep(2 * time.Hour)
			wantBody(t, g.get(feedURL), 200, "Entry 2")
		})
	}
}

// A reader must not bring a feed back to life that its origin has declared gone.
func TestReadersDoNotPollWhatIsGone(t *testing.T) {
	slow(t)
	for name, versions := range map[string]int{"never read": 0, "with a version": 1} {
		bubble(t, name, func(t *testing.T) {
			n := 0
			g := newGateway(t, func(policy.Ask) policy.Answer {
				if n++; n <= versions {
					return ok(rss(2, ""), "ETag", `"v"`)
				}
				return failed(410, policy.FailureGone)
			})
			g.settings.Prefetch, g.settings.IdleAfter = true, 24*time.Hour
			g.open()
			want := map[int]int{0: 410, 1: 200}[versions]
			g.get(feedURL)
			time.Sleep(25 * time.Hour)
			for range 4 * 4 { // days, beyond all that is forgotten without readers
				if w := g.get(feedURL); w.Code != want {
					t.Fatalf("got %d, want %d", w.Code, want)
				}
				time.Sleep(6 * time.Hour)
			}
			g.restart()
			time.Sleep(5 * time.Hour)
			if w := g.get(feedURL); w.Code != want {
				t.Errorf("got %d after the restart, want %d", w.Code, want)
			}
			if got := g.origin.polls(); got != versions+1 {
				t.Errorf("%d polls, want %d: the last brought the 410", got, versions+1)
			}
		})
	}
}

// MinInterval counts from the end of a poll for pings as well: its request may have arrived only then.
func TestPingAfterASlowPoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ended time.Time
		g := newGateway(t, func(policy.Ask) policy.Answer {
			if gap := time.Since(ended); gap < time.Hour {
				t.Errorf("polled %v after the end of the last poll", gap)
			}
			time.Sleep(10 * time.Second)
			ended = time.Now()
			return ok(rss(1, ""), "Cache-Control", "max-age=86400")
		}).open()
		g.get(feedURL)
		for range 62 * 12 { // each 5 s
			if _, err := g.Ping(t.Context(), []string{feedURL}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(5 * time.Second)
			g.get(feedURL)
		}
		if n := g.origin.polls(); n != 2 {
			t.Errorf("%d polls, want 2", n)
		}
	})
}

// A ping that comes while another one waits counts, although the feed was polled by hand in between.
func TestPingAfterARefresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const key = "shield/feed.xml"
		with := func(entries int) func(policy.Ask) policy.Answer {
			return func(policy.Ask) policy.Answer { return ok(rss(entries, ""), "Cache-Control", "max-age=86400") }
		}
		g := newGateway(t, with(1))
		g.settings.Site = func(string) cache.Origin { return g.origin }
		g.open()
		g.get(key)
		for entries := 2; entries <= 4; entries++ {
			g.origin.answers(with(entries))
			time.Sleep(10 * time.Minute)
			if entries == 3 { // before MinInterval has passed
				if _, err := g.RefreshAtOnce(t.Context(), key); err != nil {
					t.Fatal(err)
				}
			} else if _, err := g.Ping(t.Context(), []string{key}); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(51 * time.Minute)
		if w := g.get(key); g.origin.polls() != 3 || !strings.Contains(w.Body.String(), "Entry 4") {
			t.Errorf("%d polls: %s", g.origin.polls(), w.Body)
		}
	})
}

// Of many feeds that one ping names, those are polled that readers asked for again, the last ones first. The others are
// polled, unconditionally, for their next readers.
func TestPingOfManyFeeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGateway(t, func(policy.Ask) policy.Answer { return ok(rss(1, ""), "Cache-Control", "max-age=86400") })
		g.settings.Site = func(string) cache.Origin { return g.origin }
		g.by = store.OwnerOf(store.KindShield, "shield")
		g.open()
		var keys []string
		for i := range 50 {
			keys = append(keys, fmt.Sprintf("shield/%d.xml", i))
			g.get(keys[i])
		}
		time.Sleep(90 * time.Minute)
		for _, key := range keys[:40] {
			g.get(key)
			time.Sleep(time.Minute)
		}
		time.Sleep(10 * time.Minute)
		before := g.origin.polls()
		if known, err := g.Ping(t.Context(), append(keys, "shield/unknown.xml")); !known || err != nil {
			t.Fatal(known, err)
		}
		time.Sleep(time.Minute)
		if n := g.origin.polls() - before; n != 32 {
			t.Errorf("%d polls, want 32", n)
		}
		g.get(keys[39])
		if n := g.origin.polls() - before; n != 32 {
			t.Error("the feed asked for last was not polled")
		}
		for _, key := range []string{keys[45], keys[45], keys[0]} {
			g.get(key)
		}
		if n := g.origin.polls() - before; n != 34 {
			t.Errorf("%d polls after readers asked for two others, want 34", n)
		}
	})
}

// A ping at one node shows the change to the readers of all, and pings at all nodes cause one poll per
// MinInterval.
func TestPingsAtSeveralNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(epoch))
		var polls, entries atomic.Int64
		entries.Store(1)
		origin := &script{answer: func(policy.Ask) policy.Answer {
			polls.Add(1)
			return ok(rss(int(entries.Load()), ""), "Cache-Control", "max-age=86400")
		}}
		db := sharedStore(t)
		one, two := node(t, db, origin, cache.Settings{}), node(t, db, origin, cache.Settings{})
		ping := func(nodes ...*gateway) {
			t.Helper()
			for _, n := range nodes {
				if _, err := n.Ping(t.Context(), []string{feedURL}); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(time.Second) // until the other node knows
		}
		expect := func(when, want string, most int64) {
			t.Helper()
			wantBody(t, one.get(feedURL), 200, want)
			wantBody(t, two.get(feedURL), 200, want)
			if n := polls.Load(); n != most {
				t.Errorf("%s: %d polls, want %d", when, n, most)
			}
		}
		two.get(feedURL)
		expect("at first", "Entry 1", 1)

		time.Sleep(2 * time.Hour)
		entries.Store(2)
		expect("before the ping", "Entry 1", 1)
		ping(one)
		expect("after a ping at the first node", "Entry 2", 2)

		entries.Store(3)
		for range 40 { // minutes, of an hour
			ping(one, two)
			time.Sleep(time.Minute)
			expect("too early", "Entry 2", 2)
		}
		time.Sleep(30 * time.Minute)
		expect("when the interval has passed", "Entry 3", 3)
		time.Sleep(2 * time.Hour)
		expect("later", "Entry 3", 3)
	})
}

// lateHost is an origin one of whose hosts has no slot at once.
type lateHost struct {
	logged
	host string
	wait time.Duration
}

func (o *lateHost) Acquire(url feedurl.URL) policy.Slot {
	if url.Name() == o.host && o.wait > 0 {
		o.wait -= time.Second
		return nil
	}
	return o.logged.Acquire(url)
}

// A refresh of a feed that has moved, and whose new address has ended, makes one poll: that of the new
// address, which comes back.
func TestRefreshOfAMovedFeedMakesOnePoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone, moved := false, moving(301)
		g := newWebGateway(t, func(url string) response {
			if gone && url == movedURL {
				return origintest.Status(410)
			}
			return moved(url)
		})
		origin := &lateHost{logged: g.polled.(logged), host: "new.test"}
		g.polled = origin
		g.open()
		for day := range 12 {
			g.change(func() { gone = day > 9 })
			g.feed(feedURL)
			time.Sleep(25 * time.Hour)
		}
		g.change(func() { gone = false })
		origin.wait = time.Second // in which another poll would come first
		before := len(g.requested(movedURL))
		must(g.Refresh(t.Context(), feedURL))
		time.Sleep(time.Minute)
		if n := len(g.requested(movedURL)) - before; n != 1 {
			t.Errorf("%d requests to the new address, want one", n)
		}
	})
}
