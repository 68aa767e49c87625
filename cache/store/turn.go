// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"math/bits"
	"slices"
)

// A host is polled for its feeds in turn. Of four polls, three are for feeds of the best rank that waits;
// of four of the others, three are for the next one; and those that are left go round the ranks below.
// Within a rank the owners take turns, and for an owner come first the feeds for which a reader waits,
// then those that are due the longest.

// rankOfSlot returns the rank of the feed that has the nth poll of a host, of the ranks that wait, the
// best first.
func rankOfSlot(n int64, waiting []Rank) Rank {
	switch places := bits.TrailingZeros64(uint64(n)) / 2; { // n divides by 4 to the power of places
	case places == 0 || len(waiting) == 1:
		return waiting[0]
	case places == 1 || len(waiting) == 2:
		return waiting[1]
	}
	below := waiting[2:]
	return below[uint64(n)/16%uint64(len(below))]
}

var (
	// waitingOf finds whether feeds of a host and rank have a place between two moments.
	waitingOf = `select 1 from feed where site = ?1 and ` + rankColumn + ` = ?2 and due >= ?3 and due <= ?4 and (?5 = 0 or version > 0) limit 1`
	// firstOfRank finds the first of them, and firstOfOwner that of the owner whose turn it is.
	firstOfRank = selectFeed + ` from feed f where site = ?1 and ` + rankColumn + ` = ?2 and due >= ?3 and due <= ?4 and (?5 = 0 or version > 0)
		order by due limit 1 for update skip locked`
	firstOfOwner = selectFeed + ` from feed f where site = ?1 and ` + rankColumn + ` = ?2 and due >= ?3 and due <= ?4 and (?5 = 0 or version > 0) and owner = (
			select coalesce(min(case when owner > ?6 then owner end), min(owner))
			from (select owner from feed where site = ?1 and ` + rankColumn + ` = ?2 and due >= ?3 and due <= ?4 and (?5 = 0 or version > 0) order by due limit 10000) longest)
		order by due limit 1 for update skip locked`
)

// search finds the feed of a host whose turn it is, of those that have a place between two moments.
type search struct {
	host     *hostRow
	ranks    []Rank // of which a feed may be asked; then of which one waits
	from, to Time
	now      Time
	found    *feedRow // nil: none waits
}

// args are those of a query for feeds of a rank: while those without a version wait, of the others.
func (s *search) args(r Rank) []any {
	return []any{s.host.name, int64(r), int64(s.from), int64(s.to), number(s.host.fresh.holds(s.now))}
}

// findRanks leaves of the ranks of each search those of which a feed waits.
func findRanks(tx Tx, all []*search) error {
	var lists [][]any
	var of []*search
	var rank []Rank
	for _, s := range all {
		for _, r := range s.ranks {
			lists, of, rank = append(lists, s.args(r)), append(of, s), append(rank, r)
		}
		s.ranks = nil
	}
	return tx.Query(waitingOf, lists, func(i int, _ Row) error {
		of[i].ranks = append(of[i].ranks, rank[i])
		return nil
	})
}

// findTurn finds the feed of each host whose turn it is. It has to be one of the ranks of its search.
func findTurn(tx Tx, all []*search) error {
	var operators, others []*search // feeds of the operator have one owner
	for _, s := range all {
		if len(s.ranks) == 0 {
			continue
		}
		if s.ranks[0] = rankOfSlot(s.host.turn+1, s.ranks); s.ranks[0] == RankOperator {
			operators = append(operators, s)
		} else {
			others = append(others, s)
		}
	}
	into := func(all []*search) func(int, Row) error {
		return func(i int, row Row) error {
			f, err := scanFeed(row)
			all[i].found = &f
			return err
		}
	}
	err := tx.Query(firstOfRank, each(operators, func(s *search) []any { return s.args(s.ranks[0]) }), into(operators))
	if err == nil {
		err = tx.Query(firstOfOwner, each(others, func(s *search) []any {
			return append(s.args(s.ranks[0]), int64(s.host.served[s.ranks[0]]))
		}), into(others))
	}
	return err
}

// turnOf reports whether feeds of a rank have the next poll of the host, of those that wait. Unless
// feeds that are due are prefetched, only those count for which a reader waits.
func (h *hostRow) turnOf(tx Tx, now Time, r Rank, prefetched bool) (bool, error) {
	s := h.waiting(now, h.open(now), prefetched)
	if err := findRanks(tx, []*search{s}); err != nil {
		return false, err
	}
	if !slices.Contains(s.ranks, r) {
		s.ranks = append(s.ranks, r)
		slices.Sort(s.ranks)
	}
	return rankOfSlot(h.turn+1, s.ranks) == r, nil
}

// waiting searches for a feed for which a reader waits, or that is due if those are prefetched.
func (h *hostRow) waiting(now Time, ranks []Rank, prefetched bool) *search {
	s := &search{host: h, ranks: ranks, from: now - ahead - Time(maxWaiting), now: now}
	if prefetched {
		s.to = now
	}
	return s
}

// before reports whether another feed of the host goes before one that is claimed.
func (h *hostRow) before(tx Tx, now Time, f *feedRow, prefetched bool) (bool, error) {
	if mine, err := h.turnOf(tx, now, f.rank(), prefetched); err != nil || !mine {
		return true, err
	}
	s := h.waiting(now, []Rank{f.rank()}, prefetched)
	if err := findTurn(tx, []*search{s}); err != nil || s.found == nil || s.found.damaged || s.found.id == f.id {
		return false, err
	}
	g := s.found
	switch served := h.served[f.rank()]; {
	case g.owner != f.owner:
		return uint64(g.owner-served-1) < uint64(f.owner-served-1), nil
	case !f.waits():
		return g.waits(), nil
	}
	return g.place < f.place, nil
}
