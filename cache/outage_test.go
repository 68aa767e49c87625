// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/feedpollard/pollard/cache"
	"github.com/feedpollard/pollard/policy"
)

// While the store is away readers get what is in memory, and wait for nothing; when it
// is back that is noticed within seconds, without a burst.
func TestStoreAwayAndBack(t *testing.T) {
	for _, prefetch := range []bool{false, true} {
		bubble(t, fmt.Sprintf("prefetch %v", prefetch), func(t *testing.T) {
			const feeds, every = 60, 5 * time.Second
			g := newGateway(t, func(policy.Ask) policy.Answer { return ok(rss(2, ""), "ETag", `"v"`, "Cache-Control", "max-age=3600") })
			g.settings.Prefetch = prefetch
			g.open()
			away := new(outage)

			// Each feed has a reader who comes back every five seconds.
			urls := make([]string, feeds)
			for i := range urls {
				urls[i] = fmt.Sprintf("https://host%d.test/feed", i)
			}
			round := func() {
				for _, url := range urls {
					began := time.Now()
					if w := g.get(url, "Accept-Encoding", "gzip"); w.Code != http.StatusOK {
						t.Fatalf("got %d %s", w.Code, w.Body)
					}
					if waited := time.Since(began); waited > 3*time.Second || waited > 0 && away.asked() > 3 {
						t.Errorf("a reader waited %v while the store was away", waited)
					}
					time.Sleep(every / feeds)
				}
			}
			round()
			g.store.setAway(true)
			time.Sleep(70 * time.Minute) // all are due
			away = g.store.setAway(true)
			before := g.origin.polls()
			const length = 5 * time.Minute
			for began := time.Now(); time.Since(began) < length; {
				round()
			}
			if n := g.origin.polls() - before; n != 0 {
				t.Errorf("%d polls while the store was away", n)
			}
			if most := int(length/callTimeout) + 3; away.asked() > most || away.asked() < int(length/(20*time.Second)) {
				t.Errorf("the store was asked for polls %d times in %v, want at most %d, and now and then", away.asked(), length, most)
			}
			if s := g.Summary(t.Context()); !strings.Contains(s.Outage, "away") {
				t.Errorf("the summary says %q of the outage", s.Outage)
			}
			g.store.setAway(false)
			away = new(outage)
			back := time.Now()
			for time.Since(back) < time.Minute {
				round()
			}
			times := g.origin.times()[before:]
			if len(times) != feeds {
				t.Fatalf("%d polls in the minute after the store was back, want one of each of the %d feeds", len(times), feeds)
			}
			// The claim that was under way fails, and the next one comes within 12.5 seconds.
			if first := times[0].Sub(back); first > callTimeout+15*time.Second {
				t.Errorf("the first poll came %v after the store was back", first)
			}
			if last := times[len(times)-1].Sub(back); last > 50*time.Second {
				t.Errorf("the last poll came %v after the store was back", last)
			}
			const window = time.Second
			most, from := 0, 0
			for i, at := range times {
				for at.Sub(times[from]) >= window {
					from++
				}
				most = max(most, i-from+1)
			}
			if most > 24 { // 16 a second, and as many as may start at once
				t.Errorf("%d of %d polls came within a second", most, feeds)
			}
			if s := g.Summary(t.Context()); s.Outage != "" {
				t.Errorf("the summary still says %q", s.Outage)
			}
		})
	}
}

// A load balancer that sends no readers here while the store is away learns that it is back.
func TestCheckStoreWithoutReaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGateway(t, func(policy.Ask) policy.Answer { return ok(rss(2, ""), "ETag", `"v"`, "Cache-Control", "max-age=3600") }).open()
		g.get(feedURL)
		check := func(what, want string) {
			t.Helper()
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			if err := g.CheckStore(ctx); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q", what, err, want)
			}
		}
		check("at first", "")
		time.Sleep(70 * time.Minute)
		g.store.setAway(true)
		check("before a poll has found out", "away")
		g.get(feedURL)
		check("after a poll has found out", "away")
		time.Sleep(10 * time.Minute)
		check("ten minutes later", "away")
		g.store.setAway(false)
		time.Sleep(2 * time.Minute)
		check("two minutes after it is back", "")

		time.Sleep(70 * time.Minute) // the store knows of all readers
		g.store.setAway(true)
		if _, err := g.Refresh(t.Context(), feedURL); err == nil {
			t.Error("a poll by hand without the store")
		}
		check("after a poll by hand", "away")
		g.store.setAway(false)
		time.Sleep(2 * time.Minute)
		check("without a reader meanwhile", "")
	})
}

