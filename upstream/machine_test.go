// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/feedpollard/pollard/internal/feedurl"
)

// at makes the addresses of interfaces, with the lengths of their networks.
func at(prefixes ...string) (all []net.Addr) {
	for _, text := range prefixes {
		p := netip.MustParsePrefix(text)
		all = append(all, &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())})
	}
	return all
}

// What only this machine may reach, though its address is public, is private: its own other ports, and
// others on its IPv6 links.
func TestGuardOfMachine(t *testing.T) {
	const own, network = " is an address of this machine: private_upstreams ", " is an address of this machine's network: private_upstreams "
	c := New()
	defer c.Close()
	c.machine.interfaces = func() ([]net.Addr, error) {
		return at("127.0.0.1/8", "9.5.5.5/24", "192.168.1.2/24", "2a01:4f8:1:2::5/48", "2a01:4f8:9:9::1/128", "2a01:4f8:7::1/112", "fe80::1/64", "fd00::1/64"), nil
	}
	c.Apply(Settings{
		Private: []netip.Prefix{netip.MustParsePrefix("2a01:4f8:1:2::77/128")},
		Chosen:  func(u feedurl.URL) bool { return u.Origin() == "http://9.5.5.5:8088" },
	})
	for _, tt := range []struct{ url, want string }{
		{"http://9.5.5.5/", ""}, {"https://9.5.5.5/", ""}, {"http://9.5.5.5:443/", ""}, {"https://9.5.5.5:80/", ""},
		{"http://9.5.5.5:8080/", "9.5.5.5" + own + "9.5.5.5"},
		{"https://9.5.5.5:8443/", "9.5.5.5" + own + "9.5.5.5"},
		{"https://9.5.5.5:8088/", "9.5.5.5" + own + "9.5.5.5"}, // the port is chosen with http
		{"http://9.5.5.5:8088/", ""}, {"http://9.5.5.5:8088/other?x", ""},
		{"http://9.5.5.6:8080/", ""}, // another machine
		{"http://[::ffff:9.5.5.5]:8080/", "9.5.5.5" + own + "9.5.5.5"},
		{"http://[64:ff9b::9.5.5.5]:8080/", "64:ff9b::905:505" + own + "9.5.5.5"},
		{"http://[2002:905:505::1]:8080/", "2002:905:505::1" + own + "9.5.5.5"},
		{"http://[64:ff9b::9.5.5.5]/", ""},
		{"http://[2a01:4f8:1:2::5]/", ""},
		{"http://[2a01:4f8:1:2::5]:8080/", "2a01:4f8:1:2::5" + own + "2a01:4f8:1:2::5"},
		{"http://[2a01:4f8:1:2::9]/", "2a01:4f8:1:2::9" + network + "2a01:4f8:1:2::9"},
		{"http://[2a01:4f8:1:2::77]:8080/", ""}, // is in private_upstreams
		{"http://[2a01:4f8:1:3::9]/", ""},       // in the /48, which may be others'
		{"http://[2a01:4f8:9:9::2]:8080/", ""}, {"http://[2a01:4f8:7::ffff]/", "2a01:4f8:7::ffff" + network + "2a01:4f8:7::ffff"}, {"http://[2a01:4f8:7::1:0]/", ""},
	} {
		u := mustParse(t, tt.url)
		for _, moved := range []bool{false, true} {
			if got := errorText(c.guardOf(u, moved).checkHost(u)); got != tt.want {
				t.Errorf("%s (moved: %v): %q, want %q", tt.url, moved, got, tt.want)
			}
		}
	}
	// Of a name, readers learn no address.
	g := c.guardOf(mustParse(t, "http://blog.example:8080/"), false)
	if err, ok := errors.AsType[*AddressError](g.check(netip.MustParseAddr("9.5.5.5"), 8080)); !ok || err.Reason != "an address of this machine: add it to private_upstreams to allow it" {
		t.Errorf("a name with an own address: %+v", err)
	}
	// A line of the configuration chooses a feed, not the hub that the feed names.
	c.reach = func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("connected") }
	if _, _, err := c.Post(t.Context(), mustParse(t, "http://9.5.5.5:8088/hub"), nil, false); !forbidden(err) {
		t.Errorf("a hub at an own address: %v", err)
	}
}

// The addresses are looked up once a minute, and those of before stay while that fails.
func TestMachineIsLookedUp(t *testing.T) {
	now, looked := time.Unix(0, 0), 0
	var addresses []net.Addr
	var failure error
	m := machine{now: func() time.Time { return now }, interfaces: func() ([]net.Addr, error) { looked++; return addresses, failure }}
	a := netip.MustParseAddr("9.5.5.5")
	for i, step := range []struct {
		after     time.Duration
		addresses []net.Addr
		failure   error
		looked    int
		near      bool
	}{
		{0, at("9.5.5.5/32"), nil, 1, true},
		{59 * time.Second, nil, nil, 1, true},
		{time.Second, nil, errors.New("not permitted"), 2, true},
		{time.Minute, nil, nil, 3, false},
		{time.Minute, at("9.5.5.5/32"), nil, 4, true},
	} {
		now, addresses, failure = now.Add(step.after), step.addresses, step.failure
		for range 3 {
			if near := m.near(a, 8080) != ""; near != step.near || looked != step.looked {
				t.Errorf("step %d: near: %v after %d looks, want %v after %d", i, near, looked, step.near, step.looked)
			}
		}
	}
}
