// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/feedpollard/pollard/cache/feedstate"
	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/internal/origintest"
	"github.com/feedpollard/pollard/policy"
	"github.com/feedpollard/pollard/upstream"
)

// The hosts of a domain are one: the 429 of one pauses all, until another one answers well.
func TestSiblingsPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newWebGateway(t, func(url string) response {
			if strings.HasPrefix(url, "https://c.") {
				return given(rss(2, ""))
			}
			return origintest.Status(429, "Retry-After", "36000")
		}).open()
		g.get("https://a.example.com/")
		g.restart()
		if w := g.get("https://c.example.com/"); w.Code != 503 {
			t.Errorf("got %d while the domain is paused", w.Code)
		}
		time.Sleep(time.Hour + time.Minute)
		wantBody(t, g.get("https://c.example.com/"), 200, "Entry 2")
		g.get("https://b.example.com/")
		time.Sleep(time.Hour + time.Minute) // as no other refusal came in a row
		wantBody(t, g.get("https://c.example.com/2"), 200, "Entry 2")
	})
}

// A 429 without a time pauses the host for an hour, and each further one in a row twice as long, up to a day. 429s that were in
// flight together count once, and after the pause the host is polled with its spacing again, not all at once.
func TestHostAfterAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const spacing = 2 * time.Second
		g := newWebGateway(t, func(string) response { return origintest.Status(429).After(10 * time.Second) })
		g.client.Apply(upstream.Settings{Hosts: []upstream.HostRule{{Pattern: "origin.test", Spacing: spacing, Concurrency: 5}}})
		g.open()
		for round := range 7 {
			want := min(time.Hour<<round, 24*time.Hour)
			var crowd sync.WaitGroup
			for i := range 5 {
				crowd.Go(func() { g.get(fmt.Sprintf("https://origin.test/%d/%d", round, i)) })
			}
			crowd.Wait()
			if p := must(g.store.Pauses(t.Context())); len(p) != 1 || p[0].For > want || p[0].For < want-30*time.Second {
				t.Errorf("pauses after round %d: %+v, want one of %v", round, p, want)
			}
			time.Sleep(want)
		}
		g.wantSpacing(35, spacing)
	})
}

// wantSpacing expects so many requests to the web, each some time after the one before.
func (g *gateway) wantSpacing(requests int, spacing time.Duration) {
	g.t.Helper()
	all := g.web.Requests()
	for i := 1; i < len(all); i++ {
		if gap := all[i].Time.Sub(all[i-1].Time); gap < spacing {
			g.t.Errorf("request %d came %v after the one before", i, gap)
		}
	}
	if len(all) != requests {
		g.t.Errorf("%d requests, want %d", len(all), requests)
	}
}

// A host has one spacing, whatever its feeds' ports and credentials are, and however slowly
// they are asked for.
func TestSpacingOfAHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newWebGateway(t, func(url string) response {
			if strings.HasSuffix(url, "/moved") {
				return redirect(302, "https://origin.test/there")
			}
			return given(rss(2, ""))
		})
		g.client.Apply(upstream.Settings{Hosts: []upstream.HostRule{{Pattern: "origin.test", Spacing: 20 * time.Second, Concurrency: 3}}})
		g.open()
		var crowd sync.WaitGroup
		for _, url := range []string{feedURL, "https://alice:secret@origin.test/feed.xml", "https://origin.test:8443/feed.xml", "https://origin.test/moved"} {
			crowd.Go(func() { g.get(url) })
		}
		crowd.Wait()
		time.Sleep(3 * time.Minute)
		g.wantSpacing(5, 20*time.Second)
	})
}

// Feeds that wait for their host take no place among the polls in flight, and say that they wait.
func TestWaitingPollsLeaveRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newWebGateway(t, func(string) response { return given(rss(2, "")) })
		g.settings.Polls = 2
		g.client.Apply(upstream.Settings{Hosts: []upstream.HostRule{{Pattern: "slow.test", Spacing: time.Minute}}})
		g.open()
		for i := range 20 {
			go g.get(fmt.Sprintf("https://slow.test/%d", i))
		}
		time.Sleep(time.Second)
		began := time.Now()
		wantBody(t, g.get(feedURL), 200, "Entry 2")
		if took := time.Since(began); took > time.Second {
			t.Errorf("a feed of another host was served after %v", took)
		}
		waiting := 0
		for i := range 20 {
			f := must(g.Status(t.Context(), fmt.Sprintf("https://slow.test/%d", i)))
			if f.Version == 0 {
				waiting++
				if f.Winner != policy.HintHostSlot {
					t.Errorf("%s waits for %q", f.URL, f.Winner)
				}
			}
		}
		if waiting < 18 {
			t.Errorf("%d feeds wait", waiting)
		}
		time.Sleep(10 * time.Minute)
	})
}

