// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"maps"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/feedpollard/pollard/internal/feedurl"
	"github.com/feedpollard/pollard/policy"
)

// The pacing of a host without a rule.
const (
	defaultSpacing     = 2 * time.Second
	defaultConcurrency = 1
	// domainConcurrency is how many requests to one registrable domain may be in flight,
	// unless the rules of its hosts allow more.
	domainConcurrency = 2
)

// hosts counts the requests in flight to each host. It does not decide when a host may be
// polled: the store does, with each claim. But a slow connection may delay a request after
// its claim, so requests to a host also leave at least its spacing apart.
type hosts struct {
	mu      sync.Mutex // guards all below; it is not held while a request waits
	rules   feedurl.HostTable[HostRule]
	known   map[hostName]*host
	sweepAt int // number of known hosts at which idle ones are dropped
}

// hostName is the name of a host, or of a registrable domain and the number of requests that
// its hosts may have in flight.
type hostName struct {
	name  string
	limit int // 0: a host
}

// host is a host, one of its ports if these are paced separately, or a registrable domain.
type host struct {
	spacing time.Duration
	places  *semaphore.Weighted
	domain  *host     // nil: it has none
	users   int       // slots that are held or waited for
	next    time.Time // no request leaves before
	hub     time.Time // nothing is sent to it as a hub before
}

// nameOf returns the name that a URL's host is paced by. All ports of a name in the public
// DNS count as one host. The ports of an IP literal or of a name of a private network
// are different hosts.
func nameOf(u feedurl.URL) string {
	if u.IsPrivate() {
		return u.Address()
	}
	return u.Name()
}

func tableOf(rules []HostRule) (table feedurl.HostTable[HostRule]) {
	for _, r := range rules {
		_ = table.Add(r.Pattern, r) // invalid and duplicate patterns are errors of the configuration
	}
	return table
}

// Pace returns how polls of a host are paced. An empty host stands for hosts without a
// rule of their own.
func (s *Settings) Pace(host string) (spacing time.Duration, concurrency int) {
	rules := tableOf(s.Hosts)
	if host == "" {
		host = "host.invalid" // RFC 2606: only a rule for all hosts covers it
	}
	return pace(&rules, host)
}

// pace returns the pacing of a host. Each value comes from the most specific rule that sets
// it.
func pace(rules *feedurl.HostTable[HostRule], host string) (spacing time.Duration, concurrency int) {
	spacing, concurrency = defaultSpacing, defaultConcurrency
	for _, r := range rules.Covering(host) {
		if r.Spacing != 0 {
			spacing = max(r.Spacing, 0)
		}
		if r.Concurrency > 0 {
			concurrency = r.Concurrency
		}
	}
	return spacing, concurrency
}

// apply changes the rules. A host that is in use keeps those that it has.
func (h *hosts) apply(rules []HostRule, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.rules = tableOf(rules)
	h.sweep(now)
}

// hostOf returns the host of a URL.
func (h *hosts) hostOf(u feedurl.URL) policy.Host {
	h.mu.Lock()
	defer h.mu.Unlock()
	spacing, _ := pace(&h.rules, u.Name())
	return policy.Host{Name: nameOf(u), Domain: u.Domain(), Spacing: spacing}
}

// busy returns the names of the hosts that have as many requests in flight as they may.
func (h *hosts) busy() (names []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for name, known := range h.known {
		if name.limit > 0 {
			continue
		}
		if known.places.TryAcquire(1) {
			known.places.Release(1)
		} else {
			names = append(names, name.name)
		}
	}
	return names
}

// enter waits for the right to have a request to a URL's host in flight, first come, first
// served.
func (h *hosts) enter(ctx context.Context, u feedurl.URL, now time.Time) (*host, error) {
	to := h.use(u, now)
	if err := to.places.Acquire(ctx, 1); err != nil {
		h.drop(to)
		return nil, context.Cause(ctx)
	}
	if to.domain != nil {
		if err := to.domain.places.Acquire(ctx, 1); err != nil {
			to.places.Release(1)
			h.drop(to)
			return nil, context.Cause(ctx)
		}
	}
	return to, nil
}

// leave ends what enter has begun; nil: nothing.
func (h *hosts) leave(from *host) {
	if from == nil {
		return
	}
	if from.domain != nil {
		from.domain.places.Release(1)
	}
	from.places.Release(1)
	h.drop(from)
}

// gap returns how long a request to a host must still wait, and reserves that moment.
func (h *hosts) gap(to *host, now time.Time) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	at := now
	if to.next.After(now) {
		at = to.next
	}
	to.next = at.Add(to.spacing)
	return at.Sub(now)
}

// hubPause returns the end of the pause that a host has asked for as a hub, or of until if
// that is later; zero: none.
func (h *hosts) hubPause(of *host, until, now time.Time) time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	if until.After(of.hub) {
		of.hub = until
	}
	if of.hub.After(now) {
		return of.hub
	}
	return time.Time{}
}

// use returns the state of a URL's host, which stays until drop is called.
func (h *hosts) use(u feedurl.URL, now time.Time) *host {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.known) >= h.sweepAt {
		h.sweep(now)
		h.sweepAt = max(64, 2*len(h.known))
	}
	spacing, limit := pace(&h.rules, u.Name())
	to := h.find(hostName{name: nameOf(u)}, limit)
	if to.users == 0 {
		to.spacing, to.domain, to.places = spacing, nil, semaphore.NewWeighted(int64(limit)) // as the rules are now
		if u.Domain() != "" {
			shared := max(domainConcurrency, limit)
			to.domain = h.find(hostName{u.Domain(), shared}, shared)
		}
	}
	to.count(1)
	return to
}

// find returns the state of a host or domain. If it is not known, it may have limit requests
// in flight.
func (h *hosts) find(name hostName, limit int) *host {
	known := h.known[name]
	if known == nil {
		known = &host{places: semaphore.NewWeighted(int64(limit))}
		h.known[name] = known
	}
	return known
}

func (h *hosts) drop(from *host) {
	h.mu.Lock()
	defer h.mu.Unlock()
	from.count(-1)
}

func (h *host) count(users int) {
	h.users += users
	if h.domain != nil {
		h.domain.users += users
	}
}

// sweep drops idle hosts, because a gateway may be open to any URL.
func (h *hosts) sweep(now time.Time) {
	maps.DeleteFunc(h.known, func(_ hostName, known *host) bool {
		return known.users == 0 && !known.next.After(now) && !known.hub.After(now)
	})
}
