// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package poller

import (
	"net/netip"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/time/rate"

	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/internal/feedurl"
)

// How many new feeds may be added: a burst at once, then one per interval. Owners that the operator has named import
// whole subscription lists. Strangers, and readers of a shield, may invent any number of addresses, so each of their
// networks has a limit, and all strangers together have one.
const (
	namedBurst, namedInterval     = 1000, 2 * time.Second
	anyBurst, anyInterval         = 600, time.Second
	networkBurst, networkInterval = 60, 10 * time.Second
)

// maxLimits is how many owners and networks have a limit. One that makes no requests for long loses
// it, and starts with a full burst again.
const maxLimits = 10_000

// NewFeeds limits how many feeds are added: every new feed is a poll of another site's server
// and a record in the store. It is safe for concurrent use.
type NewFeeds struct {
	limits *lru.Cache[adder, *rate.Limiter]
}

// adder is an owner, or a network of one.
type adder struct {
	owner   store.Owner
	network netip.Prefix // the zero Prefix is all of the owner
}

func newNewFeeds() *NewFeeds {
	limiters, err := lru.New[adder, *rate.Limiter](maxLimits)
	if err != nil {
		panic(err) // the size is not positive
	}
	return &NewFeeds{limiters}
}

// Take counts a new feed of an owner, asked for from an address. If it may not be added now, it returns how long to
// wait, and counts nothing. The operator may always.
func (n *NewFeeds) Take(owner store.Owner, from netip.Addr, now time.Time) (wait time.Duration) {
	network := adder{owner, feedurl.Network(from)}
	switch owner.Kind() {
	case store.KindOperator:
		return 0
	case store.KindShield:
		return n.take(network, networkBurst, networkInterval, now)
	case store.KindAny:
		if wait = n.take(network, networkBurst, networkInterval, now); wait > 0 {
			return wait
		}
		return n.take(adder{owner: owner}, anyBurst, anyInterval, now)
	}
	return n.take(adder{owner: owner}, namedBurst, namedInterval, now)
}

func (n *NewFeeds) take(a adder, burst int, interval time.Duration, now time.Time) (wait time.Duration) {
	limiter, ok := n.limits.Get(a)
	if !ok {
		limiter = rate.NewLimiter(rate.Every(interval), burst)
		if other, ok, _ := n.limits.PeekOrAdd(a, limiter); ok {
			limiter = other
		}
	}
	reservation := limiter.ReserveN(now, 1)
	if wait = reservation.DelayFrom(now); wait > 0 {
		reservation.CancelAt(now)
	}
	return wait
}
