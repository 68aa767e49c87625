// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package volatile_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/cache/store/storetest"
	"github.com/feedpollard/pollard/cache/store/volatile"
)

func TestContract(t *testing.T) {
	storetest.Run(t, func(*testing.T) storetest.Harness {
		var slept atomic.Int64
		began := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
		now := func() time.Time { return began.Add(time.Duration(slept.Load())) }
		var last *volatile.Store
		return storetest.Harness{
			Open: func() store.Store {
				if last == nil {
					last = volatile.New(now)
				} else {
					last = last.Reopen()
				}
				return last
			},
			Sleep: func(d time.Duration) { slept.Add(int64(d)) },
		}
	})
}
