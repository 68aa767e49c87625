// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"
)

// knownFeeds are feeds that an adversary knows.
func knownFeeds() []*resource {
	return []*resource{
		{url: "http://plain.test/feed.xml", target: true},
		{url: "https://example.com/feed.xml", target: true},
		{url: "http://age3h.test/feed", header: []string{"Cache-Control", "max-age=10800"}, wait: 3 * time.Hour, target: true},
		{url: "http://tag.test/feed", date: func(*call) string { return "" }, target: true},
		{url: "http://five.test/feed", instead: answering(500, 20*time.Hour, 40*time.Hour), target: true},
	}
}

// endlessURL is a site on which every URL is a feed of the adversary.
const endlessURL = "http://many.trap.test/"

// traps are the feeds of the adversary. They are not configured, and the adversary
// requests all of them by URL.
func traps(known []*resource) []*resource {
	var all []*resource
	trap := func(host, path string, instead func(*call) (reply, bool)) {
		all = append(all, &resource{url: "http://" + host + ".trap.test" + path, moves: true, quiet: true, trap: true, noisy: true, never304: true, instead: instead})
	}
	to := func(status int, location string, header ...string) reply {
		a := reply{status: status}
		a.set("Location", location)
		for i := 0; i < len(header); i += 2 {
			a.set(header[i], header[i+1])
		}
		return a
	}
	for i, feed := range known {
		// A copy of a feed first, with another hub, and then a redirect to it,
		// with the longest pause that counts. (A temporary one is a request like that for a new URL of the host.)
		for j, status := range []int{http.StatusMovedPermanently, http.StatusPermanentRedirect} {
			trap(fmt.Sprintf("copy%d%d", i, j), "/feed", func(c *call) (reply, bool) {
				if c.age < time.Duration(j+1)*12*time.Hour {
					copied, resource := *c, *feed
					resource.channel = `<link rel="hub" href="http://trap.test/hub"/>`
					copied.resource = &resource
					a := reply{status: 200, body: copied.document(c.version())}
					a.set("Content-Type", "application/rss+xml")
					return a, true
				}
				a := to(status, feed.url, "Retry-After", "604800")
				a.retryAfter, a.pause = 7*day, 7*day
				return a, true
			})
		}
	}
	trap("frozen", "/feed", func(c *call) (reply, bool) {
		a := c.usual()
		a.set("Retry-After", "604800")
		a.retryAfter, a.pause = 7*day, 7*day
		return a, true
	})
	trap("circle", "/a", func(*call) (reply, bool) { return to(301, "/b"), true })
	trap("circle", "/b", func(*call) (reply, bool) { return to(308, "/a"), true })
	return all
}

// adversary requests traps, and new URLs without end, until the context ends.
func (sim *simulation) adversary(ctx context.Context, traps []*resource) {
	r := newReader(sim, 0)
	defer r.client.CloseIdleConnections()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-time.After(20 * time.Minute):
		}
		ask := []string{traps[r.rng.IntN(len(traps))].url, fmt.Sprintf("%s%d", endlessURL, n), fmt.Sprintf("http://nowhere%d.test/", n%500)}
		var crowd sync.WaitGroup
		for _, url := range ask {
			q, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+gateway+"/"+url, nil)
			if err != nil {
				panic(err)
			}
			crowd.Go(func() {
				if resp, err := r.client.Do(q); err == nil {
					resp.Body.Close()
				}
			})
		}
		crowd.Wait()
	}
}

// A publisher decides nothing about the feeds of others: neither what their readers get
// nor when they are polled.
func TestAdversary(t *testing.T) {
	known := knownFeeds()
	hostile := traps(known)
	all := append(known, hostile...)
	all = append(all, &resource{url: endlessURL, quiet: true, moves: true, trap: true, instead: func(c *call) (reply, bool) {
		return reply{status: 404}, c.n%50 != 0 // a few are feeds
	}})
	simulate(t, *firstSeed, all, func(sim *simulation) {
		ctx, stop := context.WithCancel(context.Background())
		var crowd sync.WaitGroup
		crowd.Go(func() { sim.adversary(ctx, hostile) })
		sim.live(len(habits), 3*day)
		stop()
		crowd.Wait()
		sim.settle()
		for _, s := range sim.feeds {
			sim.checkRhythm(s)
		}
	}, func(sim *simulation) { sim.always = true })
}

// checkRhythm checks that a feed was polled about as often as its hints allow, all the time.
func (sim *simulation) checkRhythm(s *feed) {
	sim.origins.mu.Lock()
	defer sim.origins.mu.Unlock()
	var last time.Time
	for _, v := range sim.origins.polls {
		if v.url != s.url {
			continue
		}
		longest := max(floor, s.wait) + 26*time.Hour // a back-off included
		if s.instead == nil {
			longest = 2*max(floor, s.wait) + 3*time.Hour
		}
		if !last.IsZero() && v.at.Sub(last) > longest {
			sim.violation("%s was not polled for %v", s.url, v.at.Sub(last))
		}
		last = v.at
	}
}
