// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"fmt"
	"testing"

	"github.com/feedpollard/pollard/cache/store"
)

// The last eighth is the operator's, another owner has half of the rest, and of bodies one may always come
// alone.
func TestLimit(t *testing.T) {
	owner := func(n int) store.Owner { return store.OwnerOf(store.KindNamed, fmt.Sprint(n)) }
	one := func(int) store.Owner { return owner(1) }
	operator := func(int) store.Owner { return store.Operator }
	for name, test := range map[string]struct {
		size    int64
		alone   bool
		n       int64
		by      func(int) store.Owner // of each one that comes
		granted int                   // of many that come
	}{
		"polls of many owners":            {128, false, 1, owner, 112},
		"polls of one owner":              {128, false, 1, one, 56},
		"polls of the operator":           {128, false, 1, operator, 128},
		"three polls":                     {3, false, 1, owner, 2},
		"one poll":                        {1, false, 1, owner, 1},
		"bodies":                          {24, true, 3, owner, 7},
		"bodies of one owner":             {24, true, 3, one, 3},
		"a body larger than all":          {8, true, 100, owner, 2},
		"the operator's larger than all":  {8, true, 100, operator, 2},
		"no place but for the operator's": {1, false, 1, operator, 1},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLimit(test.size, test.alone)
			var release []func()
			for i := range 200 {
				if done := l.try(test.by(i), test.n); done != nil {
					release = append(release, done)
				}
			}
			if len(release) != test.granted {
				t.Errorf("%d of many were granted, want %d", len(release), test.granted)
			}
			for _, done := range release {
				done()
			}
			if l.inUse() != 0 || len(l.owners) != 0 {
				t.Errorf("%d are in use, of %d owners, after all were given back", l.inUse(), len(l.owners))
			}
		})
	}
}

// When others have all that they may have, the operator has one more.
func TestLimitKeepsSomeForTheOperator(t *testing.T) {
	for _, size := range []int64{2, 8, 128} {
		l := newLimit(size, false)
		for i := range 200 {
			l.try(store.OwnerOf(store.KindNamed, fmt.Sprint(i)), 1)
		}
		if l.try(store.Operator, 1) == nil {
			t.Errorf("of %d places the operator has none", size)
		}
	}
}
