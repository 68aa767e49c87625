// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/feedpollard/pollard/feedurl"
)

// What can hold a poll back, as [policy.Answer].Holder and [Client.Ready] tell it.
const (
	HeldByHost     = "host-cooldown"     // the host asked for a pause
	HeldByDomain   = "domain-cooldown"   // two hosts of the registrable domain did
	HeldByURL      = "url-cooldown"      // the origin asked for a pause, on a private network or IP literal
	HeldByRedirect = "redirect-cooldown" // a host that the URL redirects to asked for a pause
	HeldBySlot     = "host-slot"         // the gap between two polls of the host
)

// domainConcurrency is how many polls of one registrable domain may be in flight,
// unless a host's own rule says more.
const domainConcurrency = 2

// pacer hands out the right to ask a host. Its lock guards memory only: nobody
// waits, sends or sleeps while holding it.
type pacer struct {
	mu      sync.Mutex
	rules   feedurl.HostTable[HostRule]
	domains map[string]*domain
	arrived uint64 // waiters so far: their order of arrival
	sweepAt int    // number of domains at which idle ones are dropped
	stopped bool
	off     bool // nothing is paced; set before the first use
}

// domain is the hosts of one registrable domain.
type domain struct {
	hosts    map[string]*host
	inFlight int
	pause    pause
	timer    *time.Timer // when the next waiter can start; nil: none does by time alone
}

// host is one host, or one port of it where ports are paced apart.
type host struct {
	name        string
	domain      *domain
	spacing     time.Duration
	concurrency int
	queue       []*waiter // in the order in which they will start
	inFlight    int
	last        time.Time // start of the last request; zero: none yet
	pause       pause
	urls        map[string]*pause // of single URLs
}

// waiter is a poll that waits for its slot.
type waiter struct {
	url     string
	arrived uint64
	hop     bool          // it is a redirect of a poll under way
	granted chan struct{} // closed when it may start
}

// before tells which of two waiters starts first: a poll under way is brought to
// its end before another one begins; otherwise who came first.
func (w *waiter) before(other *waiter) bool {
	if w.hop != other.hop {
		return w.hop
	}
	return w.arrived < other.arrived
}

// slot is the right to send one request. The zero slot is one that nobody counts.
type slot struct {
	pacer   *pacer
	host    *host
	url     string
	single  bool
	started time.Time // when it was granted
}

func newPacer() *pacer {
	return &pacer{domains: make(map[string]*domain), sweepAt: 64}
}

// apply changes the rules for everything that starts from now on.
func (p *pacer) apply(rules []HostRule) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rules = tableOf(rules)
	for _, d := range p.domains {
		for _, h := range d.hosts {
			h.spacing, h.concurrency = pace(&p.rules, h.name)
		}
		p.dispatch(d)
	}
}

// acquire waits for the slot of a target's host, until a given time at most (zero:
// for as long as it takes). It returns nil where the slot did not come in time.
func (p *pacer) acquire(ctx context.Context, t feedurl.URL, by time.Time, hop bool) *slot {
	if p.off && ctx.Err() == nil {
		return new(slot)
	}
	p.mu.Lock()
	h, s := p.host(t), scopeOf(t)
	if at, _ := h.earliest(t.String(), time.Now()); p.stopped || ctx.Err() != nil || !by.IsZero() && at.After(wall(by)) {
		p.mu.Unlock()
		return nil
	}
	p.arrived++
	w := &waiter{url: t.String(), arrived: p.arrived, hop: hop, granted: make(chan struct{})}
	i, _ := slices.BinarySearchFunc(h.queue, w, func(a, b *waiter) int {
		if a.before(b) {
			return -1
		}
		return 1
	})
	h.queue = slices.Insert(h.queue, i, w)
	p.dispatch(h.domain)
	p.mu.Unlock()

	if !w.wait(ctx, by) && p.leave(ctx, h, w) {
		return nil
	}
	return &slot{pacer: p, host: h, url: t.String(), single: s.single, started: time.Now()}
}

// wait blocks until the waiter may start, and reports whether it may.
func (w *waiter) wait(ctx context.Context, by time.Time) bool {
	var late <-chan time.Time
	if !by.IsZero() {
		timer := time.NewTimer(time.Until(by))
		defer timer.Stop()
		late = timer.C
	}
	select {
	case <-w.granted:
		return true
	case <-late:
	case <-ctx.Done():
	}
	return false
}

