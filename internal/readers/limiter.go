// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package readers

import (
	"math/bits"
	"net/http"
)

// defaultClients is how many readers of feeds a limiter remembers by default.
const defaultClients = 32768

// Limiter keeps the [State] of readers and applies a [Defence].
//
// A reader is identified by its User-Agent, its token and its full address, of which only
// keyed hashes are kept. People who share an address (NAT) but use different readers are
// judged separately. The machines of one operator in one network are judged as one
// reader: see [group].
//
// Its memory is bounded: the least recently seen reader is forgotten first, and then
// treated as new. It uses the times of requests, and is safe for concurrent use.
type Limiter struct {
	seed    seed
	agents  agents
	clients *sharedLRU[State]
	groups  *sharedLRU[group]
}

// NewLimiter returns a limiter that remembers up to readers readers of feeds, at about
// 200 bytes each. If readers is 0, it remembers 32768.
func NewLimiter(readers int) *Limiter {
	if readers <= 0 {
		readers = defaultClients
	}
	s := newSeed(0)
	return &Limiter{s, newAgents(s), newSharedLRU[State](readers), newSharedLRU[group](max(readers/4, 1))}
}

// group counts the requests with one User-Agent and token from one network (IPv4 /24,
// IPv6 /64) for one feed. Its addresses are taken for the machines of one reader only if
// several of them repeatedly request the whole feed and hardly any request is conditional.
type group struct {
	state       State
	addresses   uint64 // bits that full addresses hash to
	asked       int32  // GETs
	conditional int32  // GETs with validators
	again       int32  // unconditional GETs from addresses that had been sent the whole feed
}

const (
	groupAddresses = 3
	groupAgain     = 4
	// groupMemory is the number of GETs after which the counts are halved, so that recent
	// requests count more: a reader may have been repaired.
	groupMemory = 256
)

// oneReader reports whether the group is one reader. A User-Agent that names a person's
// system or a common library never is: the addresses may be those of a provider's
// customers.
func (g *group) oneReader(a *Agent) bool {
	return a.hosted() && bits.OnesCount64(g.addresses) >= groupAddresses &&
		g.again >= groupAgain && g.conditional*8 < g.asked
}

func (g *group) count(r *Request, address uint64, served bool) {
	g.addresses |= 1 << (address >> 58)
	if r.Method != http.MethodGet {
		return
	}
	g.asked++
	if r.Conditional() {
		g.conditional++
	}
	if served && r.whole() {
		g.again++
	}
	if g.asked >= groupMemory {
		g.asked, g.conditional, g.again = g.asked/2, g.conditional/2, g.again/2
	}
}

// client has the keys of a request's client.
type client struct {
	agent               agent
	address, key, group uint64
}

func (l *Limiter) client(r *Request) client {
	a := l.agents.find(r.UserAgent)
	c := client{agent: a, address: l.seed.address(r.Client.Unmap())}
	same := join(join(l.seed.text(r.Feed), a.key), l.seed.text(r.Token))
	c.key = join(same, c.address)
	c.group = join(same, l.seed.address(prefix(r.Client, 64).Addr()))
	return c
}

// Judge decides on a request before it is answered. If the verdict is to serve it, the
// caller calls [Limiter.Answered] with the answer. For a request that is answered by a
// 304, Judge does not wait for a lock.
func (l *Limiter) Judge(d Defence, r Request) Verdict {
	if r.Browser {
		return Verdict{}
	}
	c := l.client(&r)
	if r.Validators == ValidatorsCurrent {
		// If the lock is taken, this request is not counted: others of its group will be.
		l.groups.tryUpdate(c.group, func(g *group) { g.count(&r, c.address, false) })
		return Verdict{}
	}
	var own State
	l.clients.update(c.key, func(s *State) { own = *s })
	if own.person(*c.agent.Agent, &r) {
		return Verdict{}
	}
	judged := own
	l.groups.update(c.group, func(g *group) {
		g.count(&r, c.address, !own.Full.IsZero())
		if g.oneReader(c.agent.Agent) {
			judged = g.state
			judged.Told, judged.Shown = own.Told, own.Shown // each machine has its own wait
		}
	})
	verdict := d.Judge(*c.agent.Agent, judged, &r)
	if verdict.Status == http.StatusTooManyRequests {
		l.clients.update(c.key, func(s *State) { s.Told = verdict.Until })
	}
	return verdict
}

// Answered records the answer to a request that Judge has not refused.
func (l *Limiter) Answered(d Defence, r Request) {
	if r.Browser || r.Status == http.StatusNotModified {
		return // does not count
	}
	c := l.client(&r)
	l.clients.update(c.key, func(s *State) {
		*s = d.Answered(*s, &r)
		if c.agent.Kind == KindBrowser && r.Method == http.MethodGet && r.Status == http.StatusOK {
			s.Shown++
		}
	})
	l.groups.update(c.group, func(g *group) { g.state = d.Answered(g.state, &r) })
}
