// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"encoding/binary"
	"hash/fnv"
	"slices"
	"time"
)

// Owner is a party that feeds count for. Space and polls are shared by owner. A record remembers the
// owners that asked for its feed in the last 30 days, eight at most. 0 is none.
type Owner int64

// Kind is what an owner is.
type Kind int

// The kinds of owners. 2 was that of private addresses; it counts as KindNamed.
const (
	KindAny      Kind = 1 // all clients that have no other owner, together
	KindNamed    Kind = 3 // a token of a gateway, or the clients that a line covers
	KindShield   Kind = 4 // a shield
	KindOperator Kind = 5 // of feeds that are configured or listed
)

const kindShift = 60 // bits of a hash below the kind

// OwnerOf returns the owner of a kind and name.
func OwnerOf(kind Kind, name string) Owner {
	h := fnv.New64a()
	h.Write([]byte(name)) //nolint:errcheck // it never fails
	return OwnerOfHash(kind, h.Sum64())
}

// OwnerOfHash returns the owner of a kind whose name has that hash.
func OwnerOfHash(kind Kind, hash uint64) Owner {
	return Owner(int64(kind)<<kindShift | int64(hash>>(64-kindShift)))
}

// Any is the owner of all clients that have no other one, and Operator that of feeds that are configured or listed.
var (
	Any      = OwnerOf(KindAny, "")
	Operator = OwnerOf(KindOperator, "")
)

// Kind returns what the owner is; 0 if there is none.
func (o Owner) Kind() Kind {
	if kind := Kind(o >> kindShift); kind != 2 {
		return kind
	}
	return KindNamed
}

// ofNow returns the owner that one of version 2 of the tables is now: public networks had an owner each.
func (o Owner) ofNow() Owner {
	if o.Kind() == KindAny {
		return Any
	}
	return o
}

const (
	maxAskers = 8  // that a record remembers
	askerSize = 10 // bytes of each: the owner and the day
	askedDays = 30 // for how many days an asker counts
)

// asker is an owner that has asked for a feed, and the last day on which it did.
type asker struct {
	owner Owner
	day   int64
}

// day returns the number of the day of a moment.
func (t Time) day() int64 { return int64(t) / int64(24*time.Hour) }

// counts reports whether the asker counts on a day.
func (a asker) counts(today int64) bool { return today-a.day < askedDays }

// decodeAskers returns askers as the column has them, each once.
func decodeAskers(b []byte) (askers []asker) {
	for ; len(b) >= askerSize; b = b[askerSize:] {
		a := asker{Owner(binary.BigEndian.Uint64(b)).ofNow(), int64(binary.BigEndian.Uint16(b[8:]))}
		if i := slices.IndexFunc(askers, func(b asker) bool { return b.owner == a.owner }); i >= 0 {
			askers[i].day = max(askers[i].day, a.day)
		} else {
			askers = append(askers, a)
		}
	}
	return askers
}

func encodeAskers(askers []asker) []byte {
	b := make([]byte, 0, len(askers)*askerSize) // never nil: null is a row of version 2 of the tables
	for _, a := range askers {
		b = binary.BigEndian.AppendUint64(b, uint64(a.owner))
		b = binary.BigEndian.AppendUint16(b, uint16(a.day))
	}
	return b
}

// askedBy records that owners asked on a day. If there are too many, the one that asked the longest ago is
// forgotten, [Any] first, and never the one that the feed counts for.
func (f *feedRow) askedBy(owners []Owner, day int64) {
	f.askers = slices.Clone(f.askers)
	for _, o := range owners {
		switch i := slices.IndexFunc(f.askers, func(a asker) bool { return a.owner == o }); {
		case i >= 0:
			f.askers[i].day = max(f.askers[i].day, day)
		default:
			f.askers = append(f.askers, asker{o, day})
		}
		if len(f.askers) > maxAskers {
			f.askers = slices.Delete(f.askers, f.dispensable(), f.dispensable()+1)
		}
	}
}

// dispensable returns the index of the asker that is forgotten first.
func (f *feedRow) dispensable() int {
	first := -1
	for i, a := range f.askers {
		if a.owner == f.owner {
			continue
		}
		if first < 0 || a.owner == Any || f.askers[first].owner != Any && a.day < f.askers[first].day {
			first = i
		}
	}
	return first
}

// pickOwner decides for which owner the feed counts. A named owner takes over from [Any] at once.
func (f *feedRow) pickOwner(now Time) {
	if f.configured(now) {
		f.owner = Operator
		return
	}
	last := asker{}
	for _, a := range f.askers {
		switch {
		case !a.counts(now.day()):
		case a.owner == f.owner && a.owner != Any: // it was so before
			return
		case last.owner == 0, last.owner == Any, a.owner != Any && a.day > last.day:
			last = a
		}
	}
	f.owner = last.owner
}
