// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/feedpollard/pollard/cache"
	"github.com/feedpollard/pollard/cache/feedstate"
	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/policy"
)

// A feed that is forgotten gives back once the memory that it took of the budget.
func TestForgottenFeedsGiveTheirMemoryBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGateway(t, func(policy.Ask) policy.Answer { return failed(404, policy.FailureNotFound) }).open()
		before := g.Summary(t.Context()).Memory
		for i := range 20 {
			url := fmt.Sprintf("https://origin.test/%d", i)
			g.get(url)
			if err := g.Forget(t.Context(), url); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if after := g.Summary(t.Context()).Memory; after != before {
			t.Errorf("%d bytes in memory, want the %d from before", after, before)
		}
	})
}

// The URLs that a reader invents of a host that has asked for a pause leave memory.
func TestFeedsThatWereNeverClaimedLeaveMemory(t *testing.T) {
	slow(t)
	synctest.Test(t, func(t *testing.T) {
		g := newGateway(t, nil)
		g.open()
		g.pause(100 * time.Hour)
		long := strings.Repeat("a", 2000)
		for i := range 900 {
			g.get(fmt.Sprintf("https://origin.test/%d/%s", i, long))
			if used := g.Summary(t.Context()).Memory; i == 50 && used < 51*2000 {
				t.Errorf("%d feeds with long URLs take %d bytes", i+1, used)
			}
		}
		time.Sleep(2 * time.Minute)
		if used := g.Summary(t.Context()).Memory; used > 600_000 {
			t.Errorf("%d bytes in memory of a budget of half a MiB", used)
		}
	})
}

// If the store refuses writes, as on a full disk, it cannot learn when feeds were asked for. Their
// states leave memory all the same.
func TestFeedsLeaveMemoryWhileTheStoreRefusesWrites(t *testing.T) {
	slow(t)
	synctest.Test(t, func(t *testing.T) {
		g := newGateway(t, func(policy.Ask) policy.Answer { return ok(rss(1, ""), "Cache-Control", "max-age=604800") })
		g.open()
		read := func() {
			for i := range 900 {
				wantBody(t, g.get(fmt.Sprintf("https://origin%d.test/", i)), 200, "Entry 1")
			}
			time.Sleep(2 * time.Minute)
		}
		read()
		want := g.Summary(t.Context()).Memory
		g.store.refuse(errors.New("the disk is full"), "Touch", "Claim", "Commit")
		read()
		if used := g.Summary(t.Context()).Memory; used > want {
			t.Errorf("%d bytes in memory, which has room for %d", used, want)
		}
	})
}

// page is not a feed.
const page = "<html>"

// crowd is readers of new feeds at one time, and their answers.
type crowd struct {
	feeds  int
	answer string
	size   int // of a document, in bytes
	pause  time.Duration
}

func drawCrowd(t *rapid.T) crowd {
	return crowd{
		feeds:  rapid.IntRange(1, 30).Draw(t, "feeds"),
		answer: rapid.SampledFrom([]string{"feed", "feed", "slow feed", "page", "nothing"}).Draw(t, "answer"),
		size:   rapid.IntRange(500, 20_000).Draw(t, "size"),
		pause:  rapid.SampledFrom([]time.Duration{time.Second, time.Minute, 2 * time.Hour}).Draw(t, "pause"),
	}
}

// Whatever strangers ask for, the polls in flight, the bodies that are stored and what
// is held in memory stay within their bounds, and the operator's feed is polled in time.
func TestBoundsHold(t *testing.T) {
	setFlag(t, "rapid.checks", strconv.Itoa(max(*lives, 2)))
	setFlag(t, "rapid.nofailfile", "true") // a seed is enough
	rapid.Check(t, func(rt *rapid.T) {
		polls := rapid.IntRange(1, 6).Draw(rt, "polls")
		disk := rapid.Int64Range(1_500_000, 3_000_000).Draw(rt, "disk")
		budget := rapid.Int64Range(20_000, 200_000).Draw(rt, "memory")
		crowds := rapid.SliceOfN(rapid.Custom(drawCrowd), 4, 12).Draw(rt, "crowds")
		var violations []string
		synctest.Test(t, func(t *testing.T) { violations = press(t, polls, disk, budget, crowds) })
		for _, v := range violations {
			rt.Error(v)
		}
	})
}

