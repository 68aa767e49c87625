// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/feedpollard/pollard/cache"
	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/internal/origintest"
	"github.com/feedpollard/pollard/policy"
	"github.com/feedpollard/pollard/upstream"
)

// A reader who has seen a poll under way that ends in this moment queues no other one, for which readers would wait.
func TestPollThatHasJustEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGateway(t, func(policy.Ask) policy.Answer { return ok(rss(2, ""), "Cache-Control", "max-age=3600") }).open()
		g.get(feedURL)
		f := must(g.Feed(t.Context(), feedURL))
		if cache.PollIfDue(f) || g.Waiting() != 0 {
			t.Error("a poll waits for its turn although the feed is not due")
		}
		time.Sleep(2 * time.Hour)
		if !cache.PollIfDue(f) {
			t.Error("no poll waits for its turn although the feed is due")
		}
	})
}

// A second push while the poll of the first is under way: five minutes between the two polls.
func TestPushDuringThePollOfAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 1
		var slow time.Duration
		h := withHub(t, 1, func(policy.Ask) policy.Answer {
			time.Sleep(slow)
			return ok(atom(n, epoch), "Cache-Control", "max-age=86400")
		})
		h.get()
		time.Sleep(2 * time.Hour)
		before := h.origin.polls()
		r := h.Last()
		n, slow = 2, 10*time.Second
		h.Push(r, "push")
		time.Sleep(5 * time.Second)
		h.Push(r, "push")
		time.Sleep(20 * time.Minute)
		at := h.origin.times()[before:]
		for i := 1; i < len(at); i++ {
			if d := at[i].Sub(at[i-1]); d < 5*time.Minute {
				t.Errorf("poll %d comes %v after the one before", i, d)
			}
		}
	})
}

// A reader program asks for 200 feeds of one site each hour, in the same order, without prefetch.
func TestFeedsThatWaitLongKeepTheirTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const feeds = 200
		g := newGateway(t, func(policy.Ask) policy.Answer { return ok(rss(2, ""), "ETag", `"v"`, "Cache-Control", "max-age=3000") })
		g.often(50 * time.Minute)
		g.origin.spacing = 2 * time.Second
		g.by = store.OwnerOf(store.KindNamed, "lan")
		g.open()
		for range 8 {
			for i := range feeds {
				go g.get(fmt.Sprintf("https://origin.test/%d", i))
				time.Sleep(10 * time.Millisecond)
			}
			time.Sleep(time.Hour)
		}
		synctest.Wait()
		never, once := 0, 0
		times := map[string]int{}
		for _, a := range g.origin.asks {
			times[a.URL.String()]++
		}
		for i := range feeds {
			switch times[fmt.Sprintf("https://origin.test/%d", i)] {
			case 0:
				never++
			case 1:
				once++
			}
		}
		if never > 0 || once > 0 {
			t.Errorf("%d of %d feeds were never polled in 8 hours; %d once; %d polls", never, feeds, once, g.origin.polls())
		}
	})
}

// By hand, at a site that is busy for longer than the person waits.
func TestRefreshOfABusySite(t *testing.T) {
	for _, spacing := range []time.Duration{2 * time.Minute, 10 * time.Minute} {
		bubble(t, spacing.String(), func(t *testing.T) {
			g := newGateway(t, func(policy.Ask) policy.Answer { return ok(rss(2, ""), "Cache-Control", "max-age=86400") })
			g.origin.spacing = spacing
			g.open()
			g.get(feedURL)
			time.Sleep(2 * time.Hour)
			g.get("https://origin.test/other")
			before := g.origin.polls()
			began := time.Now()
			f, err := g.Refresh(t.Context(), feedURL)
			took := time.Since(began)
			polled := g.origin.polls() - before
			if err == nil && polled == 0 {
				t.Errorf("Refresh says after %v that it was done; the last poll it shows is %v ago", took, time.Since(f.LastPoll).Round(time.Minute))
			}
			time.Sleep(2 * time.Hour)
			if g.origin.polls() == before {
				t.Errorf("it is never polled")
			}
		})
	}
}

