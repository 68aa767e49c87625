// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/feedpollard/pollard/internal/feedurl"
)

// AddressError says that a poll led to an address or port that it may not reach.
type AddressError struct {
	Address string // as an address where it was resolved, else as written
	Reason  string // what is wrong with it, to follow "<address> is "
}

func (e *AddressError) Error() string { return e.Address + " is " + e.Reason }

// reserved are ranges that no public origin has, from the IANA special-purpose
// address registries (RFC 6890). Of IPv6 only those within 2000::/3 are listed:
// all that is outside of it is refused.
var reserved = []struct {
	prefix netip.Prefix
	kind   string
}{
	{netip.MustParsePrefix("0.0.0.0/8"), "an unspecified"},          // RFC 791: this network
	{netip.MustParsePrefix("10.0.0.0/8"), "a private"},              // RFC 1918
	{netip.MustParsePrefix("100.64.0.0/10"), "a carrier-grade NAT"}, // RFC 6598
	{netip.MustParsePrefix("127.0.0.0/8"), "a loopback"},            // RFC 1122
	{netip.MustParsePrefix("168.63.129.16/32"), "a private"},        // Azure's host agent, from each virtual machine
	{netip.MustParsePrefix("169.254.0.0/16"), "a link-local"},       // RFC 3927; cloud metadata
	{netip.MustParsePrefix("172.16.0.0/12"), "a private"},           // RFC 1918
	{netip.MustParsePrefix("192.0.0.0/24"), "a reserved"},           // RFC 6890
	{netip.MustParsePrefix("192.0.2.0/24"), "a documentation"},      // RFC 5737
	{netip.MustParsePrefix("192.88.99.0/24"), "a reserved"},         // RFC 7526: former 6to4 relays
	{netip.MustParsePrefix("192.168.0.0/16"), "a private"},          // RFC 1918
	{netip.MustParsePrefix("198.18.0.0/15"), "a benchmarking"},      // RFC 2544
	{netip.MustParsePrefix("198.51.100.0/24"), "a documentation"},   // RFC 5737
	{netip.MustParsePrefix("203.0.113.0/24"), "a documentation"},    // RFC 5737
	{netip.MustParsePrefix("224.0.0.0/4"), "a multicast"},           // RFC 5771
	{netip.MustParsePrefix("255.255.255.255/32"), "a broadcast"},    // RFC 919
	{netip.MustParsePrefix("240.0.0.0/4"), "a reserved"},            // RFC 1112
	{netip.MustParsePrefix("::/128"), "an unspecified"},             // RFC 4291
	{netip.MustParsePrefix("::1/128"), "a loopback"},                // RFC 4291
	{netip.MustParsePrefix("fc00::/7"), "a private"},                // RFC 4193: unique local
	{netip.MustParsePrefix("fe80::/10"), "a link-local"},            // RFC 4291
	{netip.MustParsePrefix("ff00::/8"), "a multicast"},              // RFC 4291
	{netip.MustParsePrefix("2001::/23"), "a reserved"},              // RFC 2928: Teredo, ORCHID, benchmarking
	{netip.MustParsePrefix("2001:db8::/32"), "a documentation"},     // RFC 3849
	{netip.MustParsePrefix("3fff::/20"), "a documentation"},         // RFC 9637
}

var (
	globalUnicast = netip.MustParsePrefix("2000::/3")     // RFC 4291
	nat64         = netip.MustParsePrefix("64:ff9b::/96") // RFC 6052
	sixToFour     = netip.MustParsePrefix("2002::/16")    // RFC 3056
)

// reservedKind returns the kind of a reserved address, with its article, or "" for a
// public one.
func reservedKind(a netip.Addr) string {
	for _, r := range reserved {
		if r.prefix.Contains(a) {
			return r.kind
		}
	}
	if a.Is6() && !globalUnicast.Contains(a) && !nat64.Contains(a) {
		return "a reserved"
	}
	return ""
}

// badPort reports whether a port belongs to a protocol that a GET could be
// smuggled into: the list of bad ports of the Fetch standard
// (https://fetch.spec.whatwg.org/#port-blocking), which browsers hold to. Feeds
// are published on any other port.
func badPort(port uint16) bool {
	switch port {
	case 0, 1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79,
		87, 95, 101, 102, 103, 104, 109, 110, 111, 113, 115, 117, 119, 123, 135, 137,
		139, 143, 161, 179, 389, 427, 465, 512, 513, 514, 515, 526, 530, 531, 532, 540,
		548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723, 2049,
		3659, 4045, 4190, 5060, 5061, 6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080:
		return true
	}
	return false
}

// embedded returns the IPv4 address that packets to an IPv6 address are sent to.
func embedded(a netip.Addr) (netip.Addr, bool) {
	b := a.As16()
	switch {
	case nat64.Contains(a):
		return netip.AddrFrom4([4]byte(b[12:])), true
	case sixToFour.Contains(a):
		return netip.AddrFrom4([4]byte(b[2:6])), true
	}
	return netip.Addr{}, false
}

