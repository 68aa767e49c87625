// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"math"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/dustin/go-humanize"
)

// ParseDuration parses a positive duration in Caddy's form, which is Go's with days.
func ParseDuration(text string) (caddy.Duration, error) {
	d, err := caddy.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("%q is not a duration: expected a number with a unit, such as 30s, 15m, 2h or 1d", text)
	}
	if d <= 0 {
		return 0, fmt.Errorf("%q is not a positive duration: expected one such as 30s, 15m, 2h or 1d", text)
	}
	return caddy.Duration(d), nil
}

// FormatDuration formats a duration as Go does, without zero units at the end: 1h, not 1h0m0s.
func FormatDuration[D ~int64](d D) string {
	text := time.Duration(d).String()
	if strings.HasSuffix(text, "m0s") {
		text = text[:len(text)-2]
	}
	if strings.HasSuffix(text, "h0m") {
		text = text[:len(text)-2]
	}
	return text
}

// ParseSize parses a positive number of bytes with a unit, such as 64MiB.
func ParseSize(text string) (int64, error) {
	if n, err := strconv.ParseUint(text, 10, 64); err == nil && n > 0 {
		return 0, fmt.Errorf("%q has no unit: expected one such as %sMiB", text, text)
	}
	n, err := humanize.ParseBytes(text)
	if err != nil || n == 0 || n > math.MaxInt64 {
		return 0, fmt.Errorf("%q is not a size: expected one such as 512KiB, 64MiB or 1GB", text)
	}
	return int64(n), nil
}

// ParsePercentage parses a percentage such as 10%, or 0. It returns a fraction from 0 to 1.
func ParsePercentage(text string) (float64, error) {
	bad := fmt.Errorf("%q is not a percentage: expected 0 or one from 0%% to 100%%, such as 10%%", text)
	if text == "0" {
		return 0, nil
	}
	number, ok := strings.CutSuffix(text, "%")
	if !ok {
		return 0, bad
	}
	percent, err := strconv.ParseFloat(number, 64)
	if err != nil || !(percent >= 0) || percent > 100 {
		return 0, bad
	}
	return percent / 100, nil
}

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
	if a := p.Addr(); a.Is4In6() && p.Bits() >= 96 { // addresses of clients and feeds are never of this form
		p = netip.PrefixFrom(a.Unmap(), p.Bits()-96)
	}
	return p.Masked(), nil
}

// ParseCIDRs parses several ranges. As in Caddy, private_ranges stands for all private ones.
func ParseCIDRs(texts []string) (ranges []netip.Prefix, err error) {
	for _, text := range texts {
		words := []string{text}
		if text == "private_ranges" {
			words = caddyhttp.PrivateRangesCIDR()
		}
		for _, word := range words {
			p, err := ParseCIDR(word)
			if err != nil {
				return nil, err
			}
			ranges = append(ranges, p)
		}
	}
	return ranges, nil
}
