// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"math"
	"time"
)

// These give tests of package store_test the rules over rows, and the promises about rows.
type (
	Order    = order
	OrderKey = orderKey
)

// NewOrder returns an order of events over rows of which nothing is known. Claims hold for so long at most.
func NewOrder(hold time.Duration) Order {
	o := newOrder()
	o.hold = hold
	return *o
}

const OrderSite = orderSite

func OrderURL(i int) string { return orderURL(i) }

// LeaseKey is what a key has of the leases of a node.
type LeaseKey struct{ holds, fenced [2]bool }

// Key returns the key of the rows, and those of the leases of each node. It makes no difference how long ago something was that
// counts for a day: the orders of package store_test do not last so long.
func (o *order) Key() (k orderKey, leases [2]LeaseKey) {
	k = o.key()
	for i := range k.feeds {
		for node := range leases {
			leases[node].holds[i], leases[node].fenced[i] = k.feeds[i].holds[node], k.feeds[i].fenced[node]
		}
		k.feeds[i].holds, k.feeds[i].fenced = [2]bool{}, [2]bool{}
	}
	for _, moment := range []*int32{&k.site[2], &k.site[3], &k.site[4]} {
		if *moment != math.MinInt32 {
			*moment = max(*moment, 0)
		}
	}
	return k, leases
}

func (o *order) Now() Time { return o.now }

// Record returns the record of a feed; false if it has none.
func (o *order) Record(i int) (Record, bool) { return o.feeds[i].record(o.now), o.feeds[i].hasURL }

// Spaced returns how long the site has to be left alone after its last request.
func (o *order) Spaced(spacing time.Duration) time.Duration { return o.asked.Add(spacing).Sub(o.now) }

// Polled returns when a feed was polled last, and whether a poke waits.
func (o *order) Polled(i int) (last Time, poked bool) {
	return o.known[i].last, o.known[i].poke != End
}

// Due reports whether a feed is due, and whether that is because of a poke, as [Store.Due] finds them.
func (o *order) Due(i int) (due, poked bool) {
	f := &o.feeds[i]
	due = f.hasURL && f.next <= o.now && (f.version > 0 || f.configured(o.now) || f.poke <= o.now)
	return due, f.hasURL && f.pokeAt() <= o.now
}

// Read records that a reader asks for a feed at its own address.
func (o *order) Read(i int, by Owner) {
	if f := &o.feeds[i]; f.hasURL {
		f.touch(o.now, Asked{Own: true, By: []Owner{by}})
		o.known[i].askedBy([]Owner{by})
		o.known[i].own = true
	}
}
