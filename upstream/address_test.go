// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"testing"
	"testing/synctest"

	"github.com/feedpollard/pollard/policy"
)

// The address that was looked up and checked is dialled, and then the next one.
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
		if a := c.Poll(patient(t), ask("http://two.example/")); a.Failure != "" || a.Private {
			t.Errorf("failure %q: %v", a.Failure, a.Err)
		}
		if fmt.Sprint(dialed) != fmt.Sprint([]netip.Addr{public, other}) || lookups != 1 {
			t.Errorf("dialled %v after %d lookups", dialed, lookups)
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
		if a := c.Poll(patient(t), ask("http://many.example/")); a.Failure != policy.FailureConnect || dialed != maxAddresses {
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
