// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"database/sql"
)

// When the store is full, feeds give way by rank, bodies and records alike. Those of the operator never do.
// Of a rank, the owner that uses the most gives way; of an owner, the feed that was read on the fewest days,
// then the one that was read the longest ago.

// newPart is the part of a full store that feeds of a rank may keep before better ranks have to give way, as 1/n,
// if they are not established: they are read on some days first.
const newPart = 8

// step is one in which feeds of a rank give way.
type step struct {
	rank   Rank
	bodies bool // alone; otherwise feeds are forgotten
	above  bool // only while their rank takes more than its part
}

// steps are all of them, in order.
var steps = []step{
	{RankPublicNew, false, true},
	{RankPublic, true, false}, {RankPublic, false, false},
	{RankNamedNew, true, true}, {RankNamedNew, false, true},
	{RankPublicNew, false, false},
	{RankNamedNew, true, false}, {RankNamedNew, false, false},
	{RankNamed, true, false}, {RankNamed, false, false},
}

// Share is all feeds of an owner that have a rank. Disk and memory are divided among shares.
type Share struct {
	Rank  Rank
	Owner Owner
}

// use is how many bytes they take.
type use struct {
	all       int64 // records and bodies
	bodies    int64
	forgotten int64 // records that are kept for the last poll, and do not give way
}

// can reports whether feeds of the share can give way in a step.
func (u *use) can(s step) bool {
	return s.bodies && u.bodies > 0 || !s.bodies && u.all > u.forgotten
}

type uses map[Share]*use

func (u uses) of(a Share) *use {
	if u[a] == nil {
		u[a] = new(use)
	}
	return u[a]
}

// next returns the step that comes next, and the share that has to give way. It reports false if
// only the operator's feeds are left.
func (u uses) next(budget int64) (_ step, first Share, ok bool) {
	total := make(map[Rank]int64)
	for a, use := range u {
		total[a.Rank] += use.all
	}
	for _, s := range steps {
		if s.above && total[s.rank] <= budget/newPart {
			continue
		}
		for a, use := range u {
			if a.Rank == s.rank && use.can(s) && (!ok || use.all > u[first].all || use.all == u[first].all && a.Owner < first.Owner) {
				first, ok = a, true
			}
		}
		if ok {
			return s, first, true
		}
	}
	return step{}, first, false
}

// victim is a feed that has to give way.
type victim struct {
	candidate
	bytes int64
}

// Trim implements [Store].
func (d *Database) Trim(ctx context.Context, budget int64) (trimmed []ID, err error) {
	if err := d.driver.Write(ctx, Work{Late: true, Do: func(tx Tx) error { return deletePending(tx, atOnce) }}); err != nil {
		return nil, err
	}
	d.crowded.Store(false)
	for {
		used, err := read(ctx, d, func(tx Tx) (int64, error) { return d.fill(tx, budget) })
		if err != nil || used <= budget {
			return trimmed, err
		}
		s, victims, err := d.victims(ctx, budget, used-budget)
		if err != nil {
			return trimmed, err
		}
		dropped, err := d.giveWay(ctx, s, victims, budget)
		trimmed = append(trimmed, dropped...)
		if err != nil || len(dropped) == 0 {
			return trimmed, err
		}
	}
}

// fill returns how many bytes are in use. If they are more than the budget, or the file system is short of space,
// it finds out whether strangers may add feeds: what is remembered of them is bounded.
func (d *Database) fill(tx Tx, budget int64) (used int64, err error) {
	used, err = d.driver.Used(tx)
	left := d.driver.Left()
	if err != nil || used <= budget && left == Unlimited {
		return used, err
	}
	use, err := usesOf(tx)
	d.crowded.Store(err == nil && use.crowded(budget, left))
	return used, err
}

// atOnceVictims is how many feeds of an owner are looked at in one go.
const atOnceVictims = 200

// victims finds feeds that have to give way in the next step, and take some bytes together. If there are not so many, it
// returns all of them.
func (d *Database) victims(ctx context.Context, budget, bytes int64) (step, []candidate, error) {
	type found struct {
		now     step
		victims []candidate
	}
	got, err := read(ctx, d, func(tx Tx) (got found, err error) {
		use, err := usesOf(tx)
		if err != nil {
			return got, err
		}
		waiting := make(map[Share][]victim)
		read := make(map[Share]int)
		for left := bytes; left > 0; {
			s, a, ok := use.next(budget)
			if !ok || left < bytes && s != got.now {
				break
			}
			got.now = s
			if len(waiting[a]) == 0 {
				if waiting[a], err = feedsOf(tx, a, s, read[a]); err != nil {
					return got, err
				}
				if read[a] += len(waiting[a]); len(waiting[a]) == 0 {
					use[a].bodies, use[a].forgotten = 0, use[a].all // the others were committed a moment ago
					continue
				}
			}
			v := waiting[a][0]
			waiting[a] = waiting[a][1:]
			use[a].all -= v.bytes
			if s.bodies {
				use[a].bodies -= v.bytes
			}
			left -= v.bytes
			got.victims = append(got.victims, v.candidate)
		}
		return got, nil
	})
	return got.now, got.victims, err
}

