// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"context"
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
	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/policy"
)

// distant is a store that is out of reach at times: calls take as long as it has
// patience, and fail.
type distant struct {
	store.Store

	bodies atomic.Int64 // that were read

	mu     sync.Mutex // guards what follows
	away   bool
	mute   bool // of bodies alone
	claims int  // that were asked for while it was away
}

const callTimeout = 5 * time.Second

var errAway = errors.New("the database is away")

func (s *distant) set(away bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.away, s.claims = away, 0
}

func (s *distant) setMute(mute bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mute = mute
}

func (s *distant) asked() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.claims
}

func (s *distant) reach(claim bool) error {
	s.mu.Lock()
	away := s.away
	if away && claim {
		s.claims++
	}
	s.mu.Unlock()
	if !away {
		return nil
	}
	time.Sleep(callTimeout)
	return errAway
}

func (s *distant) Claim(ctx context.Context, claims []store.Claim) ([]store.Lease, error) {
	if err := s.reach(true); err != nil {
		return nil, err
	}
	return s.Store.Claim(ctx, claims)
}

func (s *distant) ClaimDue(ctx context.Context, q store.DueQuery) ([]store.Lease, time.Duration, error) {
	if err := s.reach(true); err != nil {
		return nil, 0, err
	}
	return s.Store.ClaimDue(ctx, q)
}

func (s *distant) Commit(ctx context.Context, o store.Outcome) error {
	if err := s.reach(false); err != nil {
		return err
	}
	return s.Store.Commit(ctx, o)
}

func (s *distant) Lookup(ctx context.Context, ids []store.ID) ([]store.Record, error) {
	if err := s.reach(false); err != nil {
		return nil, err
	}
	return s.Store.Lookup(ctx, ids)
}

func (s *distant) Body(ctx context.Context, id store.ID, version uint64) (*store.StoredBody, error) {
	s.mu.Lock()
	mute := s.mute
	s.mu.Unlock()
	if err := s.reach(false); err != nil || mute {
		return nil, errAway
	}
	s.bodies.Add(1)
	return s.Store.Body(ctx, id, version)
}

func (s *distant) Touch(ctx context.Context, asked map[store.ID]store.Asked) error {
	if err := s.reach(false); err != nil {
		return err
	}
	return s.Store.Touch(ctx, asked)
}

func (s *distant) Totals(ctx context.Context) (store.Totals, error) {
	if err := s.reach(false); err != nil {
		return store.Totals{}, err
	}
	return s.Store.Totals(ctx)
}

// While the store is away readers get what is in memory, and wait for nothing; when it
// is back that is noticed within seconds, without a burst.
func TestStoreAwayAndBack(t *testing.T) {
	for _, prefetch := range []bool{false, true} {
		t.Run(fmt.Sprintf("prefetch %v", prefetch), func(t *testing.T) {
			bubble(t, func(t *testing.T, dir string) {
				const feeds, every = 60, 5 * time.Second
				g := newGateway(t, dir, func(policy.Ask) policy.Answer { return ok(rss(2, ""), "ETag", `"v"`, "Cache-Control", "max-age=3600") })
				var db *distant
				g.wrap = func(s store.Store) store.Store { db = &distant{Store: s}; return db }
				g.settings.Prefetch = prefetch
				g.open()
				defer g.close()

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
						if waited := time.Since(began); waited > 3*time.Second || waited > 0 && db.asked() > 3 {
							t.Errorf("a reader waited %v while the store was away", waited)
						}
						time.Sleep(every / feeds)
					}
				}
				round()
				db.set(true)
				time.Sleep(70 * time.Minute) // all are due
				db.set(true)
				before := g.origin.polls()
				const outage = 5 * time.Minute
				for began := time.Now(); time.Since(began) < outage; {
					round()
				}
				if n := g.origin.polls() - before; n != 0 {
					t.Errorf("%d polls while the store was away", n)
				}
				if most := int(outage/callTimeout) + 3; db.asked() > most || db.asked() < int(outage/(20*time.Second)) {
					t.Errorf("the store was asked for polls %d times in %v, want at most %d, and now and then", db.asked(), outage, most)
				}
				if s := g.Summary(t.Context()); !strings.Contains(s.Outage, "away") {
					t.Errorf("the summary says %q of the outage", s.Outage)
				}
				db.set(false)
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
				if most > feeds/5 {
					t.Errorf("%d of %d polls came within a second", most, feeds)
				}
				if s := g.Summary(t.Context()); s.Outage != "" {
					t.Errorf("the summary still says %q", s.Outage)
				}
			})
		})
	}
}

