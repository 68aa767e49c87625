// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package store

import "slices"

// A host is polled for its feeds in turn: for one that is established, then for another one.
// Within each of the two classes the owners take turns, and for an owner come first the feeds for
// which a reader waits, then those that are due the longest.

// search finds the feed of a host whose turn it is.
type search struct {
	host  *hostRow
	class int64
	found *feedRow // nil: none is due
	many  bool     // there are others
}

// inTurn finds the feed of each host whose turn it is, of those with a place up to a
// moment; nil if there is none. If established is true, the other feeds have no turn.
func inTurn(tx Tx, hosts []*hostRow, upTo Time, established bool) ([]*feedRow, error) {
	all := make([]*search, len(hosts))
	for i, h := range hosts {
		all[i] = &search{host: h, class: h.turn}
		if established {
			all[i].class = 0
		}
	}
	none, err := firstOf(tx, all, upTo)
	if err == nil && !established {
		for _, s := range none {
			s.class = 1 - s.class
		}
		_, err = firstOf(tx, none, upTo)
	}
	if err == nil {
		err = nextOwners(tx, all, upTo)
	}
	found := make([]*feedRow, len(all))
	for i, s := range all {
		found[i] = s.found
	}
	return found, err
}

// firstOf finds the feeds of some classes of hosts that are due the longest. It returns the
// searches without any.
func firstOf(tx Tx, all []*search, upTo Time) (none []*search, err error) {
	err = tx.Query(firstDue, each(all, func(s *search) []any { return []any{s.host.name, s.class, int64(upTo)} }),
		func(i int, row Row) error {
			f, err := scanFeed(row)
			if all[i].found == nil {
				all[i].found = &f
			} else {
				all[i].many = true
			}
			return err
		})
	for _, s := range all {
		if s.found == nil {
			none = append(none, s)
		}
	}
	return none, err
}

// nextOwners finds the feed of the owner whose turn it is, if a host has many that are due.
func nextOwners(tx Tx, all []*search, upTo Time) error {
	many := slices.DeleteFunc(slices.Clone(all), func(s *search) bool { return !s.many })
	if len(many) == 0 {
		return nil
	}
	return tx.Query(nextOwner, each(many, func(s *search) []any {
		return []any{s.host.name, s.class, int64(upTo), int64(s.host.served[s.class])}
	}), func(i int, row Row) error {
		f, err := scanFeed(row)
		many[i].found = &f
		return err
	})
}

// before reports whether another feed of a host goes before one that is claimed. Unless
// feeds that are due are prefetched, only those count for which a reader waits.
func (h *hostRow) before(tx Tx, now Time, f *feedRow, prefetched bool) (bool, error) {
	upTo := Time(0)
	if prefetched {
		upTo = now
	}
	found, err := inTurn(tx, []*hostRow{h}, upTo, false)
	if err != nil || found[0] == nil || found[0].damaged || found[0].id == f.id {
		return false, err
	}
	g := found[0]
	switch served := h.served[g.class()]; {
	case g.class() != f.class():
		return g.class() == h.turn, nil
	case g.owner != f.owner:
		return uint64(g.owner-served-1) < uint64(f.owner-served-1), nil
	case !f.waits():
		return g.waits(), nil
	}
	return g.place < f.place, nil
}
