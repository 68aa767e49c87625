// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"fmt"
	"testing"

	"github.com/feedpollard/pollard/cache/store"
)

// Each rank leaves an eighth to each better one, an owner has half of what its rank may have, and of bodies
// one may always come alone.
func TestLimit(t *testing.T) {
	network := func(n int) store.Owner { return store.OwnerOf(store.KindPublic, fmt.Sprint(n)) }
	for name, test := range map[string]struct {
		size    int64
		alone   bool
		n       int64
		by      func(int) store.Owner // of each one that comes
		granted [6]int                // of many that come, by rank
	}{
		"polls of many owners":   {128, false, 1, network, [6]int{1: 128, 112, 96, 80, 64}},
		"polls of one owner":     {128, false, 1, func(int) store.Owner { return network(1) }, [6]int{1: 128, 56, 48, 40, 32}},
		"three polls":            {3, false, 1, network, [6]int{1: 3, 2, 1, 1, 1}},
		"one poll":               {1, false, 1, network, [6]int{1: 1, 1, 1, 1, 1}},
		"bodies":                 {24, true, 3, network, [6]int{1: 8, 7, 6, 5, 4}},
		"a body larger than all": {8, true, 100, network, [6]int{1: 2, 2, 2, 2, 2}},
	} {
		t.Run(name, func(t *testing.T) {
			for r := store.RankOperator; r <= store.RankPublicNew; r++ {
				l := limit{size: test.size, alone: test.alone}
				var release []func()
				for i := range 200 {
					if done := l.try(store.Share{Rank: r, Owner: test.by(i)}, test.n); done != nil {
						release = append(release, done)
					}
				}
				if len(release) != test.granted[r] {
					t.Errorf("rank %d: %d of many were granted, want %d", r, len(release), test.granted[r])
				}
				if done := l.try(store.Share{Rank: store.RankOperator, Owner: store.Operator}, test.n); (done != nil) != (r > store.RankOperator && test.size > 1) {
					t.Errorf("rank %d has all that it may have: the operator has one more: %v", r, done != nil)
				} else if done != nil {
					done()
				}
				for _, done := range release {
					done()
				}
				if l.inUse() != 0 || len(l.owners) != 0 || l.free(r) != l.most(r) {
					t.Errorf("rank %d: %d are in use, of %d owners, after all were given back", r, l.inUse(), len(l.owners))
				}
			}
		})
	}
}