// guard checks the addresses of one hop.
type guard struct {
	private []netip.Prefix
	own     bool     // the URL is in the configuration
	chosen  bool     // a URL of its scheme, name and port is
	written bool     // the URL has an address for a name
	machine *machine // nil: nothing is known of this one
	moved   bool     // the hop is a redirect from a public address
	off     bool     // nothing is dialled here
	proxy   *url.URL // of the request; nil: none
	named   bool     // the proxy's rule names the host
	tunnel  bool     // a TLS handshake would be the origin's
	public  bool     // the connection is to a public address
	near    bool     // to one that only the configuration allows

	resolved  bool
	addresses []netip.Addr // of the host, that may be reached
}

// check returns an error if the hop must not reach an address. The address is the one
// that is dialled, so that names and odd notations cannot evade the check.
func (g *guard) check(a netip.Addr, port uint16) error {
	end, kind := destination(a)
	allowed := g.own || slices.ContainsFunc(g.private, func(p netip.Prefix) bool { return p.Contains(end) })
	switch {
	case kind != "" && g.moved:
		return &AddressError{end.String(), kind + " address: a redirect from a public address may not lead there"}
	case kind != "" && !allowed:
		return &AddressError{end.String(), kind + " address: add it to private_upstreams to allow it"}
	case !allowed && badPort(port):
		return &AddressError{net.JoinHostPort(end.String(), strconv.Itoa(int(port))), "at a port of another protocol than HTTP"}
	case kind == "" && !allowed && !g.chosen && g.machine != nil:
		return g.checkMachine(end, port)
	}
	return nil
}

// checkMachine returns an error if a public address is one of this machine or its network, and not open to all.
// Redirects may lead there as others' URLs may: what is allowed there is as public as the address.
func (g *guard) checkMachine(a netip.Addr, port uint16) error {
	at := a
	near := g.machine.near(a, port)
	if inner, ok := embedded(a); ok && near == "" {
		at, near = inner, g.machine.near(inner, port)
	}
	switch {
	case near == "", slices.ContainsFunc(g.private, func(p netip.Prefix) bool { return p.Contains(at) }):
		return nil
	case g.written:
		return &AddressError{a.String(), near + ": private_upstreams " + at.String()}
	}
	return &AddressError{a.String(), near + ": add it to private_upstreams to allow it"}
}

func (c *Client) guardOf(u feedurl.URL, moved bool) *guard {
	s := c.settings.Load()
	g := &guard{
		private: s.Private, own: s.Own != nil && s.Own(u), chosen: s.Chosen != nil && s.Chosen(u),
		written: u.Addr().IsValid(), machine: &c.machine, moved: moved, off: c.rounds != nil || c.dial != nil,
	}
	g.proxy, g.named = c.hosts.proxyOf(u.Name())
	g.tunnel = g.proxy == nil || strings.HasPrefix(g.proxy.Scheme, "socks")
	return g
}

// checkHost returns an error if the host of a URL is an address that must not be reached.
// The addresses of names are checked when they are dialled.
func (g *guard) checkHost(u feedurl.URL) error {
	if g.off || !u.Addr().IsValid() {
		return nil
	}
	return g.check(u.Addr(), portOf(u))
}

func portOf(u feedurl.URL) uint16 {
	port, _ := strconv.ParseUint(u.Port(), 10, 16) // package feedurl has checked it
	return uint16(port)
}

// destination returns the address that packets to an address are sent to, and its kind of
// reserved address ("" for a public one).
func destination(a netip.Addr) (end netip.Addr, kind string) {
	a = a.Unmap().WithZone("") // RFC 4291 section 2.5.5.2: ::ffff:a.b.c.d is a.b.c.d
	if kind = reservedKind(a); kind == "" {
		if inner, ok := embedded(a); ok {
			if kind = reservedKind(inner); kind != "" {
				return inner, kind
			}
		}
	}
	return a, kind
}

// PrivateAddress returns the words in which a poll fails at a URL whose host has a private address that
// is not allowed.
func PrivateAddress(u feedurl.URL) string {
	const remedy = " address: add it to private_upstreams to allow it"
	if ip := u.Addr(); ip.IsValid() {
		end, kind := destination(ip)
		return (&AddressError{end.String(), kind + remedy}).Error()
	}
	return u.HostPort() + ": its address is a private" + remedy
}

// control checks each address just before it is connected to.
func (g *guard) control(_ context.Context, _, address string, _ syscall.RawConn) error {
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("reading the address to dial: %w", err)
	}
	return g.check(ap.Addr(), ap.Port())
}

type guardKey struct{}

// dialGuarded connects for the transport. The guard comes in the context, as it
// differs from hop to hop.
func (c *Client) dialGuarded(ctx context.Context, network, address string) (net.Conn, error) {
	g, ok := ctx.Value(guardKey{}).(*guard)
	switch {
	case ok && g.proxy != nil:
		return c.dialProxy(ctx, g.proxy, network, address)
	case c.dial != nil:
		return c.dial(ctx, network, address)
	case !ok:
		return nil, fmt.Errorf("dialling %s: no guard", address)
	}
	dial := c.reach
	if dial == nil {
		dial = (&net.Dialer{ControlContext: g.control}).DialContext
	}
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	return c.dialAddresses(ctx, g, func(ctx context.Context, a netip.Addr) (net.Conn, error) {
		return dial(ctx, network, net.JoinHostPort(a.String(), port))
	})
}

// connected records an address of the connection.
func (g *guard) connected(a netip.Addr) {
	_, kind := destination(a)
	g.near = g.near || kind != ""
	g.public = !g.near
}
