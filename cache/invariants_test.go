// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/policy"
)

// step is one thing that happens in a simulated life.
type step struct {
	do    string
	feed  int
	sleep time.Duration
	kind  int
}

func (s step) String() string {
	return fmt.Sprintf("%s feed=%d sleep=%v kind=%d", s.do, s.feed, s.sleep, s.kind)
}

// forEver is longer than any life.
const forEver = 100 * 365 * 24 * time.Hour

// page is no feed.
const page = "<html>"

// answers are the habits of an origin. Fresh is how long its answer stays so, which
// a person's refresh may cut short; pause is what it asks for in so many words.
var answers = []struct {
	answer       func(n int) policy.Answer
	fresh, pause time.Duration
}{
	{func(n int) policy.Answer { return ok(rss(1+n%5, fmt.Sprint(n)), "ETag", fmt.Sprintf(`"%d"`, n)) }, 0, 0},
	{func(int) policy.Answer { return unchanged() }, 0, 0},
	{func(int) policy.Answer { return ok(page) }, 0, 0},
	{func(int) policy.Answer { return failed(404, policy.FailureNotFound) }, 0, 0},
	{func(int) policy.Answer { return failed(0, policy.FailureTimeout) }, 0, 0},
	{func(int) policy.Answer {
		a := failed(429, policy.FailureRateLimited)
		a.Header = http.Header{"Retry-After": {"30000"}}
		return a
	}, 0, 30000 * time.Second},
	{func(n int) policy.Answer { return ok(rss(2, ""), "Cache-Control", "max-age=20000", "ETag", `"c"`) }, 20000 * time.Second, 0},
	{func(n int) policy.Answer { time.Sleep(25 * time.Second); return ok(rss(3, "")) }, 0, 0},
	{func(int) policy.Answer { return policy.Answer{Failure: policy.FailureNotStarted} }, 0, 0},
	{func(int) policy.Answer { return failed(410, policy.FailureGone) }, forEver, 0},
}

func drawLife(t *rapid.T) []step {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) step {
		return step{
			do:    rapid.SampledFrom([]string{"read", "read", "read", "storm", "restart", "crash", "reload", "refresh", "insist", "forget", "habit", "habit"}).Draw(t, "do"),
			feed:  rapid.IntRange(0, 2).Draw(t, "feed"),
			sleep: time.Duration(rapid.Int64Range(0, int64(3*time.Hour)).Draw(t, "sleep")),
			kind:  rapid.IntRange(0, len(answers)-1).Draw(t, "kind"),
		}
	}), 20, 60).Draw(t, "life")
}

// Whatever readers, origins and the machine do, two polls of a feed are never
// closer than the floor and never closer than the origin asked for; a version
// once served stays served.
func TestOnePollPerInterval(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		life := drawLife(rt)
		prefetch := rapid.Bool().Draw(rt, "prefetch")
		var violations []string
		synctest.Test(t, func(t *testing.T) { violations = live(t, life, prefetch) })
		for _, v := range violations {
			rt.Error(v)
		}
	})
}

