// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"math/rand/v2"
	"net/netip"
	"testing"

	"code.dny.dev/ssrf"
)

// registries judges addresses by the registries of IANA alone, as another program has read them.
var registries = ssrf.New()

// otherThanRegistries are the ranges about which Pollard and that program differ, in which Pollard allows what it
// refuses, or the other way round.
var otherThanRegistries = []struct {
	prefix  string
	allowed bool // by Pollard
	why     string
}{
	{"168.63.129.16/32", false, "a public address that in Azure leads to the machine's host"},
	{"192.31.196.0/24", true, "AS112 (RFC 7535): the registry calls it globally reachable, and only name servers are there"},
	{"192.52.193.0/24", true, "AMT (RFC 7450): globally reachable, and relays of multicast are there"},
	{"192.175.48.0/24", true, "AS112 (RFC 7534): globally reachable, as above"},
	{"2620:4f:8000::/48", true, "AS112 (RFC 7534): globally reachable, as above"},
}

// checkRanges fails if the guard judges an address in another way than the registries do, and
// otherThanRegistries does not have it. An address that leads to an IPv4 address is judged by that one: mapped, by NAT64, by which
// machines without IPv4 reach it, and by 6to4.
func checkRanges(t *testing.T, a netip.Addr) {
	judged := a.Unmap()
	if inner, ok := embedded(judged); ok {
		judged = inner
	}
	want := registries.SafeAddr(judged) == nil
	for _, d := range otherThanRegistries {
		if netip.MustParsePrefix(d.prefix).Contains(judged) {
			want = d.allowed
		}
	}
	if err := (&guard{}).check(a, 443); (err == nil) != want {
		t.Errorf("%s: %v; by the registries it is public: %v", a, err, want)
	}
}

// wrapped returns the addresses that lead to an IPv4 address.
func wrapped(a netip.Addr) []netip.Addr {
	b := a.As4()
	sixToFour, nat64 := netip.MustParseAddr("2002::1").As16(), netip.MustParseAddr("64:ff9b::").As16()
	copy(sixToFour[2:], b[:])
	copy(nat64[12:], b[:])
	return []netip.Addr{netip.AddrFrom16(a.As16()), netip.AddrFrom16(sixToFour), netip.AddrFrom16(nat64)}
}

// The guard and another program that has read the same registries agree at both ends of each range of either, next
// to them, within them, and anywhere else.
func TestRangesOfRegistries(t *testing.T) {
	for _, d := range otherThanRegistries {
		if a := netip.MustParsePrefix(d.prefix).Addr(); (registries.SafeAddr(a) == nil) == d.allowed {
			t.Errorf("%s is no longer different: %s", d.prefix, d.why)
		}
	}

	random := rand.New(rand.NewPCG(1, 2))
	within := func(p netip.Prefix) netip.Addr {
		b := p.Addr().AsSlice()
		for i := range b {
			fixed := min(max(p.Bits()-8*i, 0), 8)
			b[i] |= byte(random.UintN(256)) >> fixed
		}
		a, _ := netip.AddrFromSlice(b)
		return a
	}
	last := func(p netip.Prefix) netip.Addr {
		b := p.Addr().AsSlice()
		for i := range b {
			b[i] |= byte(0xff >> min(max(p.Bits()-8*i, 0), 8))
		}
		a, _ := netip.AddrFromSlice(b)
		return a
	}
	ranges := []netip.Prefix{globalUnicast, nat64, sixToFour, netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0"), netip.MustParsePrefix("::/64")}
	ranges = append(ranges, ssrf.IPv4DeniedPrefixes...)
	ranges = append(ranges, ssrf.IPv6DeniedPrefixes...)
	for _, r := range reserved {
		ranges = append(ranges, r.prefix)
	}
	for _, p := range ranges {
		addresses := []netip.Addr{p.Addr(), p.Addr().Prev(), last(p), last(p).Next()}
		for range 200 {
			addresses = append(addresses, within(p))
		}
		for _, a := range addresses {
			if !a.IsValid() {
				continue // before the first address, or after the last
			}
			checkRanges(t, a)
			if a.Is4() {
				for _, w := range wrapped(a) {
					checkRanges(t, w)
				}
			}
			if t.Failed() {
				return
			}
		}
	}
}
