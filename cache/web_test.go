// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"context"
	"time"

	"github.com/feedpollard/pollard/internal/feedurl"
	"github.com/feedpollard/pollard/internal/origintest"
	"github.com/feedpollard/pollard/policy"
	"github.com/feedpollard/pollard/upstream"
)

// response is an answer of an origin for the real [upstream.Client].
type response = origintest.Answer

var given, redirect = origintest.OK, origintest.Redirect

// requested is when a URL was asked, by its own polls or by redirects to it.
func (g *gateway) requested(url string) (at []time.Time) {
	for _, r := range g.web.For(url) {
		at = append(at, r.Time)
	}
	return at
}

// logged is a client whose polls are written down.
type logged struct {
	*upstream.Client
	log *script
}

func (o logged) Acquire(ctx context.Context, url feedurl.URL) (policy.Slot, error) {
	slot, err := o.Client.Acquire(ctx, url)
	if err != nil {
		return nil, err
	}
	return loggedSlot{slot, o.log}, nil
}

type loggedSlot struct {
	policy.Slot
	log *script
}

func (s loggedSlot) Poll(ctx context.Context, ask policy.Ask) policy.Answer {
	s.log.mu.Lock()
	s.log.asks, s.log.at = append(s.log.asks, ask), append(s.log.at, time.Now())
	s.log.mu.Unlock()
	return s.Slot.Poll(ctx, ask)
}
