// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// lookAgain is how long the addresses of this machine are believed.
const lookAgain = time.Minute

// machine knows the public addresses of this machine, and its IPv6 links. A firewall may keep others away
// from what listens there, but not this machine.
type machine struct {
	interfaces func() ([]net.Addr, error)
	now        func() time.Time

	mu     sync.Mutex // guards the fields below
	looked time.Time  // zero: never
	own    []netip.Addr
	links  []netip.Prefix
}

// near says what a public address is if it is not open to all: one of this machine, but for
// the ports of web servers, or one of its links. It returns "" for others.
func (m *machine) near(a netip.Addr, port uint16) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if now := m.now(); m.looked.IsZero() || now.Sub(m.looked) >= lookAgain {
		m.look()
		m.looked = now
	}
	switch {
	case slices.Contains(m.own, a):
		if port == 80 || port == 443 {
			return "" // also a publisher's, who reads his own site by its name
		}
		return "an address of this machine"
	case slices.ContainsFunc(m.links, func(p netip.Prefix) bool { return p.Contains(a) }):
		return "an address of this machine's network"
	}
	return ""
}

// look reads the addresses of all interfaces. If it cannot, those of before stay.
func (m *machine) look() {
	all, err := m.interfaces()
	if err != nil {
		return // package poller warns at the start
	}
	m.own, m.links = nil, nil
	for _, address := range all {
		at, ok := address.(*net.IPNet)
		if !ok {
			continue
		}
		a, _ := netip.AddrFromSlice(at.IP)
		if a = a.Unmap(); !a.IsValid() || reservedKind(a) != "" {
			continue
		}
		m.own = append(m.own, a)
		if bits, _ := at.Mask.Size(); a.Is6() && bits < a.BitLen() {
			link, _ := a.Prefix(max(bits, 64)) // RFC 4291 section 2.5.1: a link has a /64; more may be others'
			m.links = append(m.links, link)
		}
	}
}
