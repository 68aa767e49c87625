// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"net/netip"
	"strings"

	"golang.org/x/net/publicsuffix"
)

// scope says which hosts a poll is paced with.
type scope struct {
	domain string // polls of one registrable domain share a bound and, when limited, a pause
	host   string // polls of one host share a slot and a cool-down
	single bool   // a cool-down concerns the URL alone
}

// scope of a target. Behind a name of the public DNS there is one server, or one
// limiter, for all URLs. An IP literal or a name of a private network stands for
// whatever listens at its ports, often a bridge that answers for many sites: there
// the ports are paced apart, and a pause that one URL earns is that URL's own.
func (t target) scope() scope {
	if isPrivateName(t.name) {
		hostport := t.name + " " + t.port
		return scope{domain: hostport, host: hostport, single: true}
	}
	domain, err := publicsuffix.EffectiveTLDPlusOne(t.name)
	if err != nil {
		domain = t.name // the name is itself a public suffix
	}
	return scope{domain: domain, host: t.name}
}

// privateDomains are never registrable in the public DNS: RFC 6761 (localhost),
// RFC 6762 (local, and the rest in its appendix G), RFC 8375 (home.arpa).
var privateDomains = []string{"localhost", "local", "home.arpa", "internal", "intranet", "private", "corp", "home", "lan"}

// isPrivateName reports whether a host is an IP literal or named by no public DNS.
func isPrivateName(name string) bool {
	if _, err := netip.ParseAddr(name); err == nil || !strings.Contains(name, ".") {
		return true
	}
	for _, d := range privateDomains {
		if strings.HasSuffix(name, "."+d) {
			return true
		}
	}
	return false
}