// Two hosts of a site, one of which hangs: readers of the other one get what is new.
func TestHostThatHangsLeavesItsSite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newWebGateway(t, nil)
		n, hang := 2, false
		g.web.Answer = func(r *http.Request) response {
			if hang && strings.Contains(r.URL.Host, "slow.") {
				time.Sleep(25 * time.Second)
			}
			return given(rss(n, ""))
		}
		g.open()
		urls := []string{"https://slow.origin.test/1", "https://slow.origin.test/2", "https://fast.origin.test/feed"}
		for _, url := range urls {
			g.get(url)
		}
		time.Sleep(30 * time.Hour)
		n, hang = 3, true
		go g.get(urls[0])
		time.Sleep(3 * time.Second)
		go g.get(urls[1])
		time.Sleep(time.Second)
		began := time.Now()
		w := g.get(urls[2])
		if w.Code != 200 || !strings.Contains(w.Body.String(), "Entry 3") {
			t.Errorf("the old version after %v", time.Since(began))
		}
		time.Sleep(2 * time.Minute)
	})
}

// A patient poke that waits for the end of a backoff, and then one by hand.
func TestPokeByHandAfterAPatientOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		good := func(policy.Ask) policy.Answer { return ok(rss(2, ""), "Cache-Control", "max-age=3600") }
		g := newGateway(t, good)
		g.settings.Prefetch = true
		g.settings.Feeds = []string{feedURL}
		g.open()
		g.get(feedURL)
		g.origin.answers(func(policy.Ask) policy.Answer { return failed(404, policy.FailureNotFound) })
		time.Sleep(30 * time.Hour) // it fails, and backs off
		// just after a failed poll
		n := g.origin.polls()
		for g.origin.polls() == n {
			time.Sleep(time.Minute)
		}
		id := store.IDOf(feedURL)
		show := func() time.Duration { return must(g.store.Lookup(t.Context(), []store.ID{id}))[0].In }
		time.Sleep(5 * time.Minute)
		if err := g.store.Touch(t.Context(), map[store.ID]store.Asked{id: {Ago: -1, Poke: &store.Poke{In: 0, Patient: true}}}); err != nil {
			t.Fatal(err)
		}
		g.origin.answers(good)
		before := g.origin.polls()
		_, err := g.Refresh(t.Context(), feedURL)
		var early *cache.TooEarly
		if !errors.As(err, &early) {
			t.Fatal(err)
		}
		time.Sleep(time.Until(early.Until) + 10*time.Minute)
		if g.origin.polls() == before {
			t.Errorf("said to be polled at %v, is not polled 10 minutes later; next in %v", early.Until, show())
		}
	})
}

// A feed that is forgotten while its poll waits, and asked for again: its place among the polls that wait is given back.
func TestForgottenWhileItWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGateway(t, func(policy.Ask) policy.Answer { return ok(rss(2, ""), "Cache-Control", "max-age=3600") })
		g.origin.spacing = 4 * time.Minute
		g.by = store.OwnerOf(store.KindNamed, "lan")
		g.open()
		g.get(feedURL)
		time.Sleep(2 * time.Hour)
		before := g.Waiting()
		g.get("https://origin.test/other")                                       // the site is busy for 4 minutes
		g.get(feedURL)                                                           // its poll waits
		if err := g.store.Forget(t.Context(), store.IDOf(feedURL)); err != nil { // another node, or the sweep
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		g.get(feedURL)
		time.Sleep(3 * time.Hour)
		synctest.Wait()
		if n := g.Waiting(); n != before {
			t.Errorf("%d polls count as waiting three hours later, %d before", n, before)
		}
	})
}

