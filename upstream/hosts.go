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
)

// longestSpacing is for how long the last request to a site is remembered. The store knows it for longer.
const longestSpacing = time.Minute

// hosts counts the requests in flight to each host and site. It does not decide when a site may be
// polled: the store does, with each claim. But a slow connection may delay a request after
// its claim, so requests to a site also leave at least the spacing apart.
type hosts struct {
	mu      sync.Mutex // guards all below; it is not held while a request waits
	rules   feedurl.HostTable[HostRule]
	byName  map[string]*host // by name; of an IP address or a name of a private network, with its port
	sites   map[string]*site // by [feedurl.URL.Site]
	sweepAt int              // number of hosts and sites at which idle ones are dropped
}

// host is a host that requests are in flight to.
type host struct {
	site    *site
	spacing time.Duration
	places  *semaphore.Weighted
	users   int // slots that are held or waited for
}

// site is all hosts that are paced as one.
type site struct {
	places *semaphore.Weighted // twice those of the host that was first in use
	users  int
	last   time.Time // when the last request left, or will
	hub    time.Time // nothing is sent to it as a hub before
}

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
	return policy.Host{Site: u.Site(), Spacing: spacing}
}

// tryEnter is enter without waiting. It returns nil if the host or its site has as many requests in flight as it may.
func (h *hosts) tryEnter(u feedurl.URL, now time.Time) *host {
	to := h.use(u, now)
	if to.places.TryAcquire(1) {
		if to.site.places.TryAcquire(1) {
			return to
		}
		to.places.Release(1)
	}
	h.drop(to)
	return nil
}

// enter waits for the right to have a request to a URL's host in flight, first come, first
// served.
func (h *hosts) enter(ctx context.Context, u feedurl.URL, now time.Time) (*host, error) {
	to := h.use(u, now)
	err := to.places.Acquire(ctx, 1)
	if err == nil {
		if err = to.site.places.Acquire(ctx, 1); err == nil {
			return to, nil
		}
		to.places.Release(1)
	}
	h.drop(to)
	return nil, context.Cause(ctx)
}

// leave ends what enter has begun; nil: nothing.
func (h *hosts) leave(from *host) {
	if from == nil {
		return
	}
	from.places.Release(1)
	from.site.places.Release(1)
	h.drop(from)
}

// gap returns how long a request to a host must still wait, and reserves that moment.
func (h *hosts) gap(to *host, now time.Time) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	at := now
	if next := to.site.last.Add(to.spacing); next.After(at) {
		at = next
	}
	to.site.last = at
	return at.Sub(now)
}

// hubPause returns the end of the pause that a site has asked for as a hub, or of until if
// that is later; zero: none.
func (h *hosts) hubPause(of *host, until, now time.Time) time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	if until.After(of.site.hub) {
		of.site.hub = until
	}
	if of.site.hub.After(now) {
		return of.site.hub
	}
	return time.Time{}
}

// use returns the state of a URL's host, which stays until drop is called.
func (h *hosts) use(u feedurl.URL, now time.Time) *host {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.byName)+len(h.sites) >= h.sweepAt {
		h.sweep(now)
		h.sweepAt = max(64, 2*(len(h.byName)+len(h.sites)))
	}
	name, of := nameOf(u), u.Site()
	to, at := h.byName[name], h.sites[of]
	if to == nil {
		to = new(host)
		h.byName[name] = to
	}
	if at == nil {
		at = new(site)
		h.sites[of] = at
	}
	spacing, limit := pace(&h.rules, u.Name()) // a host that is in use keeps those that it has
	if at.users == 0 {
		at.places = semaphore.NewWeighted(2 * int64(limit))
	}
	if to.users == 0 {
		to.site, to.spacing, to.places = at, spacing, semaphore.NewWeighted(int64(limit))
	}
	to.users++
	at.users++
	return to
}

func (h *hosts) drop(from *host) {
	h.mu.Lock()
	defer h.mu.Unlock()
	from.users--
	from.site.users--
}

// sweep drops idle hosts, because a gateway may be open to any URL.
func (h *hosts) sweep(now time.Time) {
	maps.DeleteFunc(h.byName, func(_ string, one *host) bool { return one.users == 0 })
	maps.DeleteFunc(h.sites, func(_ string, one *site) bool {
		return one.users == 0 && !one.last.Add(longestSpacing).After(now) && !one.hub.After(now)
	})
}
