// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"net/http"
	"time"

	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/caddymodule/poller"
)

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
		return poller.AddressOf(from.address)
	}
	return poller.NetworkOf(from.address)
}

// admitNew returns why an owner may not add a feed, or nil if it may.
func (g *Gateway) admitNew(owner store.Owner) *poller.Refusal {
	wait := g.engine.NewFeeds.Take(owner, time.Now())
	if wait == 0 {
		return nil
	}
	return &poller.Refusal{
		Status: http.StatusTooManyRequests, RetryAfter: wait,
		Reason: "your network has requested too many new feeds; feeds that the gateway already has are still served",
	}
}
