// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"time"

	"github.com/feedpollard/pollard/feedurl"
)

// known is the state of a target's host, without keeping any of a host that there
// was none of yet; nil: there is nothing to remember of it. The caller holds the lock.
func (p *pacer) known(t feedurl.URL) *host {
	s := scopeOf(t)
	d := p.domains[s.domain]
	if d == nil {
		return nil
	}
	if h := d.hosts[s.host]; h != nil {
		return h
	}
	return p.newHost(d, t) // what the domain has to say concerns all its hosts
}

// host is the state of a target's host, made where there is none yet. The caller
// holds the lock.
func (p *pacer) host(t feedurl.URL) *host {
	s := scopeOf(t)
	d := p.domains[s.domain]
	if d == nil {
		if len(p.domains) >= p.sweepAt {
			p.sweep(time.Now())
			p.sweepAt = max(64, 2*len(p.domains))
		}
		d = &domain{hosts: make(map[string]*host)}
		p.domains[s.domain] = d
	}
	h := d.hosts[s.host]
	if h == nil {
		if n := len(d.hosts); n >= 64 && n&(n-1) == 0 { // at each power of two: sweeping stays cheap
			d.sweep(time.Now())
		}
		h = p.newHost(d, t)
		d.hosts[s.host] = h
	}
	return h
}

func (p *pacer) newHost(d *domain, t feedurl.URL) *host {
	h := &host{name: t.Name(), domain: d}
	h.spacing, h.concurrency = pace(&p.rules, t.Name())
	return h
}

// sweep drops what is idle and has nothing left to remember, so that a gateway
// that anybody may ask for any URL does not collect hosts for ever.
func (p *pacer) sweep(now time.Time) {
	for name, d := range p.domains {
		if d.sweep(now); len(d.hosts) == 0 && d.pause.forgettable(now) {
			delete(p.domains, name)
		}
	}
}

func (d *domain) sweep(now time.Time) {
	for name, h := range d.hosts {
		h.sweepURLs(now)
		if len(h.queue) == 0 && h.inFlight == 0 && len(h.urls) == 0 &&
			h.pause.forgettable(now) && !h.last.Add(h.spacing).After(now) {
			delete(d.hosts, name)
		}
	}
}

func (h *host) sweepURLs(now time.Time) {
	for url, u := range h.urls {
		if u.forgettable(now) {
			delete(h.urls, url)
		}
	}
}