// A new feed that the full disk does not store, at a site whose feeds without a version have a pause: claims that are
// refused come a few times, not without end.
func TestUnstoredFeedInAPauseOfNewOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGateway(t, func(policy.Ask) policy.Answer { return ok(rss(2, ""), "Cache-Control", "max-age=3600") })
		free := uint64(1 << 20)
		g.dir, g.space = t.TempDir(), func(string) (uint64, uint64) { return free, 40 << 20 }
		g.by = store.OwnerOf(store.KindNamed, "household")
		g.open()
		g.get(feedURL)
		time.Sleep(2 * time.Hour)
		if err := g.store.Restore(t.Context(), []store.Saved{{Pause: &policy.Pause{Site: "origin.test", New: true, For: time.Hour, Why: policy.HintHostCooldown}}}); err != nil {
			t.Fatal(err)
		}
		var claims atomic.Int64
		g.store.hook(func(ctx context.Context, call string) error {
			if call == "Claim" && claims.Add(1) >= 200 { // or this goes on without end, and no time passes
				<-ctx.Done()
			}
			return nil
		}, nil)
		g.get(feedURL)
		time.Sleep(30 * time.Second)
		if n := claims.Load(); n > 5 {
			t.Errorf("%d claims in a minute, all refused; %d polls", n, g.origin.polls())
		}
	})
}

// A reader of a site waits while a redirect waits for it, which then hangs.
func TestPollAfterARedirectThatHangs(t *testing.T) {
	for i := range 12 {
		bubble(t, fmt.Sprint(i), func(t *testing.T) {
			g := newWebGateway(t, nil)
			g.web.Answer = func(r *http.Request) response {
				switch {
				case strings.Contains(r.URL.Path, "from"):
					return redirect(302, "https://b.test/target")
				case strings.Contains(r.URL.Path, "target"):
					time.Sleep(28 * time.Second)
				}
				return given(rss(2, ""))
			}
			g.client.Apply(upstream.Settings{Hosts: []upstream.HostRule{{Pattern: "b.test", Concurrency: 2, Spacing: 2 * time.Second}}})
			g.open()
			go g.get("https://b.test/1") // until 2 s
			time.Sleep(time.Second)
			go g.get("https://a.test/from")
			time.Sleep(500 * time.Millisecond)
			began := time.Now()
			w := g.get("https://b.test/2")
			if took := time.Since(began); took > 5*time.Second {
				t.Errorf("%d after %v %s", w.Code, took, w.Body)
			}
			time.Sleep(2 * time.Minute)
		})
	}
}

// Of new feeds of one owner, the one that a reader asked for most recently is polled first, also if it was asked for before.
func TestNewFeedThatIsAskedForAgainComesForward(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGateway(t, func(policy.Ask) policy.Answer { return ok(rss(2, ""), "Cache-Control", "max-age=86400") })
		g.origin.spacing = 2 * time.Second
		g.by = store.OwnerOf(store.KindNamed, "household")
		g.open()
		go g.get("https://origin.test/0")
		time.Sleep(time.Second)
		go g.get(feedURL)
		time.Sleep(time.Millisecond)
		for i := range 60 {
			go g.get(fmt.Sprintf("https://origin.test/dead/%d", i))
		}
		time.Sleep(20 * time.Second)
		began := time.Now()
		w := g.get(feedURL)
		if w.Code != 200 {
			t.Errorf("%d after %v: %s", w.Code, time.Since(began), w.Body)
		}
		time.Sleep(10 * time.Minute)
	})
}

// A feed that the operator lists by a reload, while the store cannot be written for a moment.
func TestConfiguredWhileTheStoreIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGateway(t, func(policy.Ask) policy.Answer { return ok(rss(2, ""), "Cache-Control", "max-age=3600") })
		g.settings.Prefetch = true
		g.settings.IdleAfter = 24 * time.Hour
		g.open()
		g.get(feedURL)
		time.Sleep(48 * time.Hour)
		g.settings.Feeds = []string{feedURL}
		g.store.refuse(errors.New("locked"), "Restore")
		before, began := g.origin.polls(), time.Now()
		g.Apply(g.settings)
		time.Sleep(5 * time.Second)
		g.store.refuse(nil)
		for g.origin.polls() == before && time.Since(began) < time.Hour {
			time.Sleep(time.Second)
		}
		if d := time.Since(began); d > 2*time.Minute {
			t.Errorf("polled %v after the reload", d)
		}
	})
}

