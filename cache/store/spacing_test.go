// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/feedpollard/pollard/cache/store"
)

// crowd asks for the first polls of feeds on hosts of their own below one domain, each from some moment on, until all
// were made. Each claim waits as long as the store says. It returns when they were.
func (w *world) crowd(feeds []store.Claim, from []time.Duration) (polls []time.Duration, claims int) {
	began := w.now
	next := make(map[int]time.Time)
	for n := range feeds {
		next[n] = began.Add(from[n])
	}
	polls = make([]time.Duration, len(feeds))
	for len(next) > 0 && claims < 100*len(feeds) {
		n, at := -1, time.Time{}
		for m, t := range next {
			if n < 0 || t.Before(at) || t.Equal(at) && m < n {
				n, at = m, t
			}
		}
		w.now = at
		c := feeds[n]
		c.Host = store.Host{Name: fmt.Sprintf("h%d.wild.test", n), Domain: "wild.test", Spacing: 2 * time.Second}
		c.URL = fmt.Sprintf("https://%s/", c.Host.Name)
		c.ID, c.Hold, c.Queue = store.IDOf(c.URL), time.Hour, true
		l, err := w.s.Claim(w.t.Context(), c)
		w.must(err)
		claims++
		switch {
		case l.Denied == "":
			polls[n] = w.now.Sub(began)
			delete(next, n)
		case l.Denied != store.DeniedBusy || l.Wait <= 0:
			w.t.Fatalf("feed %d: %+v", n, l)
		default:
			next[n] = w.now.Add(l.Wait)
		}
	}
	return polls, claims
}

// most returns the most polls in any second.
func most(polls []time.Duration) (most int) {
	for i := range polls {
		n := 0
		for _, at := range polls[i:] {
			if at-polls[i] < time.Second {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}

// Hosts of one registrable domain are often one server: new feeds come eight at once and then one a second, with
// few claims. Feeds of strangers delay those of others by no more than a second.
func TestSpacingOfADomain(t *testing.T) {
	for name, by := range map[string]func(n int) store.Claim{
		"an import":             func(int) store.Claim { return store.Claim{By: store.Operator, Configured: true} },
		"one network":           func(int) store.Claim { return store.Claim{By: named(store.KindPublic, 1)} },
		"ten networks":          func(n int) store.Claim { return store.Claim{By: named(store.KindPublic, n%10)} },
		"an address of the LAN": func(int) store.Claim { return store.Claim{By: named(store.KindAddress, 1)} },
		"strangers, and a token after a minute": func(n int) store.Claim {
			if n < 290 {
				return store.Claim{By: named(store.KindPublic, n%10)}
			}
			return store.Claim{By: named(store.KindToken, 1)}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			const feeds = 300
			all, from := make([]store.Claim, feeds), make([]time.Duration, feeds)
			for n := range feeds {
				if all[n] = by(n); all[n].By.Kind() == store.KindToken {
					from[n] = time.Minute
				}
			}
			polls, claims := w.crowd(all, from)
			for n, at := range polls[290:] {
				if all[290+n].By.Kind() == store.KindToken && at > from[290+n]+3*time.Second {
					t.Errorf("a feed of the token came after %v", at-from[290+n])
				}
			}
			slices.Sort(polls)
			if n, last := most(polls), polls[feeds-1]; n > 9+1 || last > 6*time.Minute || claims > 3*feeds {
				t.Errorf("%d claims, at most %d polls in a second, the last after %v", claims, n, last)
			}
		})
	}
}
