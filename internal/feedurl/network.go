// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package feedurl

import "net/netip"

// Network returns the network of an address that one party is likely to have: the /24 of an IPv4
// address, the /48 of an IPv6 address (RFC 6177). It is invalid if the address is.
func Network(a netip.Addr) netip.Prefix {
	bits := 48
	if a = a.Unmap().WithZone(""); a.Is4() {
		bits = 24
	}
	network, _ := a.Prefix(bits)
	return network
}
