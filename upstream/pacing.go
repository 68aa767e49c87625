// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/feedpollard/pollard/internal/feedurl"
	"github.com/feedpollard/pollard/policy"
)

const (
	// domainConcurrency is how many polls of one registrable domain may be in flight,
	// unless a host's own rule says more.
	domainConcurrency = 2
	// maxWait is the longest wait for the end of a pause, and the longest wait at all if
	// the context has no deadline. Longer waits fail at once.
	maxWait = 15 * time.Second
)

// pacer grants the slots of hosts. Its lock guards memory only: no I/O and no wait happens
// while it is held.
type pacer struct {
	mu      sync.Mutex
	rules   feedurl.HostTable[HostRule]
	hosts   map[string]*host
	domains map[string]*domain
	pauses  map[string]*pause   // by scope, as [policy.Pause] has it
	busy    map[string]struct{} // names of hosts with polls in flight or waiting
	arrived uint64              // waiters so far: their order of arrival
	sweepAt int                 // number of hosts and pauses at which idle ones are dropped
	stopped bool
	off     bool // nothing is paced; set before the first use
	clock   *clock
}

// domain is the hosts of one registrable domain.
type domain struct {
	name     string
	scope    string // of its pause; empty: it has none
	hosts    int    // known
	inFlight int
	ready    hostHeap    // hosts whose first waiter may start now
	later    hostHeap    // hosts whose first waiter may start at a known time
	full     hostHeap    // hosts whose first waiter may start when a slot is given back
	timer    *time.Timer // for the first of those; nil: there are none
}

// host is a host, or one of its ports if these are paced separately.
type host struct {
	name        string // as it is paced
	pattern     string // name in rules
	scope       string // of its pause
	domain      *domain
	spacing     time.Duration
	concurrency int
	queue       []*waiter // in the order in which they will start
	inFlight    int
	unsent      int       // slots of those in flight whose request was not sent yet
	last        time.Time // start of the last request; zero: none yet
	good        time.Time // when it last answered well; zero: never, or it has answered 429 since
	at          time.Time // in domain.later: when the first waiter may start
	heap        *hostHeap // of its domain; nil: it is in none
	index       int       // in the heap
}

// class is how urgent a poll is.
type class int

const (
	classHop    class = iota // a redirect of a poll that is in flight
	classUrgent              // a reader waits
	classOther
)

// waiter is a poll that waits for its slot.
type waiter struct {
	class   class
	arrived uint64
	done    chan struct{} // closed when slot or held is set
	slot    *slot
	held    *policy.Held
}

func (w *waiter) before(other *waiter) bool {
	if w.class != other.class {
		return w.class < other.class
	}
	return w.arrived < other.arrived
}

// slot is the right to send one request. The zero slot is not counted.
type slot struct {
	pacer   *pacer
	host    *host
	started time.Time // when it was granted
	before  time.Time // the host's last request then
	left    bool      // the request has left
}

func newPacer() *pacer {
	return &pacer{
		hosts: make(map[string]*host), domains: make(map[string]*domain), pauses: make(map[string]*pause),
		busy: make(map[string]struct{}), sweepAt: 64, clock: newClock(time.Now, nil),
	}
}

// acquire waits for the slot of a URL's host until the context ends. It fails at once
// with a [policy.Held] if the slot would come too late.
func (p *pacer) acquire(ctx context.Context, u feedurl.URL, c class) (*slot, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if p.off {
		return new(slot), nil
	}
	p.mu.Lock()
	if p.stopped {
		p.mu.Unlock()
		return nil, ErrClosed
	}
	h := p.host(u)
	p.arrived++
	w := &waiter{class: c, arrived: p.arrived, done: make(chan struct{})}
	if held := p.heldBack(ctx, h, w); held != nil {
		p.mu.Unlock()
		return nil, held
	}
	h.queue = slices.Insert(h.queue, h.position(w), w)
	p.place(h, p.clock.now())
	p.dispatch(h.domain)
	p.mu.Unlock()

	select {
	case <-w.done:
	case <-ctx.Done():
		if p.withdraw(h, w) {
			return nil, context.Cause(ctx)
		}
	}
	if w.held != nil {
		return nil, w.held
	}
	return w.slot, nil
}

func (h *host) position(w *waiter) int {
	i, _ := slices.BinarySearchFunc(h.queue, w, func(a, b *waiter) int {
		if a.before(b) {
			return -1
		}
		return 1
	})
	return i
}

// heldBack returns an error if a new waiter would have to wait too long.
func (p *pacer) heldBack(ctx context.Context, h *host, w *waiter) *policy.Held {
	now := p.clock.now()
	if held := p.heldByPause(h, now); held != nil {
		return held
	}
	limit := now.Add(maxWait)
	if deadline, ok := ctx.Deadline(); ok {
		limit = now.Add(time.Until(deadline)) // contexts have the system's clock
	}
	// Those ahead start a gap apart, at best.
	at := p.earliest(h, now).Add(time.Duration(h.position(w)) * h.spacing)
	if at.After(limit) {
		return &policy.Held{Until: p.clock.wall(at), Why: policy.HintHostSlot}
	}
	return nil
}

// heldByPause returns an error if a pause is too long to wait for.
func (p *pacer) heldByPause(h *host, now time.Time) *policy.Held {
	if until, why := p.paused(h.name, h.domain.scope, now); until.Sub(now) > maxWait {
		return &policy.Held{Until: p.clock.wall(until), Why: why}
	}
	return nil
}

