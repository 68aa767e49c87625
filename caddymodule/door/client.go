// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package door

import (
	"fmt"
	"iter"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// Client is who sent a request, as far as addresses show it. Whatever admits, exempts or counts by
// address asks a Client.
//
// A proxy that Caddy trusts says in a field for whom it asks, and clients can send that field too.
// Most proxies append to it, so with `trusted_proxies_strict` Caddy takes the last address that is
// not a proxy's. Without, it takes the first one, which anyone can have written. Then all
// addresses in the field must have a right, and limits count by the last public one.
type Client struct {
	// Address is what limits count by. It is invalid if the client has none: on a Unix socket,
	// or behind a trusted proxy that does not say it.
	Address netip.Addr

	proxy  netip.Addr // that sent the request, if doubt is set
	doubt  doubt
	header http.Header
	fields []string // that list the addresses which must all have a right; nil: Address alone
}

// doubt is why an address may be a proxy's, for any client.
type doubt string

const (
	untrusted doubt = "a proxy at %s forwarded this request, and Caddy does not trust it: " +
		"the Caddyfile needs `trusted_proxies static %[1]s` and `trusted_proxies_strict` in the global option `servers`"
	silent doubt = "this request came from %s over HTTP/1.0, as from a proxy that does not say for whom it asks: " +
		"the proxy has to send X-Forwarded-For (nginx: `proxy_set_header X-Forwarded-For $remote_addr`), " +
		"and the Caddyfile needs `trusted_proxies static %[1]s` and `trusted_proxies_strict` in the global option `servers`"
	unsaid doubt = "the proxy at %s does not say whose request this is: " +
		"it has to send the address in X-Forwarded-For, or in another field that `client_ip_headers` names"
)

// usualFields are those that Caddy reads if client_ip_headers names no others.
var usualFields = []string{"X-Forwarded-For"}

// clientOf returns the client of a request that a server got. address is the one that Caddy took
// for the client's, and trusted says whether the peer is a proxy that Caddy trusts.
func clientOf(r *http.Request, server *caddyhttp.Server, address string, trusted bool) Client {
	c := Client{Address: parseAddress(address)}
	fields, strict := usualFields, false
	if server != nil {
		fields, strict = server.ClientIPHeaders, server.TrustedProxiesStrict > 0
	}
	forwarded := isForwarded(r.Header, fields)
	if !forwarded && r.ProtoAtLeast(1, 1) {
		return c
	}
	peer := parseAddress(r.RemoteAddr)
	switch {
	case !forwarded:
		// Readers speak HTTP/1.1. nginx before 1.29.7 does not unless told, and sends no field unless told.
		c.proxy, c.doubt = peer, silent
	case !trusted:
		c.proxy, c.doubt = peer, untrusted
	case strict && c.Address != peer: // the last one that Caddy does not trust
	default:
		c.header, c.fields, c.Address = r.Header, fields, lastPublic(r.Header, fields)
		if !c.Address.IsValid() {
			c.proxy, c.doubt = peer, unsaid
		}
	}
	return c
}

// All reports whether a client may have what a range of addresses may: it has an address, and
// covers is true of each that may be its own.
func (c Client) All(covers func(netip.Addr) bool) bool {
	if c.fields == nil || !c.Address.IsValid() {
		return c.Address.IsValid() && covers(c.Address)
	}
	for address := range addressesIn(c.header, c.fields) {
		if !address.IsValid() || !covers(address) {
			return false
		}
	}
	return true
}

// In reports whether a client is of address ranges.
func (c Client) In(ranges []netip.Prefix) bool {
	return len(ranges) > 0 && c.All(func(a netip.Addr) bool {
		return slices.ContainsFunc(ranges, func(p netip.Prefix) bool { return p.Contains(a) })
	})
}

// Private reports whether a client has a private address, and not only a proxy before it.
func (c Client) Private() bool { return c.doubt == "" && c.All(Private) }

// Forwarded reports whether a proxy that Caddy does not trust sent the request.
func (c Client) Forwarded() bool { return c.doubt == untrusted }

// Doubt says why the address does not show who the client is, and what to do, or "".
func (c Client) Doubt() string {
	switch {
	case c.doubt == "", c.doubt != unsaid && !Private(c.proxy):
		return "" // a public proxy may be anyone's
	case !c.proxy.IsValid():
		return fmt.Sprintf(string(unsaid), "a Unix socket")
	}
	return fmt.Sprintf(string(c.doubt), c.proxy)
}

// String names a client by its address.
func (c Client) String() string {
	if !c.Address.IsValid() {
		return "a client without an IP address"
	}
	return c.Address.String()
}

// Sentence tells a client as what it comes, for a page.
func (c Client) Sentence() string {
	if c.Address.IsLoopback() && c.doubt == "" && c.fields == nil {
		return fmt.Sprintf("You come as %s, the machine of Pollard itself. If you sit at another one, a proxy does not say for whom it asks, and all who reach that proxy come as you do.", c)
	}
	return fmt.Sprintf("You come as %s.", c)
}

// isForwarded reports whether a request has a field in which a proxy says for whom it asks.
func isForwarded(h http.Header, fields []string) bool {
	return h["X-Forwarded-For"] != nil || h["Forwarded"] != nil || h["X-Real-Ip"] != nil ||
		slices.ContainsFunc(fields, func(name string) bool { return name != "X-Forwarded-For" && h.Values(name) != nil })
}

// addressesIn returns the addresses that fields list, as Caddy reads them: those of all lines,
// with or without a port. Anything else is invalid.
func addressesIn(h http.Header, fields []string) iter.Seq[netip.Addr] {
	return func(yield func(netip.Addr) bool) {
		for _, name := range fields {
			for _, line := range h.Values(name) {
				for part := range strings.SplitSeq(line, ",") {
					if part = strings.TrimSpace(part); part != "" && !yield(parseAddress(part)) {
						return
					}
				}
			}
		}
	}
}

// lastPublic returns the last address in fields that is not private, or the last one. It is
// invalid if there is none.
func lastPublic(h http.Header, fields []string) (last netip.Addr) {
	for address := range addressesIn(h, fields) {
		if address.IsValid() && (!Private(address) || !last.IsValid() || Private(last)) {
			last = address
		}
	}
	return last
}

// parseAddress reads an address with or without a port. It is invalid if the text is something else.
func parseAddress(text string) netip.Addr {
	address, err := netip.ParseAddr(text)
	if err != nil { // no address is one with a port too
		host, _, _ := net.SplitHostPort(text)
		if address, err = netip.ParseAddr(host); err != nil {
			return netip.Addr{}
		}
	}
	return address.Unmap().WithZone("")
}

// Private reports whether an address is private, loopback or link-local.
func Private(address netip.Addr) bool {
	return address.IsPrivate() || address.IsLoopback() || address.IsLinkLocalUnicast()
}
