// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package store

// A host is polled for its feeds in turn: for one that is established, then for another one.
// Within each of the two classes the owners take turns, and for an owner come first the feeds for
// which a reader waits, then those that are due the longest.

// maxOwners is how many owners one search looks at. If none of them has a feed that is due, the
// one goes that is due the longest.
const maxOwners = 64

// search finds the feed of a host whose turn it is.
type search struct {
	host  *hostRow
	class int64
	first *feedRow // of the class, that is due the longest; nil: none is due
	many  bool     // there are others
	from  Owner    // the owners after it are next
	again bool     // from the first owner on
	left  int
	found *feedRow
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
	if err != nil {
		return nil, err
	}
	var open []*search
	for _, s := range all {
		if s.found = s.first; s.many {
			s.from, s.left = s.host.served[s.class], maxOwners
			open = append(open, s)
		}
	}
	for len(open) > 0 {
		if open, err = nextOwners(tx, open, upTo); err != nil {
			return nil, err
		}
	}
	found := make([]*feedRow, len(all))
	for i, s := range all {
		found[i] = s.found
	}
	return found, nil
}

// firstOf finds the feeds of some classes of hosts that are due the longest. It returns the
// searches without any.
func firstOf(tx Tx, all []*search, upTo Time) (none []*search, err error) {
	err = tx.Query(firstDue, each(all, func(s *search) []any { return []any{s.host.name, s.class, int64(upTo)} }),
		func(i int, row Row) error {
			f, err := scanFeed(row)
			if all[i].first == nil {
				all[i].first = &f
			} else {
				all[i].many = true
			}
			return err
		})
	for _, s := range all {
		if s.first == nil {
			none = append(none, s)
		}
	}
	return none, err
}

// nextOwners looks at the next owner of each search. It returns those that have to go on.
func nextOwners(tx Tx, open []*search, upTo Time) (on []*search, err error) {
	next := make([]*feedRow, len(open))
	err = tx.Query(nextOwner, each(open, func(s *search) []any { return []any{s.host.name, s.class, int64(s.from)} }),
		func(i int, row Row) error {
			f, err := scanFeed(row)
			next[i] = &f
			return err
		})
	for i, s := range open {
		s.left--
		switch f := next[i]; {
		case f == nil && s.again, s.left == 0:
			continue
		case f == nil:
			s.from, s.again = -1, true
		case f.place <= upTo:
			s.found = f
			continue
		default:
			s.from = f.owner
		}
		on = append(on, s)
	}
	return on, err
}

// goesBefore reports whether another feed of a host goes before one that is claimed. Unless
// feeds that are due are prefetched, only those count for which a reader waits.
func (h *hostRow) goesBefore(tx Tx, now Time, f *feedRow, prefetched bool) (bool, error) {
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