// withdraw removes a waiter from its queue. It reports false if the waiter was granted its
// slot, or an error, in the meantime.
func (p *pacer) withdraw(h *host, w *waiter) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.Index(h.queue, w)
	if i < 0 {
		return false
	}
	h.queue = slices.Delete(h.queue, i, i+1)
	p.place(h, p.clock.now())
	p.dispatch(h.domain)
	return true
}

// earliest returns when the host's first waiter may start according to gaps and pauses.
func (p *pacer) earliest(h *host, now time.Time) time.Time {
	at := now
	if next := h.last.Add(h.spacing); !h.last.IsZero() && next.After(at) {
		at = next
	}
	if until, _ := p.paused(h.name, h.domain.scope, now); until.After(at) {
		at = until
	}
	return at
}

// place puts a host into the heap for its first waiter. It must be called after each
// change of the host's queue, its requests in flight, or its pauses, and before
// dispatch. The caller holds the lock.
func (p *pacer) place(h *host, now time.Time) {
	h.unlist()
	if held := p.heldByPause(h, now); held != nil {
		for _, w := range h.queue {
			w.held = held
			close(w.done)
		}
		h.queue = nil
	}
	if len(h.queue)+h.inFlight == 0 {
		delete(p.busy, h.name)
		return
	}
	p.busy[h.name] = struct{}{}
	if len(h.queue) == 0 {
		return
	}
	switch h.at = p.earliest(h, now); {
	case !p.hasRoom(h):
		h.list(&h.domain.full)
	case h.at.After(now):
		h.list(&h.domain.later)
	default:
		h.list(&h.domain.ready)
	}
}

// hasRoom reports whether another request to the host may be in flight. After a pause
// there is one at a time, until a good response: all waiters at once would cause the
// next pause.
func (p *pacer) hasRoom(h *host) bool {
	if h.unsent > 0 && h.spacing > 0 {
		return false // the gap begins when it leaves
	}
	if p.pauses[h.scope].isHalfOpen() {
		return h.inFlight < 1
	}
	return h.inFlight < h.concurrency
}

func (p *pacer) domainHasRoom(h *host) bool {
	if p.pauses[h.domain.scope].isHalfOpen() && !h.exempt(p.clock.now()) {
		return h.domain.inFlight < 1
	}
	return h.domain.inFlight < max(domainConcurrency, h.concurrency)
}

// dispatch grants slots to the waiters that may start now, and sets the domain's timer for
// the next one. The caller holds the lock.
func (p *pacer) dispatch(d *domain) {
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
	if p.stopped {
		return
	}
	now := p.clock.now()
	for h := d.later.first(); h != nil && !h.at.After(now); h = d.later.first() {
		p.place(h, now) // it is ready, or later still
	}
	for h := d.ready.first(); h != nil && p.domainHasRoom(h); h = d.ready.first() {
		w := h.queue[0]
		h.queue = slices.Delete(h.queue, 0, 1)
		w.slot = &slot{pacer: p, host: h, started: now, before: h.last}
		h.inFlight++
		h.unsent++
		h.domain.inFlight++
		h.last = now
		p.place(h, now)
		close(w.done)
	}
	if h := d.later.first(); h != nil {
		d.timer = time.AfterFunc(h.at.Sub(now), func() {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.dispatch(d)
		})
	}
}

// replace places all hosts of a domain again.
func (p *pacer) replace(d *domain, now time.Time) {
	for _, h := range slices.Concat(d.ready.hosts, d.later.hosts, d.full.hosts) {
		p.place(h, now)
	}
	p.dispatch(d)
}

// sent records that the request is sent now. The gap to the next one counts from here, not
// from the claim or the connection.
func (s *slot) sent() {
	if s.pacer == nil {
		return
	}
	s.pacer.mu.Lock()
	defer s.pacer.mu.Unlock()
	now := s.pacer.clock.now()
	s.host.last = now
	if !s.left {
		s.left = true
		s.host.unsent--
	}
	s.pacer.place(s.host, now)
	s.pacer.dispatch(s.host.domain)
}

// release gives the slot back with the hint of the response, and returns the new pauses.
func (s *slot) release(v hint) []pauseUntil {
	if s.pacer == nil {
		return nil
	}
	s.pacer.mu.Lock()
	defer s.pacer.mu.Unlock()
	now, d := s.pacer.clock.now(), s.host.domain
	made := s.pacer.record(s, v, now)
	for _, a := range made {
		if a.scope == d.scope {
			s.pacer.replace(d, now)
		}
	}
	s.back(now)
	return made
}

// cancel gives the slot back as if it had never been granted.
func (s *slot) cancel() {
	if s.pacer == nil {
		return
	}
	s.pacer.mu.Lock()
	defer s.pacer.mu.Unlock()
	if s.host.last.Equal(s.started) {
		s.host.last = s.before
	}
	s.back(s.pacer.clock.now())
}

func (s *slot) back(now time.Time) {
	s.host.inFlight--
	s.host.domain.inFlight--
	if !s.left {
		s.host.unsent--
	}
	s.pacer.place(s.host, now)
	s.pacer.dispatch(s.host.domain)
}

// apply changes the rules for requests from now on.
func (p *pacer) apply(rules []HostRule) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rules = tableOf(rules)
	now := p.clock.now()
	for _, h := range p.hosts {
		h.spacing, h.concurrency = pace(&p.rules, h.pattern)
		p.place(h, now)
	}
	for _, d := range p.domains {
		p.dispatch(d)
	}
}

// stop ends the granting of slots. Waiters end with their contexts.
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
