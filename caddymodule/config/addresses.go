// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"net/netip"
)

// ParseCIDR parses an address range such as 10.0.0.0/8, or one address.
func ParseCIDR(text string) (netip.Prefix, error) {
	if ip, err := netip.ParseAddr(text); err == nil && ip.Zone() == "" {
		ip = ip.Unmap()
		return netip.PrefixFrom(ip, ip.BitLen()), nil
	}
	p, err := netip.ParsePrefix(text)
	if err != nil {
		return p, fmt.Errorf("%q is not an address range: expected one such as 192.168.0.0/16 or 2001:db8::/32", text)
	}
	return p.Masked(), nil
}

// privateRanges are the ranges that Caddy calls private_ranges: RFC 1918, loopback and
// unique local addresses.
var privateRanges = []netip.Prefix{
	netip.MustParsePrefix("192.168.0.0/16"), netip.MustParsePrefix("172.16.0.0/12"), netip.MustParsePrefix("10.0.0.0/8"),
	netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("fd00::/8"), netip.MustParsePrefix("::1/128"),
}

// ParseCIDRs parses several ranges. As in Caddy, private_ranges stands for all private ones.
func ParseCIDRs(texts []string) ([]netip.Prefix, error) {
	var ranges []netip.Prefix
	for _, text := range texts {
		if text == "private_ranges" {
			ranges = append(ranges, privateRanges...)
			continue
		}
		p, err := ParseCIDR(text)
		if err != nil {
			return nil, err
		}
		ranges = append(ranges, p)
	}
	return ranges, nil
}