// Whatever coding a version is in memory in, it is served while the store is away.
func TestOtherCodingsWhileTheStoreIsAway(t *testing.T) {
	bubble(t, func(t *testing.T, dir string) {
		g := newGateway(t, dir, func(policy.Ask) policy.Answer { return ok(rss(20, ""), "ETag", `"v"`, "Cache-Control", "max-age=3600") })
		var db *distant
		g.wrap = func(s store.Store) store.Store { db = &distant{Store: s}; return db }
		g.open()
		defer g.close()
		g.get(feedURL, "Accept-Encoding", "gzip")
		synctest.Wait()
		db.set(true)
		w := g.get(feedURL)
		if coding := w.Header().Get("Content-Encoding"); coding != "" {
			t.Errorf("Content-Encoding: %s", coding)
		}
		wantBody(t, w, http.StatusOK, "Entry 20")
		w = g.get(feedURL, "Accept-Encoding", "br, gzip;q=0.5")
		if w.Code != http.StatusOK {
			t.Errorf("got %d %s", w.Code, w.Body)
		}
		if n := db.bodies.Load(); n != 0 {
			t.Errorf("%d bodies were read", n)
		}
	})
}

// A version that another node has committed is in memory before readers ask for it. If it
// cannot be read, they go on getting the version before it.
func TestVersionOfAnotherNodeWhileTheStoreIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(epoch))
		var entries atomic.Int64
		entries.Store(1)
		origin := &script{answer: func(policy.Ask) policy.Answer {
			return ok(rss(int(entries.Load()), ""), "Cache-Control", "max-age=86400")
		}}
		shared := sharedStore(t)
		db := &distant{Store: shared}
		one, other := node(t, shared, origin, cache.Settings{}), node(t, db, origin, cache.Settings{})
		publish := func(n int64) {
			entries.Store(n)
			time.Sleep(30 * time.Hour)
			one.get(feedURL)
			time.Sleep(10 * time.Second)
		}
		one.get(feedURL)
		first := other.get(feedURL)
		wantBody(t, first, http.StatusOK, "Entry 1")

		// It is there as identity alone.
		db.set(true)
		wantBody(t, other.get(feedURL, "Accept-Encoding", "gzip"), http.StatusOK, "Entry 1")
		db.set(false)

		publish(2)
		if n := db.bodies.Load(); n != 2 {
			t.Errorf("%d bodies were read, want the second one before anybody asks", n)
		}
		db.set(true)
		second := other.get(feedURL)
		wantBody(t, second, http.StatusOK, "Entry 2")

		publish(3)
		w := other.get(feedURL)
		wantBody(t, w, http.StatusOK, "Entry 2")
		if got, want := w.Header().Get("Etag"), second.Header().Get("Etag"); got != want {
			t.Errorf("ETag %s, want %s as before", got, want)
		}
		db.set(false)
		time.Sleep(30 * time.Hour)
		wantBody(t, other.get(feedURL), http.StatusOK, "Entry 3")

		// The record of a version may be read without its body.
		third := other.get(feedURL)
		db.setMute(true)
		publish(4)
		w = other.get(feedURL)
		wantBody(t, w, http.StatusOK, "Entry 3")
		if w = other.get(feedURL, "If-None-Match", third.Header().Get("Etag")); w.Code != http.StatusNotModified || w.Header().Get("Etag") != third.Header().Get("Etag") {
			t.Errorf("a reader who has it gets %d with ETag %s", w.Code, w.Header().Get("Etag"))
		}
		// A reader that has the newest one from the other node gets a 304 without its body.
		if w = other.get(feedURL, "If-None-Match", one.get(feedURL).Header().Get("Etag")); w.Code != http.StatusNotModified {
			t.Errorf("a reader who has the newest gets %d", w.Code)
		}
		wantBody(t, other.get(feedURL), http.StatusOK, "Entry 3")
		db.setMute(false)
		wantBody(t, other.get(feedURL), http.StatusOK, "Entry 4")
	})
}

// A store that goes away while a poll is under way, for some seconds, costs no answer.
func TestAnswerThatComesWhileTheStoreIsAway(t *testing.T) {
	for away, kept := range map[time.Duration]bool{5 * time.Second: true, 5 * time.Minute: false} {
		bubble(t, func(t *testing.T, dir string) {
			db := new(distant)
			entries := 1
			g := newGateway(t, dir, func(policy.Ask) policy.Answer {
				if entries == 2 {
					db.set(true)
					time.AfterFunc(away, func() { db.set(false) })
				}
				return ok(rss(entries, ""), "ETag", fmt.Sprintf(`"%d"`, entries))
			})
			g.wrap = func(s store.Store) store.Store { db.Store = s; return db }
			g.open()
			defer g.close()
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
		})
	}
}
