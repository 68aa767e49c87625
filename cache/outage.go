// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"sync/atomic"
	"time"

	"go.uber.org/zap"
)

// outage is a time in which the store refuses writes: polls stop, and serving
// goes on. It is logged once when it begins and once when it ends.
type outage struct {
	on   atomic.Pointer[string]
	told atomic.Int64 // when a read that failed was logged last, in seconds of [Cache.elapsed]
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
	if o.on.Load() != nil && o.on.Swap(nil) != nil {
		log.Info("store takes writes again, polls go on")
	}
}

// text is why the store refuses writes; empty: it does not.
func (o *outage) text() string {
	if t := o.on.Load(); t != nil {
		return *t
	}
	return ""
}
