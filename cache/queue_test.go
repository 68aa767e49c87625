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

	"github.com/feedpollard/pollard/cache"
	"github.com/feedpollard/pollard/internal/feedurl"
	"github.com/feedpollard/pollard/policy"
)

// oneByOne is an origin whose polls take turns, some seconds apart.
type oneByOne struct {
	*script
	turns chan struct{}
}

func (o oneByOne) Acquire(ctx context.Context, url feedurl.URL) (policy.Slot, error) {
	select {
	case <-o.turns:
		return o.script.Acquire(ctx, url)
	case <-ctx.Done():
		return nil, ctx.Err()
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
	f, err := g.Feed(g.t.Context(), url)
	if err == nil {
		_, err = f.Serve(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil))
	}
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
// told to wait, but not that nothing has come of it.
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
