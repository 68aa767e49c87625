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

// nameOf is what a URL's host is paced as. Behind a name of the public DNS there is
// one server, or one limiter, for all ports. An IP literal or a name of a private
// network stands for whatever listens at its ports: these are paced apart.
func nameOf(u feedurl.URL) string {
	if u.IsPrivate() {
		return u.Address()
	}
	return u.Name()
}

// whom is the host that a URL's polls ask.
func (p *pacer) whom(u feedurl.URL) policy.Host {
	if p.off {
		return policy.Host{}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	spacing, _ := pace(&p.rules, u.Name())
	return policy.Host{Name: nameOf(u), Domain: u.Domain(), Spacing: spacing}
}

// host is the state of a URL's host, made where there is none yet. The caller holds
// the lock.
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

// sweep drops what is idle and has nothing left to remember, so that a gateway
// that anybody may ask for any URL does not collect hosts for ever.
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
	// Anybody who may ask for any URL can make hosts that ask for pauses. Which of them
	// are forgotten here does not matter much: the store knows them too.
	for scope := range p.pauses {
		if len(p.pauses) <= maxPauses {
			break
		}
		delete(p.pauses, scope)
	}
}

// busyHosts lists the hosts with polls under way or waiting.
func (p *pacer) busyHosts() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Collect(maps.Keys(p.busy))
}
