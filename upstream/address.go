// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/feedpollard/pollard/internal/feedurl"
	"github.com/feedpollard/pollard/policy"
)

// Names cost nothing, so many of them may lead to one machine, by a wildcard or by an import of all
// the blogs of one company. So requests are spaced by the public address too: so many at once,
// then so many a second.
const (
	unknownAtOnce, unknownRate = 8, 1  // feeds that may be invented, and redirects to another host
	knownAtOnce, knownRate     = 32, 8 // others
)

const (
	maxTurn       = time.Second      // a poll waits as long in place; otherwise it gives its claim back
	maxHopTurn    = 10 * time.Second // a redirect waits as long
	maxReserved   = 5 * time.Minute  // how far ahead moments are reserved
	maxStranger   = time.Minute      // the same for feeds of strangers, so that they do not fill the time of others
	keepReserved  = 10 * time.Second // how long after it a reserved moment is good
	lookupTimeout = 10 * time.Second
	maxAddresses  = 16 // of a name that are tried: it may have thousands, which belong to others
)

var errTurn = errors.New("waits for its turn: many feeds are at this address")

// addresses spaces the requests to each address.
type addresses struct {
	mu      sync.Mutex
	limits  map[place]*rate.Limiter
	turns   map[turn]time.Time // moments that polls have reserved
	sweepAt int                // number of limits and turns at which old ones are dropped
}

// place is an address of IPv4 or a /64 of IPv6, for feeds that may be invented or for others.
type place struct {
	address netip.Prefix
	known   bool
}

// turn is a place and the URL of a feed that has reserved a moment there.
type turn struct {
	place
	url feedurl.URL
}

// wait returns how long a request must wait for its turn at an address. If that is more than
// maxTurn, the moment is reserved, unless it is further ahead than most.
func (a *addresses) wait(address netip.Addr, u feedurl.URL, standing policy.Standing, now time.Time) time.Duration {
	at, public := placeOf(address, standing)
	if !public {
		return 0
	}
	most := maxReserved
	if standing == policy.StandingStranger {
		most = maxStranger
	}
	t := turn{at, u}
	a.mu.Lock()
	defer a.mu.Unlock()
	if reserved, ok := a.turns[t]; ok {
		wait := reserved.Sub(now)
		if wait > maxTurn {
			return wait
		}
		delete(a.turns, t)
		if wait > -keepReserved {
			return max(wait, 0)
		}
	}
	r := a.limit(t.place, now).ReserveN(now, 1)
	wait := r.DelayFrom(now)
	switch {
	case wait > most:
		r.CancelAt(now)
		return most
	case wait > maxTurn:
		a.turns[t] = now.Add(wait)
	}
	return wait
}

// allow takes a turn at an address, if it is now.
func (a *addresses) allow(address netip.Addr, now time.Time) bool {
	at, public := placeOf(address, policy.StandingNew)
	a.mu.Lock()
	defer a.mu.Unlock()
	return !public || a.limit(at, now).AllowN(now, 1)
}

// placeOf returns the place of a public address. An address that only the
// configuration allows is in the operator's own network.
func placeOf(address netip.Addr, standing policy.Standing) (_ place, public bool) {
	at, kind := destination(address)
	if inner, ok := embedded(at); ok {
		at = inner // behind NAT64 all addresses of IPv4 are in one /64
	}
	bits := 64
	if at.Is4() {
		bits = 32
	}
	prefix, err := at.Prefix(bits)
	return place{prefix, standing == policy.StandingKnown}, err == nil && kind == ""
}

// limit returns the limit of a place.
func (a *addresses) limit(at place, now time.Time) *rate.Limiter {
	if a.limits == nil {
		a.limits, a.turns = make(map[place]*rate.Limiter), make(map[turn]time.Time)
	}
	if len(a.limits)+len(a.turns) >= a.sweepAt {
		maps.DeleteFunc(a.limits, func(_ place, l *rate.Limiter) bool { return l.TokensAt(now) >= float64(l.Burst()) })
		maps.DeleteFunc(a.turns, func(_ turn, reserved time.Time) bool { return now.Sub(reserved) > keepReserved })
		a.sweepAt = max(256, 2*(len(a.limits)+len(a.turns)))
	}
	l := a.limits[at]
	if l == nil {
		l = rate.NewLimiter(unknownRate, unknownAtOnce)
		if at.known {
			l = rate.NewLimiter(knownRate, knownAtOnce)
		}
		a.limits[at] = l
	}
	return l
}