// leave takes a waiter out of its queue. It reports false where the waiter was
// granted its slot at the last moment: the slot is then its to use.
func (p *pacer) leave(ctx context.Context, h *host, w *waiter) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if ctx.Err() == nil {
		p.dispatch(h.domain) // a slot that comes at the very moment is in time
	}
	i := slices.Index(h.queue, w)
	if i < 0 {
		return false
	}
	h.queue = slices.Delete(h.queue, i, i+1)
	p.dispatch(h.domain)
	return true
}

// dispatch grants slots to whoever may start now, and sets the domain's timer for
// whoever may start later. The caller holds the lock.
func (p *pacer) dispatch(d *domain) {
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
	if p.stopped {
		return
	}
	now := time.Now()
	for {
		first, host, wake := d.next(now)
		if first == nil {
			if !wake.IsZero() {
				d.timer = time.AfterFunc(wake.Sub(now), func() {
					p.mu.Lock()
					defer p.mu.Unlock()
					p.dispatch(d)
				})
			}
			return
		}
		i := slices.Index(host.queue, first)
		host.queue = slices.Delete(host.queue, i, i+1)
		host.inFlight++
		d.inFlight++
		host.last = now
		close(first.granted)
	}
}

// next is the waiter that starts next of those that may start now; without any,
// when the first of the others may.
func (d *domain) next(now time.Time) (first *waiter, of *host, wake time.Time) {
	for _, h := range d.hosts {
		if len(h.queue) == 0 || !h.hasRoom() {
			continue
		}
		for _, w := range h.queue {
			if at, _ := h.earliest(w.url, now); at.After(now) {
				if wake.IsZero() || at.Before(wake) {
					wake = at
				}
				continue
			}
			if first == nil || w.before(first) {
				first, of = w, h
			}
			break
		}
	}
	return first, of, wake
}

// hasRoom reports whether another request to the host may be in flight. After a
// cool-down there is one at a time, until an answer shows that the pause was long
// enough: all waiters at once would earn the next one.
func (h *host) hasRoom() bool {
	concurrency, shared := h.concurrency, max(domainConcurrency, h.concurrency)
	if h.pause.cautious {
		concurrency = 1
	}
	if h.domain.pause.cautious {
		shared = 1
	}
	return h.inFlight < concurrency && h.domain.inFlight < shared
}

// earliest is when a request for a URL may start, as far as time alone decides,
// and what holds it until then. Zero: at once.
func (h *host) earliest(url string, now time.Time) (at time.Time, why string) {
	if !h.last.IsZero() {
		if next := h.last.Add(h.spacing); next.After(now) {
			at, why = next, HeldBySlot
		}
	}
	// Of pauses that end together the widest is named: what is named outlives a
	// restart, and the pause of a domain is as long as one of its hosts'.
	for _, hold := range []struct {
		pause *pause
		why   string
	}{{h.urls[url], HeldByURL}, {&h.pause, HeldByHost}, {&h.domain.pause, HeldByDomain}} {
		if until := hold.pause.end(now); until.After(now) && !until.Before(at) {
			at, why = until, hold.why
		}
	}
	return at, why
}

// ready is the earliest moment at which a new request could start.
func (p *pacer) ready(t feedurl.URL, now time.Time) (at time.Time, why string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	h := p.known(t)
	if h == nil {
		return time.Time{}, ""
	}
	at, why = h.earliest(t.String(), now)
	if len(h.queue) == 0 && h.hasRoom() {
		return at, why
	}
	// Those who wait already come first, a gap apart.
	if at.IsZero() {
		at, why = now, HeldBySlot
	}
	return at.Add(time.Duration(len(h.queue)) * h.spacing), why
}

// sent tells that the request leaves now: the gap to the next counts from here,
// however long the connection took.
func (s *slot) sent(now time.Time) {
	if s.pacer == nil {
		return
	}
	s.pacer.mu.Lock()
	defer s.pacer.mu.Unlock()
	s.host.last = now
}

// release gives the slot back, with what the answer asks of those who come next.
func (s *slot) release(v verdict) {
	p := s.pacer
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	s.host.inFlight--
	s.host.domain.inFlight--
	s.host.settle(s, v, time.Now())
	p.dispatch(s.host.domain)
}

// stop grants nothing more. Waiters leave by their contexts.
func (p *pacer) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stopped = true
	for _, d := range p.domains {
		if d.timer != nil {
			d.timer.Stop()
			d.timer = nil
		}
	}
}
