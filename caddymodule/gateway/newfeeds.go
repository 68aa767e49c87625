// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"net/http"
	"net/netip"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/time/rate"

	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/caddymodule/poller"
)

// newFeedRate is how many new feeds one owner may add: burst at once, then one per interval.
type newFeedRate struct {
	burst    int
	interval time.Duration
}

var (
	// publicRate is for networks that only `clients any` admits.
	publicRate = newFeedRate{60, 10 * time.Second}
	// namedRate is for clients that the operator has named: by a token, by an address range, or
	// as private addresses. They import whole subscription lists at once.
	namedRate = newFeedRate{1000, 2 * time.Second}
)

// maxOwners is how many owners have a limiter. An owner that makes no requests for long loses
// it, and starts with a full burst again.
const maxOwners = 10_000

// newFeeds limits how many feeds each owner adds: every new feed is a poll of somebody's server
// and a record in the store.
type newFeeds struct {
	limiters *lru.Cache[store.Owner, *rate.Limiter]
}

func makeNewFeeds() any {
	limiters, err := lru.New[store.Owner, *rate.Limiter](maxOwners)
	if err != nil {
		panic(err) // the size is not positive
	}
	return &newFeeds{limiters}
}

// take counts a new feed of an owner. If the owner may not add one now, it returns how long to
// wait, and counts nothing.
func (n *newFeeds) take(owner store.Owner, now time.Time) (wait time.Duration) {
	limiter, ok := n.limiters.Get(owner)
	if !ok {
		r := namedRate
		if owner.Kind() == store.KindPublic {
			r = publicRate
		}
		limiter = rate.NewLimiter(rate.Every(r.interval), r.burst)
		if other, ok, _ := n.limiters.PeekOrAdd(owner, limiter); ok {
			limiter = other
		}
	}
	reservation := limiter.ReserveN(now, 1)
	if wait = reservation.DelayFrom(now); wait > 0 {
		reservation.CancelAt(now)
	}
	return wait
}

// ownerOf returns the owner for whom a request by URL asks for a feed.
func (a *access) ownerOf(by urlRequest, from client, canonical string) store.Owner {
	if a.list.has(canonical) {
		return store.Operator
	}
	if by.hasToken {
		return store.OwnerOf(store.KindToken, a.tokenName(by.token))
	}
	named := a.clients
	named.any = false
	if named.private = named.private || named.ranges == nil; named.check(from) == nil {
		return store.OwnerOf(store.KindAddress, from.address.Unmap().String())
	}
	return store.OwnerOf(store.KindPublic, network(from.address))
}

// network returns the network of an address that one party is likely to have: the /24 of an
// IPv4 address, the /48 of an IPv6 address (RFC 6177).
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

// admitNew returns why an owner may not add a feed, or nil if it may. The operator's feeds are
// not limited.
func (g *Gateway) admitNew(owner store.Owner) *poller.Refusal {
	if owner == store.Operator {
		return nil
	}
	wait := g.newFeeds.take(owner, time.Now())
	if wait == 0 {
		return nil
	}
	return &poller.Refusal{
		Status: http.StatusTooManyRequests, RetryAfter: wait,
		Reason: "your network has requested too many new feeds; feeds that the gateway already has are still served",
	}
}
