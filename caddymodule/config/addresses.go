// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"net/netip"
)

// ParseCIDR reads a range of addresses, or one address.
func ParseCIDR(text string) (netip.Prefix, error) {
	if ip, err := netip.ParseAddr(text); err == nil && ip.Zone() == "" {
		ip = ip.Unmap()
		return netip.PrefixFrom(ip, ip.BitLen()), nil
	}
	p, err := netip.ParsePrefix(text)
	if err != nil {
		return p, fmt.Errorf("%q is no address range: expected one such as 192.168.0.0/16 or 2001:db8::/32", text)
	}
	return p.Masked(), nil
}

// ParseCIDRs reads several.
func ParseCIDRs(texts []string) ([]netip.Prefix, error) {
	var ranges []netip.Prefix
	for _, text := range texts {
		p, err := ParseCIDR(text)
		if err != nil {
			return nil, err
		}
		ranges = append(ranges, p)
	}
	return ranges, nil
}
