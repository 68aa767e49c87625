// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/feedpollard/pollard/internal/feedurl"
	"github.com/feedpollard/pollard/policy"
)

// unpaced lets tests in real time go on at once.
var unpaced = []HostRule{{Pattern: "*", Spacing: -1}}

// loopback is the range in which tests listen.
var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}

func TestGuardAddresses(t *testing.T) {
	for _, tt := range []struct {
		address string
		kind    string // "": allowed
	}{
		{"1.1.1.1", ""}, {"93.184.216.34", ""}, {"9.255.255.255", ""}, {"11.0.0.0", ""},
		{"0.0.0.0", "unspecified"}, {"0.1.2.3", "unspecified"},
		{"10.0.0.5", "private"}, {"10.255.255.255", "private"},
		{"100.63.255.255", ""}, {"100.64.0.0", "carrier-grade NAT"}, {"100.127.255.255", "carrier-grade NAT"}, {"100.128.0.0", ""},
		{"127.0.0.1", "loopback"}, {"127.255.255.254", "loopback"},
		{"168.63.129.15", ""}, {"168.63.129.16", "private"}, {"::ffff:168.63.129.16", "private"}, {"169.254.169.254", "link-local"},
		{"172.15.255.255", ""}, {"172.16.0.1", "private"}, {"172.31.255.255", "private"}, {"172.32.0.0", ""},
		{"192.0.0.1", "reserved"}, {"192.0.2.1", "documentation"}, {"192.0.3.1", ""}, {"192.88.99.1", "reserved"},
		{"192.168.1.1", "private"}, {"192.169.0.0", ""},
		{"198.17.255.255", ""}, {"198.18.0.1", "benchmarking"}, {"198.19.255.255", "benchmarking"}, {"198.20.0.0", ""},
		{"198.51.100.1", "documentation"}, {"203.0.113.1", "documentation"},
		{"223.255.255.255", ""}, {"224.0.0.1", "multicast"}, {"239.255.255.255", "multicast"},
		{"240.0.0.1", "reserved"}, {"255.255.255.255", "broadcast"},

		{"2606:4700::1", ""}, {"2a00:1450::1", ""},
		{"::", "unspecified"}, {"::1", "loopback"},
		{"::7f00:1", "reserved"}, // IPv4-compatible
		{"::ffff:127.0.0.1", "loopback"}, {"::ffff:10.0.0.5", "private"}, {"::ffff:1.1.1.1", ""},
		{"::ffff:0:127.0.0.1", "reserved"}, // IPv4-translated
		{"64:ff9b::127.0.0.1", "loopback"}, {"64:ff9b::10.0.0.5", "private"}, {"64:ff9b::1.1.1.1", ""},
		{"64:ff9b:1::1.1.1.1", "reserved"},
		{"2002:7f00:1::1", "loopback"}, {"2002:c0a8:101::", "private"}, {"2002:101:101::1", ""},
		{"2001:0:1:2::3", "reserved"}, // Teredo
		{"2001:10::1", "reserved"},    // ORCHID
		{"2001:db8::1", "documentation"}, {"3fff::1", "documentation"},
		{"fc00::1", "private"}, {"fdff::1", "private"}, {"fe80::1", "link-local"}, {"fe80::1%eth0", "link-local"},
		{"fec0::1", "reserved"}, {"ff02::1", "multicast"}, {"100::1", "reserved"}, {"5f00::1", "reserved"}, {"4000::1", "reserved"},
	} {
		g := guard{}
		err := g.check(netip.MustParseAddr(tt.address), 443)
		if tt.kind == "" {
			if err != nil {
				t.Errorf("%s: %v, want allowed", tt.address, err)
			}
			continue
		}
		if !forbidden(err) || !strings.Contains(err.Error(), " "+tt.kind+" address") {
			t.Errorf("%s: %v, want refused as %s", tt.address, err, tt.kind)
		}
	}
}

func forbidden(err error) bool {
	_, ok := errors.AsType[*AddressError](err)
	return ok
}

func TestGuardPrivateUpstreams(t *testing.T) {
	private := []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("fd00::/8")}
	for _, tt := range []struct {
		address string
		port    uint16
		moved   bool
		want    string // of the error; "": allowed
	}{
		{"10.1.2.3", 80, false, ""},
		{"10.2.0.1", 80, false, "10.2.0.1 is a private address: add it to private_upstreams to allow it"},
		{"::ffff:10.1.2.3", 80, false, ""},
		{"64:ff9b::10.1.2.3", 80, false, ""},
		{"64:ff9b::10.2.2.3", 80, false, "10.2.2.3 is a private address: add it to private_upstreams to allow it"},
		{"fd12::1", 80, false, ""},
		{"10.1.2.3", 25, false, ""}, // the operator names it
		{"1.1.1.1", 25, false, "1.1.1.1:25 is at a port of another protocol than HTTP"},
		{"1.1.1.1", 8080, false, ""},
		{"10.1.2.3", 80, true, "10.1.2.3 is a private address: a redirect from a public address may not lead there"},
		{"1.1.1.1", 80, true, ""},
	} {
		g := guard{private: private, moved: tt.moved}
		err := g.check(netip.MustParseAddr(tt.address), tt.port)
		if got := errorText(err); got != tt.want {
			t.Errorf("%s port %d (moved: %v): %q, want %q", tt.address, tt.port, tt.moved, got, tt.want)
		}
	}
}

