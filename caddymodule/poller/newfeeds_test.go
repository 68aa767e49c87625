// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package poller

import (
	"strconv"
	"testing"
	"time"

	"github.com/feedpollard/pollard/cache/store"
)

func TestNewFeedsTake(t *testing.T) {
	n, now := newNewFeeds(), time.Unix(1e9, 0)
	network := func(i int) store.Owner { return store.OwnerOf(store.KindPublic, strconv.Itoa(i)) }
	for range publicBurst {
		if wait := n.Take(network(0), now); wait != 0 {
			t.Fatalf("wait %v within the burst", wait)
		}
	}
	for range 2 { // what is refused is not counted
		if wait := n.Take(network(0), now); wait != publicInterval {
			t.Errorf("wait %v, want %v", wait, publicInterval)
		}
	}
	for i := range 2 * maxOwners {
		n.Take(network(i), now)
	}
	if n.limits.Len() > maxOwners {
		t.Errorf("%d owners have a limiter, want at most %d", n.limits.Len(), maxOwners)
	}
}
