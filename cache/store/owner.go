// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"encoding/binary"
	"hash/fnv"
	"math/bits"
	"slices"
	"time"
)

// Owner is a party that feeds count for: the operator, a shield, a token, a private address or a
// public network. Space and polls are shared by owner. A record remembers the last four that asked for its
// feed and give it the best rank, with the day. The feed counts for the one that gives it the best, of
// several for the same as before. 0 is none.
type Owner int64

// Kind is what an owner is. Public networks, all together, give way before addresses, tokens and
// shields; the operator's feeds never give way.
type Kind int

// The kinds of owners.
const (
	KindPublic   Kind = iota + 1 // a network that is admitted as all are: /24 of IPv4, /48 of IPv6
	KindAddress                  // a private address, or one that the operator has listed
	KindToken                    // a token of a gateway
	KindShield                   // a shield
	KindOperator                 // of feeds that are configured or listed
)

const kindShift = 60 // bits of a hash below the kind

// OwnerOf returns the owner of a kind and name.
func OwnerOf(kind Kind, name string) Owner {
	h := fnv.New64a()
	h.Write([]byte(name)) //nolint:errcheck // it never fails
	return Owner(int64(kind)<<kindShift | int64(h.Sum64()>>(64-kindShift)))
}

// Operator is the owner of feeds that are configured or listed.
var Operator = OwnerOf(KindOperator, "")

// Kind returns what the owner is; 0: there is none.
func (o Owner) Kind() Kind { return Kind(o >> kindShift) }

// Rank returns the rank of feeds that count for the owner.
func (o Owner) Rank(established bool) Rank {
	switch o.Kind() {
	case KindOperator:
		return RankOperator
	case KindShield, KindToken, KindAddress:
		if established {
			return RankNamed
		}
		return RankNamedNew
	}
	if established {
		return RankPublic
	}
	return RankPublicNew
}

// best returns the best rank that feeds of the owner may have.
func (o Owner) best() Rank { return o.Rank(true) }

const (
	maxAskers = 4  // that a record remembers
	askerSize = 10 // bytes of each: the owner and the day
	askedDays = 30 // for how many days an asker counts
	// establishedDays is on how many of the last askedDays a feed must have been read for it to be established.
	establishedDays = 3
)

// asker is an owner that has asked for a feed, and the last day on which it did.
type asker struct {
	owner Owner
	day   int64
}

// day returns the number of the day of a moment.
func (t Time) day() int64 { return int64(t) / int64(24*time.Hour) }

func decodeAskers(b []byte) (askers []asker) {
	for ; len(b) >= askerSize; b = b[askerSize:] {
		askers = append(askers, asker{Owner(binary.BigEndian.Uint64(b)), int64(binary.BigEndian.Uint16(b[8:]))})
	}
	return askers
}

func encodeAskers(askers []asker) (b []byte) {
	for _, a := range askers {
		b = binary.BigEndian.AppendUint64(b, uint64(a.owner))
		b = binary.BigEndian.AppendUint16(b, uint16(a.day))
	}
	return b
}

// askedBy records that an owner asked on a day. If there are too many owners, one of the
// worst rank is forgotten, of these the one that asked first. If the owner gives a better rank than
// all, the days on which the feed was read begin again: those of others do not lift it.
func (f *feedRow) askedBy(o Owner, day int64) {
	if o == 0 {
		return
	}
	if o.best() < f.bestAsker(day) {
		f.seen = 0
	}
	first := -1 // that may be forgotten
	for i := range f.askers {
		a := &f.askers[i]
		if a.owner == o {
			a.day = max(a.day, day)
			return
		}
		if first < 0 || a.sooner(f.askers[first]) {
			first = i
		}
	}
	now := asker{o, day}
	switch {
	case len(f.askers) < maxAskers:
		f.askers = append(f.askers, now)
	case f.askers[first].sooner(now):
		f.askers[first] = now
	}
}

// sooner reports whether an asker is forgotten sooner than another one.
func (a asker) sooner(b asker) bool {
	if a.owner.best() != b.owner.best() {
		return a.owner.best() > b.owner.best()
	}
	return a.day <= b.day
}

// bestAsker returns the best rank that the owners can give the feed that have asked in the last 30 days.
func (f *feedRow) bestAsker(day int64) Rank {
	best := RankPublic
	for _, a := range f.askers {
		if day-a.day < askedDays {
			best = min(best, a.owner.best())
		}
	}
	return best
}

// readBy records that readers of some owners asked. The day counts as one on which the feed was read if
// an owner that gives it its rank is among them. Bit 0 of seen is the day of asked.
func (f *feedRow) readBy(owners []Owner, at Time) {
	for _, o := range owners {
		f.askedBy(o, at.day())
	}
	best := f.bestAsker(at.day())
	counts := number(best == RankPublic || slices.ContainsFunc(owners, func(o Owner) bool { return o.best() == best }))
	switch days := at.day() - f.asked.day(); {
	case f.asked == Never: // but perhaps before it was forgotten
		f.seen |= counts
	case days >= 0:
		f.seen = shifted(f.seen, f.asked, at) | counts
	case days > -32:
		f.seen |= counts << -days
	}
	f.asked = max(f.asked, at)
}

// restoreAskers adds who asked, and on which days, to what is known of it. Askers that are known stay.
func (f *feedRow) restoreAskers(now Time, r Record) {
	seen, asked := f.asked, before(now, r.Asked)
	if seen == Never { // see begin
		seen = now
	}
	if f.asked = max(f.asked, asked); f.asked != Never {
		f.seen = shifted(f.seen, seen, f.asked) | shifted(int64(r.Days), asked, f.asked)
	}
	if len(f.askers) > 0 {
		return
	}
	for _, a := range r.Askers[:min(len(r.Askers), maxAskers)] {
		f.askers = append(f.askers, asker{a.Owner, now.day() - a.Ago})
	}
}

// shifted returns days as bits of which bit 0 is the day of another moment.
func shifted(seen int64, from, to Time) int64 {
	if days := to.day() - from.day(); days >= 0 {
		return seen << min(days, 32) & (1<<32 - 1)
	} else {
		return seen >> min(-days, 32)
	}
}

// daysRead returns on how many of the last 30 days the feed was read.
func (f *feedRow) daysRead(now Time) int64 {
	if f.asked == Never {
		return 0
	}
	since := min(max(0, now.day()-f.asked.day()), askedDays)
	return int64(bits.OnesCount64(uint64(f.seen) << since & (1<<askedDays - 1)))
}

// classify decides whether the feed is established, and for which owner it takes its place among the
// feeds of its host: the asker that gives it the best rank, of several the one before.
func (f *feedRow) classify(now Time) {
	best := Owner(0)
	if f.configured {
		best = Operator
	}
	for _, a := range f.askers {
		if now.day()-a.day < askedDays && (best == 0 || a.owner.best() < best.best() || a.owner.best() == best.best() && a.owner == f.owner) {
			best = a.owner
		}
	}
	f.owner, f.days = best, f.daysRead(now)
	f.established = best.best() == RankOperator || f.days >= establishedDays
}
