// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/feedpollard/pollard/policy"
)

// inTurn makes a poll as the engine does: it waits for its turn without a slot.
func inTurn(t *testing.T, c *Client, a policy.Ask) (policy.Answer, time.Duration) {
	began := time.Now()
	for {
		s, err := c.Acquire(patient(t), a.URL)
		if err != nil {
			t.Error(err)
			return policy.Answer{}, 0
		}
		wait := s.Turn(t.Context(), a.Standing)
		if wait <= 0 {
			return s.Poll(t.Context(), a), time.Since(began)
		}
		s.Release()
		time.Sleep(wait)
	}
}

// However many names lead to one address, it gets so many requests at once and so many a second.
func TestAddressSpacing(t *testing.T) {
	addr := netip.MustParseAddr
	one := func(string) []netip.Addr { return []netip.Addr{addr("93.184.216.34")} }
	for _, test := range []struct {
		name     string
		lookup   func(name string) []netip.Addr
		standing policy.Standing
		polls    int
		atOnce   int
		rate     float64
		within   time.Duration // all are made
	}{
		{"new feeds", one, policy.StandingNew, 60, unknownAtOnce, unknownRate, time.Minute},
		{"feeds of strangers", one, policy.StandingStranger, 60, unknownAtOnce, unknownRate, time.Minute},
		{"an import of 300 blogs", one, policy.StandingNew, 300, unknownAtOnce, unknownRate, 6 * time.Minute},
		{"known feeds", one, policy.StandingKnown, 300, knownAtOnce, knownRate, 40 * time.Second},
		{"one network of IPv6", func(name string) []netip.Addr {
			return []netip.Addr{addr(fmt.Sprintf("2606:2800:220:1::%x", len(name)*1000+int(name[0])))}
		}, policy.StandingNew, 30, unknownAtOnce, unknownRate, time.Minute},
		{"NAT64", func(name string) []netip.Addr {
			var n byte
			_, _ = fmt.Sscanf(name, "h%d.", &n)
			return []netip.Addr{netip.AddrFrom16([16]byte{0, 0x64, 0xff, 0x9b, 12: 93, 13: 184, 14: 216, 15: n})}
		}, policy.StandingNew, 60, 60, 1, time.Second},
		{"the operator's own network", func(string) []netip.Addr { return []netip.Addr{addr("10.0.0.5")} }, policy.StandingNew, 60, 60, 1, time.Second},
	} {
		bubble(t, test.name, func(t *testing.T) {
			var n memnet
			n.say("all:80", ok(feedBody))
			settings := Settings{Private: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}
			c := n.lookedUp(t, settings, test.lookup, func(netip.Addr) string { return "all" })
			var polls sync.WaitGroup
			for i := range test.polls {
				polls.Go(func() {
					a := ask(fmt.Sprintf("http://h%d.site%d.example/", i, i))
					a.Standing = test.standing
					if a, took := inTurn(t, c, a); a.Failure != "" || took > test.within {
						t.Errorf("poll %d: failure %q (%v) after %v", i, a.Failure, a.Err, took)
					}
				})
			}
			polls.Wait()
			sent := n.requests()
			for i := range sent { // in any stretch of time
				for j := i; j < len(sent); j++ {
					took := sent[j].at.Sub(sent[i].at)
					if most := float64(test.atOnce) + 1 + test.rate*took.Seconds(); float64(j-i+1) > most {
						t.Fatalf("%d requests in %v", j-i+1, took)
					}
				}
			}
		})
	}
}

