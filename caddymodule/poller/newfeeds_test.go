// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package poller

import (
	"encoding/binary"
	"net/netip"
	"testing"
	"time"

	"github.com/feedpollard/pollard/cache/store"
)

// Each network of strangers, and of a shield's readers, has a limit; all strangers together have one, a named owner
// has one wherever it asks from, and the operator has none.
func TestNewFeedsTake(t *testing.T) {
	now := time.Unix(1e9, 0)
	network := func(i int) netip.Addr {
		var a [4]byte
		binary.BigEndian.PutUint32(a[:], 0x0b000000+uint32(i)<<8)
		return netip.AddrFrom4(a)
	}
	one := func(int) netip.Addr { return network(0) }
	for name, test := range map[string]struct {
		owner store.Owner
		from  func(int) netip.Addr
		burst int
		wait  time.Duration
	}{
		"a network of strangers":        {store.Any, one, networkBurst, networkInterval},
		"all strangers":                 {store.Any, network, anyBurst, anyInterval},
		"a network of a shield":         {store.OwnerOf(store.KindShield, "s"), one, networkBurst, networkInterval},
		"a token":                       {store.OwnerOf(store.KindNamed, "t"), one, namedBurst, namedInterval},
		"a token at many places":        {store.OwnerOf(store.KindNamed, "t"), network, namedBurst, namedInterval},
		"the operator":                  {store.Operator, one, 5000, 0},
		"many networks asking a shield": {store.OwnerOf(store.KindShield, "s"), network, 5000, 0},
	} {
		n := newNewFeeds()
		for i := range test.burst {
			if wait := n.Take(test.owner, test.from(i), now); wait != 0 {
				t.Fatalf("%s: feed %d has to wait %v", name, i, wait)
			}
		}
		for range 2 { // what is refused is not counted
			if wait := n.Take(test.owner, test.from(test.burst), now); wait != test.wait {
				t.Errorf("%s: wait %v, want %v", name, wait, test.wait)
			}
		}
	}
	n := newNewFeeds()
	for i := range 2 * maxLimits {
		n.Take(store.Any, network(i), now)
	}
	if n.limits.Len() > maxLimits {
		t.Errorf("there are %d limits, want at most %d", n.limits.Len(), maxLimits)
	}
}