// Addresses that strangers made up, at a site that asks for a pause while they wait for their first poll: their readers
// have gone, no poke asks for them, and they are not prefetched.
func TestInventedFeedsAreNotPolledAfterAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGateway(t, func(policy.Ask) policy.Answer {
			a := failed(429, policy.FailureRateLimited)
			a.Pauses = []policy.Pause{{Site: "origin.test", For: 20 * time.Minute, Why: policy.HintHostCooldown}}
			return a
		})
		g.origin.spacing = 2 * time.Second
		g.by = store.Any
		g.open()
		for i := range 200 {
			go g.get(fmt.Sprintf("https://origin.test/invented/%d", i))
		}
		time.Sleep(30 * time.Second)
		g.origin.answers(func(policy.Ask) policy.Answer { return failed(404, policy.FailureNotFound) })
		before := g.origin.polls()
		time.Sleep(3 * time.Hour)
		if n := g.origin.polls() - before; n > 0 {
			t.Errorf("%d polls of %d without a reader, without prefetch", n, before)
		}
	})
}

// A push for a feed that is overdue, as no reader asked for it, within its skipHours.
func TestPokeInSkipHours(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var skip strings.Builder
		for hour := range 24 {
			if hour != 10 {
				fmt.Fprintf(&skip, "<hour>%d</hour>", hour)
			}
		}
		doc := strings.Replace(rss(2, ""), "<item>", "<skipHours>"+skip.String()+"</skipHours><item>", 1)
		g := newGateway(t, func(policy.Ask) policy.Answer { return ok(doc, "Cache-Control", "max-age=3600") }).open()
		g.get(feedURL)             // at 10:00
		time.Sleep(26 * time.Hour) // it is 12:00, and it was due at 10:00
		before := g.origin.polls()
		if err := g.store.Touch(t.Context(), map[store.ID]store.Asked{store.IDOf(feedURL): {Ago: -1, Poke: &store.Poke{Patient: true}}}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		if g.origin.polls() == before {
			t.Errorf("not polled an hour after the poke")
		}
	})
}

// Forgetting a feed whose poll only waits for its turn.
func TestForgetWhileItWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGateway(t, func(policy.Ask) policy.Answer { return ok(rss(2, ""), "Cache-Control", "max-age=3600") })
		g.origin.spacing = 4 * time.Minute
		g.open()
		g.get(feedURL)
		time.Sleep(2 * time.Hour)
		g.get("https://origin.test/other")
		g.get(feedURL) // its poll waits for 4 minutes
		polls := g.origin.polls()
		if err := g.Forget(t.Context(), feedURL); err != nil || g.knows(feedURL) {
			t.Errorf("after %d polls: %v", g.origin.polls()-polls, err)
		}
		time.Sleep(time.Hour)
	})
}

// A feed that is poked to be polled in three seconds is polled then, although another one that is poked may not be polled yet.
func TestPokeBesideOneThatHasToWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refuses := false
		g := newWebGateway(t, func(url string) response {
			if refuses {
				return origintest.Status(429)
			}
			return given(rss(2, ""), "Cache-Control", "max-age=36000")
		}).open()
		g.get(feedURL)
		g.get("https://refuses.test/feed")
		time.Sleep(2 * time.Hour)
		refuses = true
		g.get("https://refuses.test/other") // which pauses its site
		refuses = false
		for url, in := range map[string]time.Duration{"https://refuses.test/feed": 0, feedURL: 3 * time.Second} {
			if err := g.store.Touch(t.Context(), map[store.ID]store.Asked{store.IDOf(url): {Ago: -1, Poke: &store.Poke{In: in}}}); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(5 * time.Second)
		if n := len(g.requested(feedURL)); n != 2 {
			t.Errorf("%d polls five seconds after the poke, want 2", n)
		}
	})
}