// live runs a life and returns what broke the invariants.
func live(t *testing.T, life []step, prefetch bool) (violations []string) {
	w := &witness{
		next: map[string]time.Time{}, refresh: map[string]time.Time{},
		served: map[string]bool{}, forgotten: map[string]int{}, habit: make([]int, 3),
	}
	g := newGateway(t, "", w.poll)
	g.settings.Prefetch = prefetch
	var broken *failing
	g.wrap = func(s store.Store) store.Store { broken = &failing{Store: s}; return broken }
	g.open()
	for _, s := range life {
		url := fmt.Sprintf("https://origin.test/%d.xml", s.feed)
		switch s.do {
		case "read":
			w.read(g, url)
		case "storm":
			var wg sync.WaitGroup
			for range 10 {
				wg.Go(func() { w.read(g, url) })
			}
			wg.Wait()
		case "restart":
			g.restart()
		case "crash":
			// What was reserved stays reserved; what was not committed is lost.
			w.crash(true)
			broken.refuse(nil, errors.New("the machine has stopped"))
			w.read(g, url)
			g.close()
			w.crash(false)
			g.open()
		case "reload":
			g.Apply(g.settings)
		case "refresh":
			w.insist(url)
			_, _ = g.Refresh(t.Context(), url)
		case "insist": // together with readers
			w.insist(url)
			var wg sync.WaitGroup
			for i := range 6 {
				wg.Go(func() {
					if i%2 == 0 {
						_, _ = g.Refresh(t.Context(), url)
					} else {
						w.read(g, url)
					}
				})
			}
			wg.Wait()
		case "forget":
			if g.Forget(t.Context(), url) == nil {
				w.forget(url)
			}
		case "habit":
			w.set(s.feed, s.kind)
		}
		time.Sleep(s.sleep)
	}
	g.close()
	time.Sleep(time.Minute) // an origin here does not hear that nobody waits for it any more
	return w.violations
}

// witness stands at the origin and at the readers, and notes what must not be.
type witness struct {
	mu         sync.Mutex // guards all
	n          int
	next       map[string]time.Time // when a poll may come
	refresh    map[string]time.Time // when one that a person wants may come
	crashing   bool
	served     map[string]bool
	forgotten  map[string]int // how often
	habit      []int
	violations []string
}

func (w *witness) set(feed, kind int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.habit[feed] = kind
}

func (w *witness) poll(ask policy.Ask) policy.Answer {
	w.mu.Lock()
	w.n++
	n, now, forgotten := w.n, time.Now(), w.forgotten[ask.URL.String()]
	habit := answers[w.habit[ask.URL.String()[len(ask.URL.String())-5]-'0']]
	until := w.next[ask.URL.String()] // now: it may be forgotten and polled again before a slow answer is there
	w.mu.Unlock()
	a := habit.answer(n)
	if a.Failure == policy.FailureNotStarted {
		return a // nothing reached the origin
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if now.Before(until) {
		w.violations = append(w.violations, fmt.Sprintf("%s polled at %v, %v too early", ask.URL.String(), now, until.Sub(now)))
	}
	if a.Status == http.StatusNotModified && ask.Validators.Empty() {
		a = failed(304, policy.FailureUnasked)
	}
	if w.crashing {
		habit.fresh, habit.pause = 0, 0 // nobody will remember what this answer asked for
	}
	if w.forgotten[ask.URL.String()] != forgotten {
		return a // while it was asked: the next poll knows nothing of this one
	}
	w.refresh[ask.URL.String()] = now.Add(max(time.Hour, habit.pause))
	w.next[ask.URL.String()] = now.Add(max(time.Hour, habit.pause, habit.fresh))
	return a
}

func (w *witness) crash(now bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.crashing = now
}

// insist notes that a person wants a poll.
func (w *witness) insist(url string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.refresh[url].Before(w.next[url]) {
		w.next[url] = w.refresh[url]
	}
}

// forget notes that nothing is known of a feed any more.
func (w *witness) forget(url string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.next, url)
	delete(w.refresh, url)
	delete(w.served, url)
	w.forgotten[url]++
}

func (w *witness) read(g *gateway, url string) {
	f, err := g.Feed(context.Background(), url)
	if err != nil {
		w.note(err.Error())
		return
	}
	resp := httptest.NewRecorder()
	_, err = f.Serve(resp, httptest.NewRequest(http.MethodGet, "/", nil))
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case err == nil && resp.Code == http.StatusOK:
		w.served[url] = true
	case w.served[url]:
		w.violations = append(w.violations, fmt.Sprintf("%s was served before, now: %d, %v", url, resp.Code, err))
	}
}

func (w *witness) note(s string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.violations = append(w.violations, s)
}