// A feed that is configured may be reached wherever it is, unless a public address redirects
// there. Of others, a gateway has the words.
func TestGuardOwn(t *testing.T) {
	c := New()
	defer c.Close()
	own := mustParse(t, "http://10.1.2.3/feed")
	c.Apply(Settings{Own: func(u feedurl.URL) bool { return u == own }})
	for _, tt := range []struct {
		url   string
		moved bool
		want  bool
	}{
		{"http://10.1.2.3/feed", false, true},
		{"http://10.1.2.3/feed", true, false},
		{"http://10.1.2.3/other", false, false},
		{"http://10.1.2.4/feed", false, false},
	} {
		u := mustParse(t, tt.url)
		if err := c.guardOf(u, tt.moved).checkHost(u); (err == nil) != tt.want {
			t.Errorf("%s (moved: %v): %v", tt.url, tt.moved, err)
		} else if err != nil && !tt.moved && err.Error() != PrivateAddress(u) {
			t.Errorf("%s: %v, want %s", tt.url, err, PrivateAddress(u))
		}
	}
}

func mustParse(t *testing.T, text string) feedurl.URL {
	t.Helper()
	u, err := feedurl.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// Whatever notation a URL has for the loopback address, a poll does not get there.
func TestGuardNotations(t *testing.T) {
	asked := make(chan string, 100)
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { asked <- r.Host }))
	defer s.Close()
	_, port, _ := net.SplitHostPort(s.Listener.Addr().String())
	c := New()
	defer c.Close()
	c.Apply(Settings{Hosts: unpaced})
	for _, host := range []string{
		"127.0.0.1", "127.0.0.2", "localhost", "LOCALHOST", "localhost.", "127.0.0.1.", "[::1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]",
		"[0:0:0:0:0:ffff:127.0.0.1]", "[::127.0.0.1]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]", "0.0.0.0", "[::]",
		"2130706433", "0x7f000001", "0X7F000001", "017700000001", "127.1", "127.0.1", "0177.0.0.1", "0x7f.0.0.1", "0x7f.1", "127.0.0.1.0x",
		"00000127.0.0.1", "127.0.0.01", "127.0.0.0x1", "4294967297", "\uff11\uff12\uff17.0.0.1", "127\u30020\u30020\u30021",
	} {
		raw := "http://" + host + ":" + port + "/"
		if _, err := feedurl.Parse(raw); err != nil {
			continue // it is not a URL of a feed
		}
		a := c.Poll(t.Context(), ask(raw))
		if a.Failure != policy.FailureAddress && a.Failure != policy.FailureNotStarted {
			t.Errorf("%s: failure %q (%v), want %q", host, a.Failure, a.Err, policy.FailureAddress)
		}
		if !a.Asked.IsZero() {
			t.Errorf("%s was asked", host)
		}
	}
	if len(asked) != 0 {
		t.Errorf("%d requests came through, the first to %q", len(asked), <-asked)
	}
}

// A forbidden address waits for nothing.
func TestRefusedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New()
		defer c.Close()
		for range 5 {
			if a := c.Poll(t.Context(), ask("http://192.168.1.1/")); a.Failure != policy.FailureAddress || a.Err == nil || !a.Asked.IsZero() || a.At.IsZero() {
				t.Errorf("%+v", a)
			}
		}
	})
}

// guardedClient polls over the network as if each host had been resolved to the given address.
func (n *memnet) guardedClient(t *testing.T, settings Settings, addresses map[string]string) *Client {
	names := make(map[netip.Addr]string)
	for name, address := range addresses {
		names[netip.MustParseAddr(address)] = name
	}
	return n.lookedUp(t, settings, func(name string) []netip.Addr {
		return []netip.Addr{netip.MustParseAddr(addresses[name])}
	}, func(a netip.Addr) string { return cmp.Or(names[a], a.String()) })
}

