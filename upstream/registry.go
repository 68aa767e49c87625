// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/feedpollard/pollard/internal/feedurl"
	"github.com/feedpollard/pollard/policy"
)

// The scopes of pauses, as [policy.Pause] has them.
const (
	scopeHost   = "host "
	scopeDomain = "domain "
)

const (
	// maxPauses is how many pauses are remembered here, over or not.
	maxPauses = 1 << 16
	// maxExempt is how many hosts there may be for idle ones to be kept because they
	// are exempt from the pauses of their domains.
	maxExempt = 1 << 14
)

// nameOf returns the name that a URL's host is paced by. All ports of a name in the public
// DNS count as one host. The ports of an IP literal or of a name of a private network
// are different hosts.
func nameOf(u feedurl.URL) string {
	if u.IsPrivate() {
		return u.Address()
	}
	return u.Name()
}

// whom returns the host of a URL.
func (p *pacer) whom(u feedurl.URL) policy.Host {
	if p.off {
		return policy.Host{}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	spacing, _ := pace(&p.rules, u.Name())
	return policy.Host{Name: nameOf(u), Domain: u.Domain(), Spacing: spacing}
}

// host returns the state of a URL's host, and makes it if necessary. The caller holds the
// lock.
func (p *pacer) host(u feedurl.URL) *host {
	name := nameOf(u)
	if h := p.hosts[name]; h != nil {
		return h
	}
	if len(p.hosts)+len(p.pauses) >= p.sweepAt {
		p.sweep(p.clock.now())
		p.sweepAt = max(64, 2*(len(p.hosts)+len(p.pauses)))
	}
	key := cmp.Or(u.Domain(), name)
	d := p.domains[key]
	if d == nil {
		d = &domain{name: key, later: hostHeap{late: true}}
		if u.Domain() != "" {
			d.scope = scopeDomain + key
		}
		p.domains[key] = d
	}
	h := &host{name: name, pattern: u.Name(), scope: scopeHost + name, domain: d}
	h.spacing, h.concurrency = pace(&p.rules, h.pattern)
	d.hosts++
	p.hosts[name] = h
	return h
}

// sweep drops idle hosts and pauses that are over, because a gateway may be open to any
// URL.
func (p *pacer) sweep(now time.Time) {
	for name, h := range p.hosts {
		if len(h.queue)+h.inFlight > 0 || h.last.Add(h.spacing).After(now) ||
			h.exempt(now) && h.domain.scope != "" && len(p.hosts) <= maxExempt {
			continue
		}
		delete(p.hosts, name)
		if h.domain.hosts--; h.domain.hosts == 0 {
			delete(p.domains, h.domain.name)
		}
	}
	for scope, pause := range p.pauses {
		if pause.forgettable(now) {
			delete(p.pauses, scope)
		}
	}
	// Strangers can make any number of hosts ask for pauses. It does not matter much
	// which are dropped: the store has them too.
	for scope := range p.pauses {
		if len(p.pauses) <= maxPauses {
			break
		}
		delete(p.pauses, scope)
	}
}

// busyHosts returns the hosts with polls in flight or waiting.
func (p *pacer) busyHosts() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Collect(maps.Keys(p.busy))
}