// A reader who asks for a feed whose host is free in more than a few minutes learns why, and when.
func TestLongSpacing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const other = "https://origin.test/other"
		g := newGateway(t, func(policy.Ask) policy.Answer { return ok(rss(2, "")) })
		g.origin.spacing = 20 * time.Minute
		g.open()
		g.get(feedURL)
		for left := 20 * time.Minute; left > 0; left -= 5 * time.Minute {
			w, f := g.get(other), must(g.Feed(t.Context(), other))
			if u := f.Unavailable(); w.Code != 503 || u == nil || !u.Queued || (u.RetryAfter-left).Abs() > time.Second {
				t.Fatalf("%v before the host is free: %d, %+v", left, w.Code, u)
			}
			time.Sleep(5 * time.Minute)
		}
		wantBody(t, g.get(other), 200, "Entry 2")
	})
}

// Retry-After counts whatever other hint wins, with a 200 as well,
// after its version is lost and after a restart.
func TestNotBeforeOutlivesEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var hours strings.Builder
		for h := range 23 {
			fmt.Fprintf(&hours, "<hour>%d</hour>", h)
		}
		doc := strings.Replace(rss(3, ""), "<item>", "<skipHours>"+hours.String()+"</skipHours><item>", 1)
		g := newWebGateway(t, func(string) response { return given(doc, "Retry-After", "259200") }).open()
		began := time.Now()
		g.get(feedURL)
		if f, err := g.Status(t.Context(), feedURL); err != nil || f.Winner != "skip-hours" {
			t.Fatalf("it waits for %s, %v", f.Winner, err)
		}
		for name, lose := range map[string]func() error{
			"body":   func() error { _, err := g.store.Sweep(t.Context(), store.SweepQuery{Disk: 1}); return err },
			"memory": func() error { g.restart(); return nil },
		} {
			if err := lose(); err != nil {
				t.Fatal(err)
			}
			for range 4 {
				time.Sleep(4 * time.Hour)
				g.get(feedURL)
			}
			if _, err := g.Refresh(t.Context(), feedURL); err == nil || g.origin.polls() != 1 {
				t.Errorf("%d polls %v after Retry-After: 3 days, without its %s", g.origin.polls(), time.Since(began), name)
			}
		}
	})
}

// Redirects of strangers to a host take each second of its slots at most while other
// feeds of it are due, and keep its spacing.
func TestRedirectsToABusyHost(t *testing.T) {
	slow(t)
	synctest.Test(t, func(t *testing.T) {
		const spacing, interval = 2 * time.Second, 2 * time.Minute
		var busy []time.Time
		polled, longest, strangers := map[string]time.Time{}, time.Duration(0), 0
		var mu sync.Mutex // guards them
		g := newWebGateway(t, func(url string) response {
			mu.Lock()
			defer mu.Unlock()
			stranger, isStranger := strings.CutPrefix(url, "https://stranger")
			if isStranger {
				return redirect(302, "https://busy.test/?s="+stranger)
			}
			now := time.Now()
			busy = append(busy, now)
			if strings.Contains(url, "?s=") {
				strangers++
			} else if last := polled[url]; !last.IsZero() {
				longest = max(longest, now.Sub(last))
			}
			polled[url] = now
			return given(rss(2, ""), "Cache-Control", "max-age=120")
		})
		rules := policy.DefaultRules()
		rules.MinInterval, rules.Jitter = interval, 0
		g.settings.Rules = func(feedstate.Key) policy.Rules { return rules }
		g.settings.Prefetch, g.settings.Feeds = true, []string{"https://busy.test/1", "https://busy.test/2", "https://busy.test/3"}
		g.open()
		for n := range 24 {
			for i := range 20 {
				go g.get(fmt.Sprintf("https://stranger%d.test/%d", i, n))
			}
			time.Sleep(10 * time.Second)
		}
		mu.Lock()
		defer mu.Unlock()
		for _, url := range g.settings.Feeds {
			longest = max(longest, time.Since(polled[url]))
		}
		if longest > interval+10*spacing || strangers < 50 {
			t.Errorf("a feed of the host was not polled for %v, and %d redirects were followed", longest, strangers)
		}
		for i := 1; i < len(busy); i++ {
			if gap := busy[i].Sub(busy[i-1]); gap < spacing {
				t.Errorf("request %d came %v after the one before", i, gap)
			}
		}
	})
}

// What is shown of a feed counts the pause that another feed of its site has caused, not only once the feed is due.
func TestPauseOfASiteIsShownBeforeAFeedIsDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refuses := false
		g := newWebGateway(t, func(url string) response {
			if refuses {
				return origintest.Status(429)
			}
			return given(rss(2, ""), "ETag", `"v"`, "Cache-Control", "max-age=3600")
		}).open()
		g.get("https://example.com/other")
		time.Sleep(50 * time.Minute)
		g.get("https://example.com/feed") // due in an hour at the earliest
		time.Sleep(50 * time.Minute)
		refuses = true
		if _, err := g.Refresh(t.Context(), "https://example.com/other"); err != nil {
			t.Fatal(err)
		}
		pause := must(g.store.Pauses(t.Context()))[0]
		f := must(g.Status(t.Context(), "https://example.com/feed"))
		if until := time.Now().Add(pause.For); f.Winner != policy.HintHostCooldown || f.NextPoll.Before(until.Add(-time.Second)) {
			t.Errorf("the next poll is said to be at %v because of %s; the site's pause ends at %v", f.NextPoll, f.Winner, until)
		}
	})
}
