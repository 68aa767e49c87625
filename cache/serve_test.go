// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dunglas/httpsfv"

	"github.com/feedpollard/pollard/cache"
	"github.com/feedpollard/pollard/internal/feedurl"
	"github.com/feedpollard/pollard/policy"
)

// Age and max-age come from one clock, and Cache-Status by its grammar (RFC 9211,
// RFC 8941), in whatever state a feed is.
func TestFreshnessForReaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		delay := time.Duration(0)
		a := ok(rss(2, ""), "ETag", `"v"`)
		g := newGateway(t, func(policy.Ask) policy.Answer { time.Sleep(delay); return a }).open()
		check := func(state, control string, want ...string) {
			t.Helper()
			h := g.get(feedURL).Header()
			if h["Age"] != nil || h.Get("Cache-Control") != control+", stale-while-revalidate=60, stale-if-error=86400" {
				t.Errorf("%s: Age %s, Cache-Control %s, want none and %s", state, h.Get("Age"), h.Get("Cache-Control"), control)
			}
			list, err := httpsfv.UnmarshalList(h["Cache-Status"])
			if err != nil || len(list) != 1 {
				t.Fatalf("%s: Cache-Status %q: %v", state, h["Cache-Status"], err)
			}
			item := list[0].(httpsfv.Item)
			var got []string
			for _, name := range item.Params.Names() {
				v, _ := item.Params.Get(name)
				got = append(got, fmt.Sprintf("%s=%v", name, v))
			}
			if item.Value != httpsfv.Token("Pollard") || strings.Join(got, " ") != strings.Join(want, " ") {
				t.Errorf("%s: %v %q, want %q", state, item.Value, got, want)
			}
		}
		check("cold", "max-age=3600", "fwd=miss", "fwd-status=200", "stored=true", "ttl=3600", "detail=default")
		time.Sleep(10*time.Minute + 500*time.Millisecond)
		check("fresh", "max-age=3000", "hit=true", "ttl=2999", "detail=default")
		time.Sleep(time.Hour)
		a = unchanged()
		check("due", "max-age=3600", "fwd=stale", "fwd-status=304", "ttl=3600", "detail=default")
		time.Sleep(2 * time.Hour)
		delay = 10 * time.Second
		a = failed(500, policy.FailureStatus)
		check("slow", "max-age=60", "hit=true", "ttl=-3603", "detail=default")
		time.Sleep(10 * time.Second)
		check("failing", "max-age=3597", "hit=true", "ttl=3597", "detail=back-off")
		a, delay = failed(410, policy.FailureGone), 0
		time.Sleep(3 * time.Hour)
		check("gone", "max-age=86400", "fwd=stale", "fwd-status=410", "detail=gone")
	})
}

// Readers are given the time at which a version came, and not what its origin says, on each node and after
// a restart. The origin's own date says nothing.
func TestDatesOfAVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const first, second = "Mon, 05 Jan 1998 10:00:00 GMT", "Tue, 06 Jan 1998 10:00:00 GMT"
		n, origin := 1, first
		g := newGateway(t, func(policy.Ask) policy.Answer { return ok(rss(n, ""), "Last-Modified", origin) }).open()
		polled := time.Now()
		if got := g.get(feedURL).Header().Get("Last-Modified"); got != polled.Add(time.Second).UTC().Format(http.TimeFormat) {
			t.Errorf("Last-Modified %s, want the second after the poll", got)
		}
		time.Sleep(25 * time.Hour)
		n, origin = 2, second
		given := g.get(feedURL).Header().Get("Last-Modified")
		changed := time.Now().Add(time.Second)
		time.Sleep(30 * time.Minute)
		now := time.Now()
		for range 2 {
			for since, want := range map[time.Time]int{
				polled: 200, polled.Add(2 * time.Hour): 200, changed: 304, changed.Add(time.Second): 200, now: 200, now.Add(2 * time.Hour): 200,
			} {
				if w := g.get(feedURL, "If-Modified-Since", since.UTC().Format(http.TimeFormat)); w.Code != want {
					t.Errorf("%v after the version: status %d, want %d", since.Sub(changed), w.Code, want)
				}
			}
			for since, want := range map[string]int{given: 304, second: 200, first: 200} {
				if w := g.get(feedURL, "If-Modified-Since", since); w.Code != want {
					t.Errorf("%s: status %d, want %d", since, w.Code, want)
				}
			}
			g.restart()
		}
	})
}

