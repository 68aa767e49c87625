// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package feedurl

import (
	"net/netip"
	"net/url"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"
	"golang.org/x/net/publicsuffix"
)

// ParseHost returns a host, with or without the brackets of an IPv6 address, in the
// form of [URL.Name], so that a rule for example.com also applies to "Example.COM.",
// or the same in other letters of Unicode.
func ParseHost(host string) (string, error) {
	host, err := unescapeHost(host)
	if err != nil {
		return "", err
	}
	if strings.ContainsFunc(host, func(r rune) bool { return r >= utf8.RuneSelf }) {
		// RFC 5891 section 5. This maps letters to lower case too. To strings.ToLower, \u0130 would be an i, and
		// the name another one.
		ascii, err := idna.Lookup.ToASCII(host)
		if err != nil {
			return "", invalid("its host is no valid international domain name")
		}
		host = ascii
	}
	host = strings.ToLower(host)
	if address, ok := strings.CutPrefix(host, "["); ok {
		ip, err := netip.ParseAddr(strings.TrimSuffix(address, "]"))
		if err != nil || !ip.Is6() || ip.Zone() != "" {
			return "", invalid("its host is no IPv6 address")
		}
		return ip.Unmap().String(), nil
	}
	host = strings.TrimSuffix(host, ".")
	if ip, err := netip.ParseAddr(host); err == nil && ip.Zone() == "" {
		return ip.Unmap().String(), nil // RFC 4291 section 2.5.5.2: ::ffff:a.b.c.d is a.b.c.d
	}
	switch {
	case host == "":
		return "", invalid("it names no host")
	case !isName(host):
		return "", invalid("it names no valid host")
	case isNumber(host[strings.LastIndexByte(host, '.')+1:]):
		// Some resolvers read 2130706433, 0x7f.1, 0177.0.0.1 and 127.1 as addresses. As in
		// the URL standard, a name that ends in a number is an IPv4 address or nothing.
		return "", invalid("its host is neither a name nor an IP address in its usual form")
	}
	return host, nil
}

// unescapeHost removes escapes from a host (RFC 3986 section 3.2.2), with or without a port. Some programs
// escape the brackets of an IPv6 address as well.
func unescapeHost(host string) (string, error) {
	plain, err := url.PathUnescape(host)
	switch {
	case err != nil || strings.Contains(plain, "%"):
		// A zone (RFC 6874) means something on one machine only.
		return "", invalid("its host is an address with a zone, or badly escaped")
	case !utf8.ValidString(host) || !utf8.ValidString(plain):
		return "", invalid("its host is no valid international domain name")
	}
	return plain, nil
}

// isName reports whether a name could be looked up: labels of letters, digits,
// hyphens and underscores (RFC 1035 section 2.3.4, RFC 1123 section 2.1).
func isName(name string) bool {
	if len(name) > 253 {
		return false
	}
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' || strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			return false
		}
	}
	return true
}

func isNumber(label string) bool {
	if hex, ok := strings.CutPrefix(label, "0x"); ok {
		return strings.Trim(hex, "0123456789abcdef") == ""
	}
	return strings.Trim(label, "0123456789") == ""
}

// Site returns what is paced and paused as one: the registrable domain by the whole Public Suffix
// List, private part included, with all its ports. An IP address and a name of a private network are
// a site with each of their ports.
func (u URL) Site() string {
	if u.IsPrivate() {
		return u.Address()
	}
	domain, err := publicsuffix.EffectiveTLDPlusOne(u.name)
	if err != nil { // the name is a public suffix
		return u.name
	}
	return domain
}

// privateDomains are never registrable in the public DNS: RFC 6761 (localhost),
// RFC 6762 (local, and the rest in its appendix G), RFC 8375 (home.arpa).
var privateDomains = []string{"localhost", "local", "home.arpa", "internal", "intranet", "private", "corp", "home", "lan"}

// IsPrivate reports whether the host is an IP address, or a name outside of the public
// DNS.
func (u URL) IsPrivate() bool {
	if u.addr.IsValid() || !strings.Contains(u.name, ".") {
		return true
	}
	for _, d := range privateDomains {
		if strings.HasSuffix(u.name, "."+d) {
			return true
		}
	}
	return false
}