// press lets crowds loose on a gateway and returns which bounds did not hold.
func press(t *testing.T, polls int, disk, budget int64, crowds []crowd) (violations []string) {
	const largest = 20_000 // document, with what is around the text
	var (
		mu       sync.Mutex // guards what follows
		inFlight int
		now      crowd
		random   = rand.New(rand.NewPCG(1, 2))
	)
	check := func(ok bool, format string, args ...any) {
		if !ok {
			violations = append(violations, fmt.Sprintf("%v: %s", now, fmt.Sprintf(format, args...)))
		}
	}
	g := newGateway(t, func(ask policy.Ask) policy.Answer {
		mu.Lock()
		inFlight++
		check(inFlight <= polls, "%d polls in flight", inFlight)
		text := make([]byte, now.size/2)
		for i := range text {
			text[i] = byte(random.UintN(256))
		}
		answer := now.answer
		mu.Unlock()
		defer func() {
			mu.Lock()
			defer mu.Unlock()
			inFlight--
		}()
		switch {
		case ask.URL.String() == feedURL:
			return ok(rss(1, ""), "ETag", `"v"`)
		case answer == "page":
			return ok(page)
		case answer == "nothing":
			time.Sleep(30 * time.Second)
			return failed(0, policy.FailureTimeout)
		case answer == "slow feed":
			time.Sleep(10 * time.Second)
		}
		return ok(rss(1, fmt.Sprintf("%x", text))) // which gzip does not make much smaller
	})
	g.budget = budget
	rules := policy.DefaultRules()
	rules.MaxInterval, rules.Jitter = time.Hour, 0
	g.settings.Rules = func(feedstate.Key) policy.Rules { return rules }
	g.settings.Polls, g.settings.Disk, g.settings.Feeds, g.settings.Prefetch = polls, disk, []string{feedURL}, true
	g.open()
	g.get(feedURL)
	n := 0
	for _, next := range crowds {
		mu.Lock()
		now = next
		mu.Unlock()
		var all sync.WaitGroup
		for range next.feeds {
			url := fmt.Sprintf("https://host%d.test/feed", n)
			n++
			all.Go(func() { g.get(url) })
		}
		all.Wait()
		time.Sleep(next.pause + 20*time.Minute) // those who gave up are polled meanwhile
		synctest.Wait()
		s := g.Summary(t.Context())
		mu.Lock()
		check(s.Disk <= disk+disk/10+int64(polls)*largest, "%d bytes of bodies, with a budget of %d", s.Disk, disk)
		// Representations leave the room that states take when the next ones come. Those of
		// feeds that were polled in this minute are there beside them.
		check(s.Memory <= budget*3/2+int64(polls)*4000, "%d bytes in memory, with a budget of %d", s.Memory, budget)
		mu.Unlock()
	}
	g.get(feedURL)
	times, last := g.origin.times(), time.Time{}
	for i, ask := range g.origin.asks {
		if ask.URL.String() == feedURL {
			check(last.IsZero() || times[i].Sub(last) <= 2*time.Hour, "the operator's feed was not polled for %v", times[i].Sub(last))
			last = times[i]
		}
	}
	check(time.Since(last) <= 2*time.Hour, "the operator's feed has not been polled for %v", time.Since(last))
	g.close()
	time.Sleep(time.Minute) // an origin here does not hear that a poll was cancelled
	return violations
}

// A feed may leave memory between the moment at which a reader has found it and that reader's poll. Readers who
// come then join the poll all the same.
func TestReadersOfAFeedThatLeftMemoryJoinItsPoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGateway(t, func(policy.Ask) policy.Answer {
			time.Sleep(2 * time.Second)
			return ok(rss(2, ""))
		}).open()
		early := must(g.Feed(t.Context(), feedURL))
		for i := range 900 { // crowd it out
			must(g.Feed(t.Context(), fmt.Sprintf("https://other.test/%d", i)))
		}
		time.Sleep(time.Minute)
		var readers sync.WaitGroup
		readers.Go(func() {
			w := httptest.NewRecorder()
			if _, err := early.Serve(w, httptest.NewRequest(http.MethodGet, "/", nil), cache.ServeOptions{}); err != nil {
				t.Error(err)
			}
			wantBody(t, w, 200, "Entry 2")
		})
		time.Sleep(time.Second) // the poll is under way
		for range 10 {
			readers.Go(func() { wantBody(t, g.get(feedURL), 200, "Entry 2") })
		}
		readers.Wait()
		if n := g.origin.polls(); n != 1 {
			t.Errorf("%d polls, want 1", n)
		}
	})
}

// Clients that give up their requests at once, faster than the store reads records, leave few reads behind. None
// of these is cancelled: that would cost a connection to the database.
func TestClientsThatLeaveStartFewReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGateway(t, nil).open()
		var reading, most, cancelled atomic.Int64
		g.store.hook(func(ctx context.Context, call string) error {
			if call == "Lookup" {
				if n := reading.Add(1); n > most.Load() {
					most.Store(n)
				}
				time.Sleep(time.Second)
				reading.Add(-1)
				if ctx.Err() != nil {
					cancelled.Add(1)
				}
			}
			return nil
		}, nil)
		for name, request := range map[string]func(ctx context.Context, url string){
			"feeds": func(ctx context.Context, url string) { _, _ = g.Feed(ctx, url) },
			"callbacks": func(ctx context.Context, url string) {
				id := store.IDOf(url)
				token := base64.RawURLEncoding.EncodeToString(append(id[:], make([]byte, 16)...))
				g.ServeHub(httptest.NewRecorder(), httptest.NewRequest("POST", "/", nil).WithContext(ctx), token)
			},
		} {
			most.Store(0)
			var requests sync.WaitGroup
			for i := range 5000 {
				requests.Go(func() {
					ctx, leave := context.WithTimeout(t.Context(), time.Millisecond)
					defer leave()
					request(ctx, fmt.Sprintf("https://origin.test/%d", i))
				})
			}
			requests.Wait()
			if n := most.Load(); n < 10 || n > 1024 || cancelled.Load() > 0 {
				t.Errorf("%s: %d records were being read at once, and %d reads cancelled", name, n, cancelled.Load())
			}
			began := time.Now()
			if _, err := g.Feed(t.Context(), feedURL+name); err != nil || time.Since(began) > 3*time.Second {
				t.Errorf("%s: a client that waits has its feed after %v: %v", name, time.Since(began), err)
			}
		}
		g.store.hook(nil, nil)
	})
}
