// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/feedpollard/pollard/caddymodule/poller"
)

// share is how many new feeds somebody may bring in: burst of them at once, and then
// one each time that refill has passed.
type share struct {
	burst  int
	refill time.Duration
}

var (
	// strangers are covered by `clients any` alone. Each network has a share of its own.
	strangers = share{60, 10 * time.Second}
	// guests are those that the operator has named: by a token, by a range, or as
	// private addresses. A whole subscription list is imported at once.
	guests = share{1000, 2 * time.Second}
)

// maxShares is of how many networks and tokens is known what they have used. All
// further ones share one.
const maxShares = 10_000

// shares keep one client from using up what is there for all: each new feed is a
// poll of somebody's server, and a record.
type shares struct {
	mu   sync.Mutex // guards used
	used map[string]*use
}

// use is what somebody has used of a share.
type use struct {
	share share
	full  time.Time // when nothing of it will be used any more
}

func newShares() any { return &shares{used: make(map[string]*use)} }

// take uses up one of the share, or tells how long it takes until there is one.
func (s *shares) take(who string, of share, now time.Time) (wait time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.used[who]
	if u == nil {
		if len(s.used) >= maxShares {
			s.tidy(now)
		}
		if len(s.used) >= maxShares {
			who = ""
			u = s.used[who]
		}
		if u == nil {
			u = &use{share: of}
			s.used[who] = u
		}
	}
	full := u.full
	if full.Before(now) {
		full = now
	}
	full = full.Add(u.share.refill)
	if wait = full.Sub(now) - time.Duration(u.share.burst)*u.share.refill; wait > 0 {
		return wait
	}
	u.full = full
	return 0
}

// tidy forgets who has all of a share again. The caller holds the lock.
func (s *shares) tidy(now time.Time) {
	for who, u := range s.used {
		if !u.full.After(now) {
			delete(s.used, who)
		}
	}
}

// shareOf is whose share a request uses, and how large that is.
func (a *access) shareOf(by asked, from sender) (who string, of share) {
	if by.signed {
		return "token " + a.holder(by.secret), guests
	}
	named := a.clients
	named.any = false
	if named.private = named.private || named.ranges == nil; named.cover(from) == nil {
		return network(from.address), guests
	}
	return network(from.address), strangers
}

// network is the network of an address, as far as one party is likely to have it: the
// /24 of an IPv4 address, the /48 of an IPv6 one (RFC 6177).
func network(a netip.Addr) string {
	bits := 48
	if a = a.Unmap(); a.Is4() {
		bits = 24
	}
	p, err := a.WithZone("").Prefix(bits)
	if err != nil {
		return "none"
	}
	return p.String()
}

// admitNew returns why a request may not bring in a feed that is not known yet; nil
// where it may. The feeds of the configuration and of its subscription list are
// nobody's share.
func (g *Gateway) admitNew(by asked, from sender, canonical string) *poller.Refusal {
	if g.access.list.has(canonical) {
		return nil
	}
	who, of := g.access.shareOf(by, from)
	wait := g.shares.take(who, of, time.Now())
	if wait == 0 {
		return nil
	}
	return &poller.Refusal{
		Status: http.StatusTooManyRequests, RetryAfter: wait,
		Reason: "too many new feeds have been asked for from your network: feeds that the gateway knows are served as ever",
	}
}
