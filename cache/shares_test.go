// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/policy"
)

// Feeds of strangers that hang, with large bodies, whether invented or read for days, leave places and bytes to
// the feeds of others: new ones of a token and of the LAN come, and those of the operator wait for nothing.
func TestInventedFeedsLeaveRoomForEstablishedOnes(t *testing.T) {
	slow(t)
	for name, days := range map[string]int{"invented": 0, "established": 4} {
		bubble(t, name, func(t *testing.T) {
			var hang sync.WaitGroup
			hangs := make(chan struct{})
			g := newGateway(t, func(ask policy.Ask) policy.Answer {
				stranger := strings.Contains(ask.URL.String(), "stranger")
				if err := ask.Large(t.Context(), 0); err != nil {
					if !stranger {
						t.Errorf("%s may not have its body: %v", ask.URL, err)
					}
					return failed(0, policy.FailureTimeout)
				}
				select {
				case <-hangs:
					if stranger {
						time.Sleep(30 * time.Second)
						return failed(0, policy.FailureTimeout)
					}
				default:
				}
				return ok(rss(2, ""), "ETag", `"v"`)
			})
			g.origin.spacing = 2 * time.Second
			g.open()
			strangers := func() {
				for network := range 40 {
					by := store.Any
					for i := range 10 {
						hang.Go(func() { g.askAs(by, fmt.Sprintf("https://stranger%d.test/%d", 10*network+i, network)) })
					}
				}
			}
			for range days {
				strangers()
				hang.Wait()
				time.Sleep(25 * time.Hour)
			}
			close(hangs)
			for range 3 {
				strangers()
				synctest.Wait()
				time.Sleep(20 * time.Second)
			}
			for i, by := range []store.Owner{store.OwnerOf(store.KindNamed, "alice"), store.OwnerOf(store.KindNamed, "192.168.1.9"), store.Operator} {
				url, began := fmt.Sprintf("https://origin%d.test/", i), time.Now()
				if by == store.Operator {
					g.settings.Feeds = []string{url}
					g.Apply(g.settings)
				}
				code := g.askAs(by, url)
				for code != http.StatusOK && time.Since(began) < time.Minute {
					time.Sleep(time.Second)
					code = g.askAs(by, url)
				}
				limit := 15 * time.Second
				if by == store.Operator {
					limit = g.origin.spacing
				}
				if took := time.Since(began); code != http.StatusOK || took > limit {
					t.Errorf("feed %d was had after %v: %d", i, took, code)
				}
			}
			hang.Wait()
			time.Sleep(time.Hour) // until the last poll has been answered: nothing ends it here
		})
	}
}

// While strangers ask for a hundred new feeds of a host, new ones of a token have at least every third slot.
func TestEveryThirdSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const wanted = 5
		g := newGateway(t, func(policy.Ask) policy.Answer { return ok(rss(2, "")) })
		g.origin.spacing = 2 * time.Second
		g.open()
		for network := range 100 {
			go g.askAs(store.Any, fmt.Sprintf("https://origin.test/stranger/%d", network))
		}
		time.Sleep(20 * time.Second)
		before := g.origin.polls()
		for i := range wanted {
			go g.askAs(store.OwnerOf(store.KindNamed, "alice"), fmt.Sprintf("https://origin.test/alice/%d", i))
		}
		time.Sleep(time.Minute)
		g.origin.mu.Lock()
		defer g.origin.mu.Unlock()
		last, had := 0, 0
		for n, poll := range g.origin.asks {
			if !strings.Contains(poll.URL.String(), "alice") {
				continue
			}
			if had++; n > before+3*had {
				t.Errorf("feed %d of the token had slot %d", had, n-before)
			}
			last = n
		}
		if had != wanted || last == len(g.origin.asks)-1 {
			t.Errorf("the token had %d of %d feeds, %d polls in all", had, wanted, len(g.origin.asks))
		}
	})
}
