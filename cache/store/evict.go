// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"database/sql"
)

// When the store is full, bodies give way. Public networks, all together, give way before
// tokens, addresses and shields; the operator's feeds never do. Within a class, feeds that are not
// established give way while they take more than an eighth of the budget, those of the owner
// that uses the most first; then established ones in the same way. Of an owner, those go first
// that were read on the fewest days, then those that were read the longest ago.

// otherPart is the part of a full store that feeds may take that are not established, as 1/n.
const otherPart = 8

// uses are the bytes of bodies that each owner uses: those of established feeds, and of others.
type uses map[Owner]*[2]int64

func (u uses) of(o Owner) *[2]int64 {
	if u[o] == nil {
		u[o] = new([2]int64)
	}
	return u[o]
}

// next returns the owner that has to give way next, and of which feeds. It reports false if only
// the operator's are left.
func (u uses) next(budget int64) (owner Owner, class int64, ok bool) {
	lowest := classOperator
	for o, use := range u {
		if use[0]+use[1] > 0 {
			lowest = min(lowest, o.class())
		}
	}
	if lowest == classOperator {
		return 0, 0, false
	}
	var first [2]Owner
	var most, all [2]int64
	for o, use := range u {
		if o.class() != lowest {
			continue
		}
		for class, bytes := range use {
			all[class] += bytes
			if bytes > most[class] || bytes == most[class] && o < first[class] {
				first[class], most[class] = o, bytes
			}
		}
	}
	if all[1] > budget/otherPart || all[0] == 0 {
		return first[1], 1, true
	}
	return first[0], 0, true
}

// victim is a feed that has to give way.
type victim struct {
	feedRow
	owner Owner // that it counts for; if not the feed's, its body stays
}

// Trim implements [Store].
func (d *Database) Trim(ctx context.Context, budget int64) (trimmed []ID, err error) {
	if err := d.driver.Write(ctx, Work{Late: true, Do: func(tx Tx) error { return deletePending(tx, atOnce) }}); err != nil {
		return nil, err
	}
	for {
		var used, left int64
		err := d.driver.Read(ctx, func(tx Tx) (err error) {
			used, left, err = d.space(tx, budget)
			return err
		})
		if err != nil || used <= left {
			return trimmed, err
		}
		victims, err := d.victims(ctx, left, used-left)
		if err != nil {
			return trimmed, err
		}
		dropped, err := d.giveWay(ctx, victims, budget)
		trimmed = append(trimmed, dropped...)
		if err != nil || len(dropped) == 0 {
			return trimmed, err
		}
	}
}

// space returns how many bytes are in use, and how many may be: while the file system is short of
// space, no more than when that was noticed.
func (d *Database) space(tx Tx, budget int64) (used, left int64, err error) {
	used, short, err := d.driver.Space(tx)
	if err != nil {
		return 0, 0, err
	}
	if !short {
		d.short.Store(0)
		return used, budget, nil
	}
	d.short.CompareAndSwap(0, max(used, 1))
	budget = min(budget, d.short.Load())
	return used, budget, nil
}

// atOnceVictims is how many feeds of an owner are looked at in one go.
const atOnceVictims = 200

