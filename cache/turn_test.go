// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/feedpollard/pollard/internal/feedurl"
	"github.com/feedpollard/pollard/policy"
)

// oneAddress is an origin all of whose hosts have one address, which has a turn at a time.
type oneAddress struct {
	*script
	turns map[feedurl.URL]time.Time
	held  *atomic.Int64 // slots
}

func (o oneAddress) Acquire(_ context.Context, u feedurl.URL) (policy.Slot, error) {
	o.held.Add(1)
	return &turnSlot{scriptSlot{o.script}, o, u}, nil
}

type turnSlot struct {
	scriptSlot
	address oneAddress
	url     feedurl.URL
}

func (s *turnSlot) Release() { s.address.held.Add(-1) }

func (s *turnSlot) Turn(_ context.Context, standing policy.Standing) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if standing != policy.StandingNew {
		return 0
	}
	return max(0, time.Until(s.address.turns[s.url]))
}

// A poll that waits for its turn at an address holds no place and no claim, its reader learns of it,
// and it is made at its moment.
func TestPollsWaitForTheirTurnAtAnAddress(t *testing.T) {
	for _, prefetch := range []bool{false, true} {
		bubble(t, fmt.Sprint("prefetch ", prefetch), func(t *testing.T) {
			g := newGateway(t, func(policy.Ask) policy.Answer { return ok(rss(2, "")) })
			origin := oneAddress{g.origin, make(map[feedurl.URL]time.Time), new(atomic.Int64)}
			for i := range 20 {
				url := fmt.Sprintf("http://h%d.example/feed", i)
				origin.turns[feedurl.MustParse(url)] = time.Now().Add(time.Duration(10*i) * time.Second)
				g.settings.Feeds = append(g.settings.Feeds, url)
			}
			g.settings.Prefetch, g.settings.Polls = prefetch, 2
			g.polled = origin
			g.open()
			var queued atomic.Int64
			for _, url := range g.settings.Feeds {
				go func() {
					if g.serveOrWait(url) == errQueued {
						queued.Add(1)
					}
				}()
				synctest.Wait()
			}
			time.Sleep(5 * time.Second)
			if held := origin.held.Load(); held != 0 {
				t.Errorf("%d places are held by polls that wait", held)
			}
			for _, f := range g.accounts() {
				if f.Version == 0 && f.Winner != policy.HintAddress {
					t.Errorf("%s waits for %q", f.URL, f.Winner)
				}
			}
			time.Sleep(time.Minute)
			if queued.Load() < 15 {
				t.Errorf("%d readers are told that the poll waits for its turn", queued.Load())
			}
			time.Sleep(4 * time.Minute)
			g.origin.mu.Lock()
			defer g.origin.mu.Unlock()
			for i, url := range g.settings.Feeds {
				var at []time.Time
				for n, ask := range g.origin.asks {
					if ask.URL.String() == url {
						at = append(at, g.origin.at[n])
					}
				}
				if want := origin.turns[feedurl.MustParse(url)]; len(at) != 1 || at[0].Before(want) || at[0].Sub(want) > 10*time.Second {
					t.Errorf("poll %d is made at %v, its turn was %v", i, at, want)
				}
			}
		})
	}
}