// A poll that has to wait says until when, and has no connection. Feeds of strangers cannot take all
// of the time that feeds of others may wait.
func TestTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dialed := 0
		c := new(memnet).lookedUp(t, Settings{}, func(string) []netip.Addr { return []netip.Addr{netip.MustParseAddr("93.184.216.34")} },
			func(netip.Addr) string { dialed++; return "" })
		turn := func(host string, standing policy.Standing) time.Duration {
			s, err := c.Acquire(t.Context(), mustParse(t, "http://"+host+".example/"))
			if err != nil {
				t.Fatal(err)
			}
			defer s.Release()
			return s.Turn(t.Context(), standing)
		}
		for i := range 1000 {
			if wait := turn(fmt.Sprint("s", i), policy.StandingStranger); wait > maxStranger {
				t.Fatalf("stranger %d waits for %v", i, wait)
			}
		}
		first := turn("new", policy.StandingNew)
		if first < maxStranger || first > maxStranger+2*time.Second {
			t.Errorf("a new feed of the household waits for %v", first)
		}
		time.Sleep(10 * time.Second)
		if again := turn("new", policy.StandingNew); again != first-10*time.Second {
			t.Errorf("after 10 s of %v it waits for %v", first, again)
		}
		if wait := turn("known", policy.StandingKnown); wait != 0 {
			t.Errorf("a known feed waits for %v", wait)
		}
		late := ask("http://late.example/")
		late.Standing = policy.StandingStranger
		a := c.Poll(t.Context(), late)
		if a.Failure != policy.FailureNotStarted || a.Holder != policy.HintAddress || !a.NotBefore.After(time.Now()) || !a.Unsent() {
			t.Errorf("a poll that did not ask for its turn: failure %q, held by %q until %v", a.Failure, a.Holder, a.NotBefore)
		}
		if dialed != 0 {
			t.Errorf("%d connections", dialed)
		}
	})
}

// The address that was looked up and checked is dialled, and the next one only if it has a turn now.
func TestDialledAsChecked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		public, other, private := netip.MustParseAddr("93.184.216.34"), netip.MustParseAddr("93.184.216.35"), netip.MustParseAddr("192.168.1.1")
		lookups := 0
		var dialed []netip.Addr
		var n memnet
		n.say("other:80", ok(feedBody))
		c := n.lookedUp(t, Settings{}, func(string) []netip.Addr {
			if lookups++; lookups > 1 {
				return []netip.Addr{private} // DNS rebinding
			}
			return []netip.Addr{private, public, other}
		}, func(a netip.Addr) string {
			dialed = append(dialed, a)
			return map[netip.Addr]string{other: "other"}[a]
		})
		if a, _ := inTurn(t, c, ask("http://two.example/")); a.Failure != "" || a.Private {
			t.Errorf("failure %q: %v", a.Failure, a.Err)
		}
		if fmt.Sprint(dialed) != fmt.Sprint([]netip.Addr{public, other}) || lookups != 1 {
			t.Errorf("dialled %v after %d lookups", dialed, lookups)
		}
		for c.addresses.allow(other, time.Now()) { // others use up its turns
		}
		lookups, dialed = 0, nil
		if a, _ := inTurn(t, c, ask("http://three.example/")); a.Failure != policy.FailureConnect || len(dialed) != 1 {
			t.Errorf("failure %q (%v), dialled %v", a.Failure, a.Err, dialed)
		}
	})
}

// A name may have thousands of addresses, all of them other people's.
func TestManyAddressesOfAName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var many []netip.Addr
		for i := range 4000 {
			many = append(many, netip.AddrFrom4([4]byte{93, 184, byte(i >> 8), byte(i)}))
		}
		dialed := 0
		c := new(memnet).lookedUp(t, Settings{}, func(string) []netip.Addr { return many }, func(netip.Addr) string { dialed++; return "" })
		if a, _ := inTurn(t, c, ask("http://many.example/")); a.Failure != policy.FailureConnect || dialed != maxAddresses {
			t.Errorf("failure %q (%v) after %d connections", a.Failure, a.Err, dialed)
		}
	})
}

// A chain of redirects over many hosts ends soon.
func TestRedirectsToOtherHosts(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		var n memnet
		c := New(WithDial(func(ctx context.Context, network, address string) (net.Conn, error) {
			n.say("any:80", answerText(302, "", fmt.Sprintf("Location: http://h%d.example/", len(n.requests()))))
			return n.dial(ctx, network, "any:80")
		}))
		t.Cleanup(c.Close)
		if got := c.Poll(patient(t), ask("http://start.example/")); got.Failure != policy.FailureRedirect || len(n.requests()) != 1+maxHops {
			t.Errorf("%d requests, failure %q: %v; want %d", len(n.requests()), got.Failure, got.Err, 1+maxHops)
		}
	})
}