// Whatever coding a version is in memory in, it is served while the store is away.
func TestOtherCodingsWhileTheStoreIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGateway(t, func(policy.Ask) policy.Answer { return ok(rss(20, ""), "ETag", `"v"`, "Cache-Control", "max-age=3600") }).open()
		g.get(feedURL, "Accept-Encoding", "gzip")
		synctest.Wait()
		g.store.setAway(true)
		w := g.get(feedURL)
		if coding := w.Header().Get("Content-Encoding"); coding != "" {
			t.Errorf("Content-Encoding: %s", coding)
		}
		wantBody(t, w, http.StatusOK, "Entry 20")
		w = g.get(feedURL, "Accept-Encoding", "br, gzip;q=0.5")
		if w.Code != http.StatusOK {
			t.Errorf("got %d %s", w.Code, w.Body)
		}
		g.store.setAway(false)
	})
}

// A version that another node has committed is in memory before readers ask for it, and is served while
// the store is away.
func TestVersionOfAnotherNodeWhileTheStoreIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNodes(t, 24*time.Hour)
		n.one.get(feedURL)
		wantBody(t, n.other.get(feedURL), http.StatusOK, "Entry 1")
		n.db.setAway(true) // it is there as identity alone
		wantBody(t, n.other.get(feedURL, "Accept-Encoding", "gzip"), http.StatusOK, "Entry 1")
		n.db.setAway(false)
		n.entries.Store(2)
		time.Sleep(30 * time.Hour)
		n.one.get(feedURL)
		time.Sleep(10 * time.Second)
		n.db.setAway(true)
		wantBody(t, n.other.get(feedURL), http.StatusOK, "Entry 2")
	})
}

// A store that goes away while a poll is under way, for some seconds, costs no answer.
func TestAnswerThatComesWhileTheStoreIsAway(t *testing.T) {
	for away, kept := range map[time.Duration]bool{5 * time.Second: true, 5 * time.Minute: false} {
		synctest.Test(t, func(t *testing.T) {
			entries := 1
			var g *gateway
			g = newGateway(t, func(policy.Ask) policy.Answer {
				if g.origin.polls() == 2 {
					g.store.setAway(true)
					time.AfterFunc(away, func() { g.store.setAway(false) })
				}
				return ok(rss(entries, ""), "ETag", fmt.Sprintf(`"%d"`, entries))
			})
			g.open()
			wantBody(t, g.get(feedURL), 200, "Entry 1")
			time.Sleep(2 * time.Hour)
			entries++
			wantBody(t, g.get(feedURL), 200, "Entry 1") // readers do not wait for it
			time.Sleep(10 * time.Minute)
			want := map[bool]string{true: "Entry 2", false: "Entry 1"}[kept]
			wantBody(t, g.get(feedURL), 200, want)
			if polls := g.origin.polls(); polls != 2 {
				t.Errorf("%d polls", polls)
			}
			g.restart()
			wantBody(t, g.get(feedURL), 200, want)
			time.Sleep(2 * time.Hour)
			wantBody(t, g.get(feedURL), 200, "Entry 2")
			if v, want := g.origin.last().Validators.ETag, map[bool]string{true: `"2"`, false: `"1"`}[kept]; v != want {
				t.Errorf("If-None-Match %s, want that of the stored body", v)
			}
		})
	}
}

// A version that its site has withdrawn is not served any more, although the store is away.
func TestVersionWithdrawnWhileTheStoreIsAway(t *testing.T) {
	for _, away := range []time.Duration{5 * time.Second, 5 * time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			const key = "shield/feed.xml"
			g := newGateway(t, func(policy.Ask) policy.Answer { return ok(rss(2, "")) })
			g.settings.Site = func(string) cache.Origin { return g.origin }
			g.open()
			wantBody(t, g.get(key), 200, "Entry 2")
			g.origin.answers(func(policy.Ask) policy.Answer {
				if g.origin.polls() == 2 {
					g.store.setAway(true)
					time.AfterFunc(away, func() { g.store.setAway(false) })
				}
				return failed(200, policy.FailureNotShared)
			})
			time.Sleep(25 * time.Hour)
			g.get(key)
			for range 2 * 60 {
				time.Sleep(time.Minute)
				if w := g.get(key); w.Code == 200 {
					t.Fatalf("it is served %v after the answer", time.Since(g.origin.times()[1]))
				}
			}
		})
	}
}