// victims finds feeds whose bodies take some bytes together, and have to give way. If there
// are not so many, it returns all of them.
func (d *Database) victims(ctx context.Context, budget, bytes int64) ([]victim, error) {
	return read(ctx, d, func(tx Tx) (victims []victim, err error) {
		use := make(uses)
		err = tx.Query(sumOfOwners, one(), func(_ int, row Row) error {
			var owner, class, size int64
			err := row.Scan(&owner, &class, &size)
			use.of(Owner(owner))[class] = size
			return err
		})
		type queue struct {
			owner Owner
			class int64
		}
		waiting := make(map[queue][]feedRow)
		read := make(map[queue]int)
		for err == nil && bytes > 0 {
			o, class, ok := use.next(budget)
			if !ok {
				break
			}
			q := queue{o, class}
			if len(waiting[q]) == 0 {
				if waiting[q], err = feedsOf(tx, o, class, read[q]); err != nil {
					break
				}
				if read[q] += len(waiting[q]); len(waiting[q]) == 0 {
					use[o][class] = 0 // the others were committed a moment ago
					continue
				}
			}
			f := waiting[q][0]
			waiting[q] = waiting[q][1:]
			use[o][class] -= f.size
			v := victim{f, use.other(&f, o, class, tx.Now())}
			if v.owner != o {
				use.of(v.owner)[class] += f.size
			} else {
				bytes -= f.size
			}
			victims = append(victims, v)
		}
		return victims, err
	})
}

// other returns the owner that the feed counts for: of those that asked for it and are of the highest
// class, the one that uses the least. The size of the feed is not among what o uses.
func (u uses) other(f *feedRow, o Owner, class int64, now Time) Owner {
	least := o
	for _, a := range f.askers {
		if now.day()-a.day < askedDays && a.owner.class() == o.class() && u.of(a.owner)[class] < u.of(least)[class] {
			least = a.owner
		}
	}
	return least
}

const sumOfOwners = `select owner, not_established, cast(sum(size) as bigint) from feed where size > 0 and not_established in (0, 1) group by owner, not_established`

// feedsOf reads some feeds of an owner, those that have to go first at the beginning.
func feedsOf(tx Tx, o Owner, class int64, skip int) (feeds []feedRow, err error) {
	err = tx.Query(`select n, id, size, askers, last, asked from feed where owner = ?1 and not_established = ?2 and size > 0
		order by days, coalesce(asked, last, 0), id limit ?3 offset ?4`, one(int64(o), class, atOnceVictims, skip),
		func(_ int, row Row) error {
			var f feedRow
			var id, askers []byte
			var last, asked sql.NullInt64
			err := row.Scan(&f.n, &id, &f.size, &askers, &last, &asked)
			copy(f.id[:], id)
			f.owner, f.askers, f.last, f.asked = o, decodeAskers(askers), timeOf(last, Never), timeOf(asked, Never)
			feeds = append(feeds, f)
			return err
		})
	return feeds, err
}

// giveWay drops the bodies of feeds, unless they were read since, and has those that count for
// another owner do so. It returns the first. It stops when the store uses no more than it may:
// another node may make room, too.
func (d *Database) giveWay(ctx context.Context, victims []victim, budget int64) ([]ID, error) {
	var gone, other []candidate
	owners := make(map[ID]Owner)
	for _, v := range victims {
		if c := (candidate{v.id, v.wanted()}); v.owner != v.feedRow.owner {
			owners[v.id] = v.owner
			other = append(other, c)
		} else {
			gone = append(gone, c)
		}
	}
	_, err := d.forSome(ctx, other, func(tx Tx, f *feedRow) bool {
		f.owner = owners[f.id]
		f.save(tx, f.place.column(), nil, nil)
		return true
	})
	if err != nil {
		return nil, err
	}
	var in Tx // the transaction in which used and left were read
	var used, left int64
	return d.forSome(ctx, gone, func(tx Tx, f *feedRow) bool {
		if in != tx {
			in = tx
			tx.Exec(`insert into meta (key, value) values ('trim', '') on conflict (key) do update set value = ''`) // one node at a time
			if used, left, err = d.space(tx, budget); err != nil {
				return false // and the transaction fails
			}
		}
		if used <= left || f.size == 0 {
			return false
		}
		used -= f.size
		f.replaceBody(tx, newBody{})
		f.changed, f.news, f.outcome = tx.Now(), 0, 0
		place := f.place.column()
		if place != nil {
			place = f.due()
		}
		f.save(tx, place, nil, nil)
		tx.Changed(Change{ID: f.id})
		return true
	})
}
