// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"fmt"
	"testing"
	"time"
)

// at is a moment of these tests, in hours. 100 days are the present.
func at(hours int) Time { return Time(hours) * Time(time.Hour) }

// The owner for which a feed counts, by what happens to it in order.
func TestOwner(t *testing.T) {
	a, b, shield := OwnerOf(KindNamed, "a"), OwnerOf(KindNamed, "b"), OwnerOf(KindShield, "")
	day := 100
	var f feedRow
	asks := func(owners ...Owner) func() {
		return func() { f.askedBy(owners, at(24*day).day()) }
	}
	later := func(days int) func() { return func() { day += days } }
	configured := func() { f.configure(at(24 * day)) }
	for _, tt := range []struct {
		name string
		do   []func()
		want Owner
	}{
		{"none asked", nil, 0},
		{"a stranger", []func(){asks(Any)}, Any},
		{"a named one takes over at once", []func(){asks(Any), asks(a)}, a},
		{"and stays, whoever asks later", []func(){asks(a), later(1), asks(b, Any, shield)}, a},
		{"for 30 days", []func(){asks(a), later(29), asks(b)}, a},
		{"then the one that asked last", []func(){asks(a, b), later(1), asks(shield), later(29), asks(Any)}, shield},
		{"strangers, if no other is left", []func(){asks(a), later(20), asks(Any), later(10)}, Any},
		{"all have gone", []func(){asks(a, Any), later(30)}, 0},
		{"configured", []func(){asks(a), configured, later(1), asks(b)}, Operator},
		{"configured no more", []func(){asks(a), configured, later(2)}, a},
		{"a ninth does not displace it", []func(){asks(a), later(20), asks(b, 1<<62+1, 1<<62+2, 1<<62+3, 1<<62+4, 1<<62+5, 1<<62+6, 1<<62+7, 1<<62+8)}, a},
	} {
		day, f = 100, newFeed(ID{1})
		f.pickOwner(at(24 * day))
		for _, do := range tt.do {
			do()
			f.pickOwner(at(24 * day))
		}
		if f.owner != tt.want || len(f.askers) > maxAskers {
			t.Errorf("%s: it counts for %x of %x, want %x", tt.name, uint64(f.owner), f.askers, uint64(tt.want))
		}
	}
}

// A ninth asker takes the place of a stranger first, and else of the one that asked the longest ago.
func TestNinthAsker(t *testing.T) {
	named := func(n int) Owner { return OwnerOf(KindNamed, fmt.Sprint(n)) }
	f := newFeed(ID{1})
	f.owner = named(0)
	f.askedBy([]Owner{named(0)}, 1)
	f.askedBy([]Owner{Any}, 50)
	for n := range 6 {
		f.askedBy([]Owner{named(n + 1)}, int64(n+10))
	}
	has := func(o Owner) bool {
		for _, a := range f.askers {
			if a.owner == o {
				return true
			}
		}
		return false
	}
	f.askedBy([]Owner{named(8)}, 51)
	if has(Any) || !has(named(1)) || !has(named(8)) {
		t.Errorf("a ninth: %x", f.askers)
	}
	f.askedBy([]Owner{named(9)}, 52)
	if has(named(1)) || !has(named(0)) || !has(named(9)) {
		t.Errorf("a tenth: %x", f.askers)
	}
	f.askedBy([]Owner{Any}, 53)
	if has(Any) || len(f.askers) != maxAskers {
		t.Errorf("a stranger beside eight: %x", f.askers)
	}
}

// Owners of version 2 of the tables are those of now: all public networks are one, and private addresses are named.
func TestOwnersOfVersion2(t *testing.T) {
	network, address := Owner(1<<kindShift|5), Owner(2<<kindShift|7)
	got := decodeAskers(encodeAskers([]asker{{network, 3}, {address, 4}, {network + 1, 9}}))
	if len(got) != 2 || got[0] != (asker{Any, 9}) || got[1] != (asker{address, 4}) || address.Kind() != KindNamed {
		t.Errorf("askers %x", got)
	}
}
