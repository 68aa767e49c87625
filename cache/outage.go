// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"errors"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
)

const (
	// storeProbe is how often a claim is tried while the store refuses them.
	storeProbe = 5 * time.Second
	// storeRetry is how long a poll that was refused waits at least, and up to three
	// times that: when the store is back, what readers ask for is polled within half
	// a minute, and not all at once.
	storeRetry = 10 * time.Second
	// storePatience is how long a claim may take before that counts as a refusal: a disk
	// that hangs never says so.
	storePatience = 10 * time.Second
)

var errUnanswered = errors.New("the store has not answered a claim for 10 seconds")

// outage is a time in which the store refuses writes: polls stop, and serving
// goes on. It is logged once when it begins and once when it ends.
type outage struct {
	on   atomic.Pointer[string]
	told atomic.Int64 // when a read that failed was logged last, in seconds of [Cache.elapsed]

	refusals atomic.Int64 // of claims, since one was answered last
	next     atomic.Int64 // when a claim may be tried again, as [Cache.elapsed] counts
}

// unreadableEvery is how often it is logged, in seconds, that something cannot be read:
// in an outage, each reader finds that out.
const unreadableEvery = 10

// unreadable reports whether it is time to log a read that failed.
func (o *outage) unreadable(now time.Duration) bool {
	second, last := int64(now/time.Second), o.told.Load()
	return (last == 0 || second-last >= unreadableEvery) && o.told.CompareAndSwap(last, max(second, 1))
}

func (o *outage) begin(log *zap.Logger, err error) {
	text := err.Error()
	if o.on.Swap(&text) == nil {
		log.Error("store refuses writes: polls stop until it takes them again, readers get what is stored", zap.Error(err))
	}
}

func (o *outage) end(log *zap.Logger) {
	o.refusals.Store(0)
	if o.on.Load() != nil && o.on.Swap(nil) != nil {
		log.Info("store takes writes again, polls go on")
	}
}

// claimRefused notes that a claim was not answered. The next one may be tried at a
// moment that several nodes do not have in common.
func (o *outage) claimRefused(log *zap.Logger, err error, now time.Duration, chance float64) {
	o.begin(log, err)
	o.next.Store(int64(now + storeProbe + time.Duration(chance*float64(storeProbe/2))))
	o.refusals.Add(1)
}

// expectClaim notes a refusal where a claim takes too long. It is to be called before the
// claim, and what it returns afterwards.
func (c *Cache) expectClaim() (answered func() bool) {
	return time.AfterFunc(storePatience, func() { c.outage.claimRefused(c.log(), errUnanswered, c.elapsed(), c.chance()) }).Stop
}

// resting reports whether the store refuses claims. A single refusal may be the fault of
// what was claimed.
func (o *outage) resting() bool { return o.refusals.Load() >= 2 }

// mayClaim reports whether the store is to be asked for a poll. While it refuses them,
// one claim at a time finds out whether it still does: the others would wait in vain.
func (o *outage) mayClaim(now time.Duration) bool {
	if !o.resting() {
		return true
	}
	next := o.next.Load()
	return int64(now) >= next && o.next.CompareAndSwap(next, int64(now+storeProbe))
}

// text is why the store refuses writes; empty: it does not.
func (o *outage) text() string {
	if t := o.on.Load(); t != nil {
		return *t
	}
	return ""
}