// lookedUp polls over the network with a name server of its own, past the real guard. The origin at an address
// is that of a name.
func (n *memnet) lookedUp(t *testing.T, settings Settings, lookup func(name string) []netip.Addr, at func(netip.Addr) (name string)) *Client {
	c := n.client(t, settings)
	c.dial = nil
	c.lookup = func(_ context.Context, name string) ([]netip.Addr, error) { return lookup(name), nil }
	c.reach = func(ctx context.Context, network, address string) (net.Conn, error) {
		if err := ctx.Value(guardKey{}).(*guard).control(ctx, network, address, nil); err != nil {
			return nil, &net.OpError{Op: "dial", Net: network, Err: err}
		}
		a := netip.MustParseAddrPort(address)
		return n.dial(ctx, network, net.JoinHostPort(at(a.Addr()), strconv.Itoa(int(a.Port()))))
	}
	return c
}

func TestGuardOnEachHop(t *testing.T) {
	addresses := map[string]string{"public.example": "93.184.216.34", "other.example": "93.184.216.35", "nas.example": "10.0.0.5", "wiki.example": "10.0.0.6", "secret.example": "10.9.9.9"}
	for _, tt := range []struct {
		name  string
		chain []string
		want  string // part of the error; "": followed to the end
	}{
		{"public", []string{"public.example", "other.example"}, ""},
		{"private, listed", []string{"nas.example"}, ""},
		{"private to private, listed", []string{"nas.example", "wiki.example"}, ""},
		{"private to public", []string{"nas.example", "public.example"}, ""},
		{"private, not listed", []string{"secret.example"}, "secret.example: its address is a private address: add it to private_upstreams to allow it"},
		{"private to private, not listed", []string{"nas.example", "secret.example"}, "add it to private_upstreams"},
		{"public to private, not listed", []string{"public.example", "secret.example"}, "its address is a private address: a redirect from a public address may not lead there"},
		{"public to private, listed", []string{"public.example", "nas.example"}, "its address is a private address: a redirect from a public address may not lead there"},
		{"private to public to private", []string{"nas.example", "public.example", "wiki.example"}, "a redirect from a public address may not lead there"},
	} {
		bubble(t, tt.name, func(t *testing.T) {
			var n memnet
			for i, host := range tt.chain {
				if i+1 < len(tt.chain) {
					n.say(host+":80", answerText(302, "", "Location: http://"+tt.chain[i+1]+"/"))
				} else {
					n.say(host+":80", ok(feedBody))
				}
			}
			c := n.guardedClient(t, Settings{Private: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/24")}}, addresses)
			a := c.Poll(t.Context(), ask("http://"+tt.chain[0]+"/"))
			if tt.want == "" {
				if a.Failure != "" || len(n.requests()) != len(tt.chain) {
					t.Errorf("failure %q: %v", a.Failure, a.Err)
				}
				return
			}
			if a.Failure != policy.FailureAddress || !forbidden(a.Err) || !strings.Contains(a.Err.Error(), tt.want) {
				t.Errorf("failure %q: %v, want %q", a.Failure, a.Err, tt.want)
			}
			if got := len(n.requests()); got != len(tt.chain)-1 {
				t.Errorf("%d requests, want %d", got, len(tt.chain)-1)
			}
		})
	}
}

// FuzzGuard judges addresses. Addresses that Go takes for private are never public, however
// it is wrapped.
func FuzzGuard(f *testing.F) {
	for _, s := range []string{"127.0.0.1", "::1", "::ffff:10.0.0.1", "64:ff9b::a9fe:a9fe", "2002:7f00:1::", "2001::1", "fe80::1", "8.8.8.8", "2606:4700::1111", "64:ff9b::808:808", "100.64.0.1"} {
		a := netip.MustParseAddr(s)
		f.Add(a.AsSlice())
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		a, ok := netip.AddrFromSlice(raw)
		if !ok {
			return
		}
		end, kind := destination(a)
		public := kind == ""
		for _, seen := range []netip.Addr{a, a.Unmap(), end} {
			if public && (!seen.IsGlobalUnicast() || seen.IsPrivate()) {
				t.Errorf("%v, that is %v, counts as public", a, end)
			}
		}
		if b := a.As16(); public && a.Is6() && !a.Is4In6() {
			for name, inner := range map[string][]byte{"6to4": b[2:6], "NAT64": b[12:]} {
				wrapped, _ := netip.AddrFromSlice(inner)
				in := sixToFour.Contains(a) && name == "6to4" || nat64.Contains(a) && name == "NAT64"
				if in && (!wrapped.IsGlobalUnicast() || wrapped.IsPrivate()) {
					t.Errorf("%v leads to %v by %s", a, wrapped, name)
				}
			}
		}
		// IPv4 has one more spelling, which changes nothing.
		if a.Is4() {
			if _, other := destination(netip.AddrFrom16(a.As16())); other != kind {
				t.Errorf("%v is %q, and mapped %q", a, kind, other)
			}
		}
		if err := (&guard{}).check(a, 80); (err == nil) != public {
			t.Errorf("%v is %q, and check says %v", a, kind, err)
		}
	})
}