// resolve looks up the addresses of a request's host, and keeps those that it may reach. A proxy
// may be able to reach private addresses, so that none may be forbidden there. If the name cannot be
// looked up here, only a proxy's rule that names the host allows the request.
func (c *Client) resolve(ctx context.Context, g *guard, t feedurl.URL) error {
	if g.off || g.resolved {
		return nil
	}
	addresses := []netip.Addr{t.Addr()}
	if !t.Addr().IsValid() {
		var err error
		switch addresses, err = c.lookup(ctx, t.Name()); {
		case err != nil && (!g.named || ctx.Err() != nil):
			return err
		case err != nil:
			addresses = nil
		}
	}
	port := portOf(t)
	if len(addresses) == 0 && badPort(port) {
		return &AddressError{t.HostPort(), "at a port of another protocol than HTTP"}
	}
	g.addresses = g.addresses[:0]
	var refused error
	for _, a := range addresses {
		if err := g.check(a, port); err != nil {
			refused = cmp.Or(refused, err)
		} else if len(g.addresses) < maxAddresses {
			g.addresses = append(g.addresses, a)
		}
	}
	if refused != nil && (g.proxy != nil || len(g.addresses) == 0) {
		return refused
	}
	if g.resolved = true; g.proxy != nil {
		g.public = true
		for _, a := range g.addresses {
			g.connected(a)
		}
	}
	return nil
}

// Turn implements [policy.Slot].
func (s *slot) Turn(ctx context.Context, standing policy.Standing) time.Duration {
	c := s.client
	if c.noPacing {
		return 0
	}
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	g := c.guardOf(s.url, false)
	if err := c.resolve(ctx, g, s.url); err != nil || len(g.addresses) == 0 {
		return 0 // the poll says what is wrong
	}
	wait := c.addresses.wait(g.addresses[0], s.url, standing, c.now())
	if wait > maxTurn {
		return wait
	}
	g.turn = c.now().Add(wait)
	s.guard = g
	return 0
}

// approach looks up the addresses of the next request's host, and waits for its turn at the first
// of them, before there is a connection.
func (p *poll) approach(ctx context.Context, x *exchange, t feedurl.URL) error {
	c, g := p.client, x.guard
	x.enter(phaseLookup)
	if err := c.resolve(ctx, g, t); err != nil {
		return err
	}
	x.enter(phaseConnecting)
	if len(g.addresses) == 0 || c.noPacing {
		return nil
	}
	wait, most := g.turn.Sub(c.now()), maxTurn
	if g.turn.IsZero() {
		standing := p.ask.Standing
		if len(p.answer.Moves) > 0 {
			most = maxHopTurn
		}
		if t.Site() != p.ask.URL.Site() {
			standing = max(standing, policy.StandingNew)
		}
		wait = c.addresses.wait(g.addresses[0], p.ask.URL, standing, c.now())
	}
	if wait > most {
		p.answer.NotBefore, p.answer.Holder = c.now().Add(wait), policy.HintAddress
		return errTurn
	}
	p.pauseTimer(func() { sleep(ctx, wait) })
	return context.Cause(ctx)
}

// fallback is how long a connection may take before the next address is tried (RFC 8305 section 5).
const fallback = 300 * time.Millisecond

// dialAddresses connects to the first address, which has taken its turn, or to another one if that
// does not answer and the other one's turn is now.
func (c *Client) dialAddresses(ctx context.Context, g *guard, dial func(context.Context, netip.Addr) (net.Conn, error)) (net.Conn, error) {
	type result struct {
		conn net.Conn
		err  error
		at   netip.Addr
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	results := make(chan result)
	var first error
	under := 0
	for i := 0; i < len(g.addresses) || under > 0; {
		if i < len(g.addresses) {
			a := g.addresses[i]
			if i++; i == 1 || c.addresses.allow(a, c.now()) {
				under++
				go func() {
					conn, err := dial(ctx, a)
					select {
					case results <- result{conn, err, a}:
					case <-ctx.Done():
						if conn != nil {
							conn.Close()
						}
					}
				}()
			}
		}
		if under == 0 {
			continue
		}
		var next <-chan time.Time
		if i < len(g.addresses) {
			next = time.After(fallback)
		}
		select {
		case r := <-results:
			if under--; r.err == nil {
				g.connected(r.at)
				return r.conn, nil
			}
			first = cmp.Or(first, r.err)
		case <-next:
		}
	}
	return nil, first
}