// A reader that sends the time of its last request gets a version that came later in that second, and one
// that sends the date of the version gets 304. No date is later than that of the answer.
func TestVersionLaterInASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 1
		g := newGateway(t, func(policy.Ask) policy.Answer { return ok(rss(n, ""), "Cache-Control", "max-age=90000") }).open()
		g.get(feedURL)
		time.Sleep(2*time.Hour + 200*time.Millisecond)
		asked := time.Now().UTC().Format(http.TimeFormat)
		wantBody(t, g.get(feedURL), 200, "Entry 1")
		n = 2
		time.Sleep(300 * time.Millisecond)
		must(g.Refresh(t.Context(), feedURL))
		w := g.get(feedURL, "If-Modified-Since", asked)
		wantBody(t, w, 200, "Entry 2")
		given := w.Header().Get("Last-Modified")
		for range 2 { // in the same second, and in the next one
			w := g.get(feedURL, "If-Modified-Since", given)
			wantBody(t, w, 304, "")
			now := cmp.Or(w.Header().Get("Date"), time.Now().UTC().Format(http.TimeFormat))
			if must(http.ParseTime(given)).After(must(http.ParseTime(now))) {
				t.Errorf("Last-Modified %s in an answer of %s", given, now)
			}
			time.Sleep(500 * time.Millisecond)
		}
	})
}

// Only tags and dates that Pollard gave say which version a reader has: a reader that comes from the site with its own gets
// the feed once. A date that a reader made up may be the origin's of a version that it does not have.
func TestValidatorsOfTheOriginAreNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const date = "Sun, 01 Mar 2026 08:00:00 GMT"
		g := newGateway(t, func(policy.Ask) policy.Answer { return ok(rss(1, ""), "ETag", `"origin"`, "Last-Modified", date) }).open()
		given := g.get(feedURL).Header()
		for name, test := range map[string]struct {
			field, value string
			want         int
		}{
			"the origin's tag":  {"If-None-Match", `"origin"`, 200},
			"the origin's date": {"If-Modified-Since", date, 200},
			"Pollard's tag":     {"If-None-Match", given.Get("ETag"), 304},
			"Pollard's date":    {"If-Modified-Since", given.Get("Last-Modified"), 304},
		} {
			if w := g.get(feedURL, test.field, test.value); w.Code != test.want {
				t.Errorf("%s: %d, want %d", name, w.Code, test.want)
			}
		}
	})
}

// oneByOne is an origin whose polls take turns, some seconds apart.
type oneByOne struct {
	*script
	turns chan struct{}
}

func (o oneByOne) Acquire(url feedurl.URL) policy.Slot {
	select {
	case <-o.turns:
		return o.script.Acquire(url)
	default:
		return nil
	}
}

// openInTurns opens a gateway at such an origin.
func openInTurns(t *testing.T) (g *gateway, turns chan<- struct{}) {
	t.Helper()
	g = newGateway(t, func(policy.Ask) policy.Answer { return ok(rss(2, "")) })
	origin := oneByOne{g.origin, make(chan struct{})}
	g.polled = origin
	return g.open(), origin.turns
}

// serveOrWait asks for a feed. It returns nil if that is served, and errQueued if it waits for its
// turn.
func (g *gateway) serveOrWait(url string) error {
	err := g.serve(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil), 0, url)
	if u, ok := err.(*cache.Unavailable); ok && u.Queued && u.RetryAfter > 0 {
		return errQueued
	}
	return err
}

var errQueued = errors.New("it waits for its turn")

// Many feeds of one host wait for their turn, which is not a failure, and are served if it comes
// while a reader waits.
func TestFeedsOfOneHostWaitForTheirTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, turns := openInTurns(t)
		stop := make(chan struct{})
		defer close(stop)
		go func() {
			for {
				select {
				case turns <- struct{}{}:
					time.Sleep(2 * time.Second)
				case <-stop:
					return
				}
			}
		}()
		served := 0
		for round := 0; served < 100; round++ {
			if round > 10 {
				t.Fatalf("%d of 100 feeds are served after %d rounds", served, round)
			}
			var wg sync.WaitGroup
			answers := make([]error, 100)
			for i := range answers {
				wg.Go(func() { answers[i] = g.serveOrWait(fmt.Sprintf("https://one.test/%d", i)) })
			}
			wg.Wait()
			served = 0
			for i, err := range answers {
				if err == nil {
					served++
				} else if err != errQueued {
					t.Errorf("round %d, feed %d: %v", round, i, err)
				}
			}
			time.Sleep(20 * time.Second)
		}
		if n := g.origin.polls(); n != 100 {
			t.Errorf("%d polls of 100 feeds", n)
		}
	})
}

// Whose patience ends in the very moment in which the poll does gets the feed, or is
// asked to wait, but not an error that nothing has come of it.
func TestPollThatEndsAsPatienceDoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, turns := openInTurns(t)
		for i := range 40 {
			go func() {
				time.Sleep(15 * time.Second)
				turns <- struct{}{}
			}()
			var wg sync.WaitGroup
			for range 8 {
				wg.Go(func() {
					if err := g.serveOrWait(fmt.Sprintf("https://one.test/%d", i)); err != nil && err != errQueued {
						t.Errorf("feed %d: %v", i, err)
					}
				})
			}
			wg.Wait()
			time.Sleep(time.Minute)
		}
	})
}
