// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/feedpollard/pollard/cache"
	"github.com/feedpollard/pollard/policy"
)

// oneByOne is an origin whose polls take turns, some seconds apart.
type oneByOne struct {
	*script
	turns chan struct{}
}

func (o oneByOne) Acquire(ctx context.Context, url string, urgent bool) (policy.Slot, error) {
	select {
	case <-o.turns:
		return o.script.Acquire(ctx, url, urgent)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Of many feeds of one host nobody is told that anything has failed: they wait for
// their turn, and those whose turn comes while somebody waits are served.
func TestFeedsOfOneHostWaitForTheirTurn(t *testing.T) {
	bubble(t, func(t *testing.T, dir string) {
		g := newGateway(t, dir, func(policy.Ask) policy.Answer { return ok(rss(2, "")) })
		origin := oneByOne{g.origin, make(chan struct{})}
		g.store = g.disk()
		var err error
		if g.Cache, err = cache.New(cache.Options{Store: g.store, Origin: origin}); err != nil {
			t.Fatal(err)
		}
		g.Apply(g.settings)
		defer g.close()
		stop := make(chan struct{})
		defer close(stop)
		go func() {
			for {
				select {
				case origin.turns <- struct{}{}:
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
				wg.Go(func() {
					f, err := g.Feed(t.Context(), fmt.Sprintf("https://one.test/%d", i))
					if err == nil {
						_, err = f.Serve(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil))
					}
					answers[i] = err
				})
			}
			wg.Wait()
			served = 0
			for i, err := range answers {
				u, waits := err.(*cache.Unavailable)
				switch {
				case err == nil:
					served++
				case !waits || !u.Queued || u.RetryAfter <= 0:
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
