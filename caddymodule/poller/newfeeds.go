// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package poller

import (
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/time/rate"

	"github.com/feedpollard/pollard/cache/store"
)

// How many new feeds an owner may add: a burst at once, then one per interval. Owners that the
// operator has named import whole subscription lists.
const (
	publicBurst, publicInterval = 60, 10 * time.Second
	namedBurst, namedInterval   = 1000, 2 * time.Second
)

// maxOwners is how many owners have a limiter. An owner that makes no requests for long loses
// it, and starts with a full burst again.
const maxOwners = 10_000

// NewFeeds limits how many feeds each owner adds: every new feed is a poll of another site's server
// and a record in the store. It is safe for concurrent use.
type NewFeeds struct {
	limits *lru.Cache[store.Owner, *rate.Limiter]
}

func newNewFeeds() *NewFeeds {
	limiters, err := lru.New[store.Owner, *rate.Limiter](maxOwners)
	if err != nil {
		panic(err) // the size is not positive
	}
	return &NewFeeds{limiters}
}

// Take counts a new feed of an owner. If the owner may not add one now, it returns how long to
// wait, and counts nothing. The operator may always.
func (n *NewFeeds) Take(owner store.Owner, now time.Time) (wait time.Duration) {
	if owner == store.Operator {
		return 0
	}
	limiter, ok := n.limits.Get(owner)
	if !ok {
		limiter = rate.NewLimiter(rate.Every(namedInterval), namedBurst)
		if owner.Kind() == store.KindPublic {
			limiter = rate.NewLimiter(rate.Every(publicInterval), publicBurst)
		}
		if other, ok, _ := n.limits.PeekOrAdd(owner, limiter); ok {
			limiter = other
		}
	}
	reservation := limiter.ReserveN(now, 1)
	if wait = reservation.DelayFrom(now); wait > 0 {
		reservation.CancelAt(now)
	}
	return wait
}