// crowded reports whether what is remembered of feeds of strangers that are forgotten takes all that their rank may
// take, or all their records together do of what is left on a file system that is short of space.
func (u uses) crowded(budget, left int64) bool {
	var forgotten, records int64
	for a, use := range u {
		if a.Rank == RankPublicNew {
			forgotten += use.forgotten
			records += use.all - use.bodies
		}
	}
	return forgotten > budget/newPart || records > left/newPart
}

// taken is what a row takes with its body, in bytes; of one that was written before that was counted, roughly.
const taken = `coalesce(taken, size + 4096)`

// usesOf adds up what owners use.
func usesOf(tx Tx) (uses, error) {
	u := make(uses)
	sum := func(forgotten bool) func(int, Row) error {
		return func(_ int, row Row) error {
			var owner, configured, notEstablished, all, bodies int64
			err := row.Scan(&owner, &configured, &notEstablished, &all, &bodies)
			f := feedRow{owner: Owner(owner), configured: configured != 0, established: notEstablished == 0}
			if use := u.of(Share{f.rank(), f.owner}); forgotten {
				use.forgotten += all
			} else {
				use.all += all
				use.bodies += bodies
			}
			return err
		}
	}
	const columns = `select owner, configured, not_established, cast(sum(` + taken + `) as bigint), cast(sum(size) as bigint) from feed`
	err := tx.Query(columns+` group by owner, configured, not_established`, one(), sum(false))
	if err == nil {
		err = tx.Query(columns+` where url is null group by owner, configured, not_established`, one(), sum(true))
	}
	return u, err
}

// feedsOf reads some feeds of a share, those that have to go first at the beginning.
func feedsOf(tx Tx, a Share, s step, skip int) (feeds []victim, err error) {
	bytes, which := taken, ``
	if s.bodies {
		bytes, which = `size`, ` and size > 0`
	}
	notEstablished := number(a.Rank == RankNamedNew || a.Rank == RankPublicNew)
	err = tx.Query(`select id, `+bytes+`, coalesce(asked, last) from feed where owner = ?1 and configured = 0 and not_established = ?2 and url is not null`+which+`
		order by days, coalesce(asked, last, 0), id limit ?3 offset ?4`, one(int64(a.Owner), notEstablished, atOnceVictims, skip),
		func(_ int, row Row) error {
			var v victim
			var id []byte
			var wanted sql.NullInt64
			err := row.Scan(&id, &v.bytes, &wanted)
			copy(v.id[:], id)
			v.wanted = timeOf(wanted, Never)
			feeds = append(feeds, v)
			return err
		})
	return feeds, err
}

// giveWay has feeds give way in a step, unless they were read since. It stops when the store uses no more
// than the budget: another node may make room, too.
func (d *Database) giveWay(ctx context.Context, s step, victims []candidate, budget int64) ([]ID, error) {
	var in Tx // the transaction in which used was read
	var used int64
	return d.forSome(ctx, victims, func(tx Tx, f *feedRow) bool {
		if in != tx {
			in = tx
			tx.Exec(`insert into meta (key, value) values ('trim', '') on conflict (key) do update set value = ''`) // one node at a time
			var failed error
			if used, failed = d.driver.Used(tx); failed != nil {
				return false // and the transaction fails
			}
		}
		switch {
		case used <= budget, s.bodies && f.size == 0:
			return false
		case s.bodies:
			used -= f.size
			f.dropVersion(tx)
		default:
			used -= f.taken()
			f.forget(tx)
		}
		return true
	})
}

// dropVersion drops the body of a feed to make room.
func (f *feedRow) dropVersion(tx Tx) {
	f.replaceBody(tx, nil)
	f.changed, f.news, f.outcome = tx.Now(), 0, 0
	place := f.place.column()
	if place != nil {
		place = f.due()
	}
	f.save(tx, place, nil, nil)
	tx.Changed(Change{ID: f.id})
}
