// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"cmp"
	"context"
	"net"
	"net/netip"
	"time"

	"github.com/feedpollard/pollard/internal/feedurl"
)

// maxAddresses is how many addresses of a name are tried: it may have thousands, which belong to others.
const maxAddresses = 16

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

// approach looks up the addresses of the next request's host, before there is a connection.
func (p *poll) approach(ctx context.Context, x *exchange, t feedurl.URL) error {
	x.enter(phaseLookup)
	if err := p.client.resolve(ctx, x.guard, t); err != nil {
		return err
	}
	x.enter(phaseConnecting)
	return context.Cause(ctx)
}

// fallback is how long a connection may take before the next address is tried (RFC 8305 section 5).
const fallback = 300 * time.Millisecond

// dialAddresses connects to the first address that answers, and tries them one after the other.
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
			i++
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
