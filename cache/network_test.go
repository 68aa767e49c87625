// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"fmt"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/feedpollard/pollard/policy"
)

// unsent is the answer of a network in which nothing could be sent.
func unsent(failure policy.Failure, err error) policy.Answer {
	return policy.Answer{Failure: failure, Err: fmt.Errorf("looking up the address: %w", err)}
}

// Errors of the system without a network, and of hosts that refuse.
var (
	noResolver = unsent(policy.FailureDNS, &net.DNSError{Err: "i/o timeout", IsTimeout: true})
	noRoute    = unsent(policy.FailureConnect, &net.OpError{Op: "dial", Err: syscall.ENETUNREACH})
	noName     = unsent(policy.FailureDNS, &net.DNSError{Err: "no such host", IsNotFound: true})
	refused    = unsent(policy.FailureConnect, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED})
	noProxy    = unsent(policy.FailureProxy, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED})
)

// What is remembered of a name that could not be looked up comes with the time of that.
func TestReadersLearnWhenANameWasTried(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		g := newGateway(t, func(policy.Ask) policy.Answer { return noName })
		g.open()
		if w := g.get(feedURL); w.Code != 502 || strings.Contains(w.Body.String(), "tried") {
			t.Errorf("just now: %d %s", w.Code, w.Body)
		}
		time.Sleep(30 * time.Second)
		wantBody(t, g.get(feedURL), 502, "no such host; tried 30 s ago")
	})
}

// A network that is away is recognized with a feed or two as well as with many, and when
// it is back they are polled soon. A host that is down, while the network is there, is
// asked less and less often.
func TestNetworkAwayWithFewHosts(t *testing.T) {
	good := ok(rss(2, ""), "ETag", `"v"`, "Cache-Control", "max-age=3600")
	feeds := func(n int) (urls []string) {
		for i := range n {
			urls = append(urls, fmt.Sprintf("https://host%d.test/feed", i))
		}
		return urls
	}
	for name, test := range some(map[string]struct {
		feeds   int
		away    map[string]policy.Answer // by URL; all others are the first one's
		fresh   bool                     // none of them has answered before
		offline bool
	}{
		"one, without a resolver":       {feeds: 1, away: map[string]policy.Answer{"": noResolver}, offline: true},
		"one, without a route":          {feeds: 1, away: map[string]policy.Answer{"": noRoute}, offline: true},
		"one, from the start":           {feeds: 1, away: map[string]policy.Answer{"": noRoute}, fresh: true, offline: true},
		"one, behind a dead proxy":      {feeds: 1, away: map[string]policy.Answer{"": noProxy}, offline: true},
		"two":                           {feeds: 2, away: map[string]policy.Answer{"": noRoute}, offline: true},
		"many, whatever is said":        {feeds: 3, away: map[string]policy.Answer{"": noName}, offline: true},
		"one that refuses":              {feeds: 1, away: map[string]policy.Answer{"": refused}},
		"one whose name does not exist": {feeds: 1, away: map[string]policy.Answer{"": noName}},
		"one of two":                    {feeds: 2, away: map[string]policy.Answer{"https://host0.test/feed": noRoute, "": good}},
		"one of two, for a slow other":  {feeds: 2, away: map[string]policy.Answer{"https://host0.test/feed": noRoute, "": ok(rss(2, ""), "Cache-Control", "max-age=36000")}},
	}) {
		bubble(t, name, func(t *testing.T) {
			away := func(ask policy.Ask) policy.Answer {
				if a, ok := test.away[ask.URL.String()]; ok {
					return a
				}
				return test.away[""]
			}
			g := newGateway(t, func(policy.Ask) policy.Answer { return test.away[""] })
			if !test.fresh {
				g.origin.answers(func(policy.Ask) policy.Answer { return good })
			}
			g.settings.Prefetch, g.settings.Feeds = true, feeds(test.feeds)
			g.open()
			if !test.fresh {
				time.Sleep(30 * time.Minute) // all have a version
			}
			g.origin.answers(away)
			sent := g.origin.polls()
			for range 5 * 60 {
				time.Sleep(time.Minute)
				if offline := g.Summary(t.Context()).Offline; offline && !test.offline {
					t.Fatal("the network is said to be away")
				}
			}
			if offline := g.Summary(t.Context()).Offline; offline != test.offline {
				t.Fatalf("after five hours, offline is %v", offline)
			}
			tries := float64(g.origin.polls()-sent) / float64(test.feeds)
			if least := 25.0; test.offline && tries < least {
				t.Errorf("%v polls of each were tried within five hours, want %v", tries, least)
			}
			if most := 35.0; !test.offline && tries > most {
				t.Errorf("%v polls of each were tried within five hours, want at most %v", tries, most)
			}
			if !test.offline {
				return
			}
			g.origin.answers(func(policy.Ask) policy.Answer { return good })
			sent = g.origin.polls()
			time.Sleep(11 * time.Minute)
			if n := g.origin.polls() - sent; n != test.feeds {
				t.Errorf("%d polls in the eleven minutes after the network was back, want one of each of %d feeds", n, test.feeds)
			}
			if g.Summary(t.Context()).Offline {
				t.Error("the network is still said to be away")
			}
		})
	}
}
