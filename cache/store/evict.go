// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"database/sql"
	"time"
)

// When the store is full, feeds are forgotten by the shares of their owners, records and bodies alike. First those
// of [Any] go, while they use more than their part; then the owner that uses the most gives way. Those of the operator never
// go. Of an owner, feeds that no reader asked for recently go first, the longest ago at the beginning, and then those that
// were first asked for most recently.

// anyPart is the part of a full store that feeds of [Any] may keep before others have to give way, as 1/n. What is remembered
// of those that were forgotten may take as much.
const anyPart = 8

// recently is how long ago a reader may have asked for a feed that stays while others of its owner were not asked for since.
const recently = 7 * 24 * time.Hour

// use is how many bytes the feeds of an owner take.
type use struct {
	all       int64 // records and bodies
	bodies    int64
	forgotten int64 // rows that are kept for the last poll, and do not give way
}

type uses map[Owner]*use

// of returns the use of an owner. Feeds that have none count for [Any].
func (u uses) of(o Owner) *use {
	if o = o.ofNow(); o.Kind() < KindAny {
		o = Any
	}
	if u[o] == nil {
		u[o] = new(use)
	}
	return u[o]
}

// next returns the owner of which a feed has to be forgotten. It reports false if only the operator's are left.
func (u uses) next(disk int64) (first Owner, ok bool) {
	if strangers := u.of(Any); strangers.all > disk/anyPart && strangers.all > strangers.forgotten {
		return Any, true
	}
	for o, use := range u {
		if o.Kind() != KindOperator && use.all > use.forgotten && (!ok || use.all > u[first].all || use.all == u[first].all && o < first) {
			first, ok = o, true
		}
	}
	return first, ok
}

// victim is a feed that has to give way.
type victim struct {
	candidate
	bytes int64
}

// trim forgets feeds until the store uses no more than disk.
func (d *Database) trim(ctx context.Context, disk int64) (trimmed []ID, err error) {
	d.crowded.Store(false)
	for {
		used, err := read(ctx, d, func(tx Tx) (int64, error) { return d.fill(tx, disk) })
		if err != nil || used <= disk {
			return trimmed, err
		}
		victims, err := d.victims(ctx, disk, used-disk)
		if err != nil {
			return trimmed, err
		}
		gone, err := d.giveWay(ctx, victims, disk)
		trimmed = append(trimmed, gone...)
		if err != nil || len(gone) == 0 {
			return trimmed, err
		}
	}
}

// fill returns how many bytes are in use. If they are more than disk, or the file system is short of space,
// it finds out whether strangers may add feeds: what is remembered of them is bounded.
func (d *Database) fill(tx Tx, disk int64) (used int64, err error) {
	used, err = d.driver.Used(tx)
	left := d.driver.Left()
	if err != nil || used <= disk && left == Unlimited {
		return used, err
	}
	use, err := usesOf(tx)
	d.crowded.Store(err == nil && use.crowded(disk, left))
	return used, err
}

// inFlight is for how long after a claim the first version of a feed may be on its way: it does not give way then.
const inFlight = 5 * time.Minute

// atOnceVictims is how many feeds of an owner are looked at in one go.
const atOnceVictims = 200

// victims finds feeds that have to give way and take some bytes together. If there are not so many, it
// returns all of them.
func (d *Database) victims(ctx context.Context, disk, bytes int64) ([]candidate, error) {
	return read(ctx, d, func(tx Tx) (victims []candidate, err error) {
		use, err := usesOf(tx)
		if err != nil {
			return nil, err
		}
		ofOwner := make(map[Owner][]victim)
		read := make(map[Owner]int)
		for left := bytes; left > 0; {
			o, ok := use.next(disk)
			if !ok {
				break
			}
			if len(ofOwner[o]) == 0 {
				if ofOwner[o], err = feedsOf(tx, o, read[o]); err != nil {
					return nil, err
				}
				if read[o] += len(ofOwner[o]); len(ofOwner[o]) == 0 {
					use.of(o).forgotten = use.of(o).all // the others were committed a moment ago
					continue
				}
			}
			v := ofOwner[o][0]
			ofOwner[o] = ofOwner[o][1:]
			use.of(o).all -= v.bytes
			left -= v.bytes
			victims = append(victims, v.candidate)
		}
		return victims, nil
	})
}

// crowded reports whether what is remembered of feeds of strangers that are forgotten takes all that it may
// take, or all their records together do of what is left on a file system that is short of space.
func (u uses) crowded(disk, left int64) bool {
	strangers := u.of(Any)
	return strangers.forgotten > disk/anyPart || strangers.all-strangers.bodies > left/anyPart
}

// taken is what a row takes with its body, in bytes; of one that was written before that was counted, roughly.
const taken = `coalesce(taken, size + 4096)`

// usesOf adds up what owners use.
func usesOf(tx Tx) (uses, error) {
	u := make(uses)
	err := tx.Query(`select owner, cast(sum(`+taken+`) as bigint), cast(sum(size) as bigint) from feed group by owner`, one(), func(_ int, row Row) error {
		var owner, all, bodies int64
		err := row.Scan(&owner, &all, &bodies)
		use := u.of(Owner(owner))
		use.all += all
		use.bodies += bodies
		return err
	})
	if err == nil {
		err = tx.Query(`select owner, cast(sum(`+taken+`) as bigint) from feed where url is null group by owner`, one(), func(_ int, row Row) error {
			var owner, all int64
			err := row.Scan(&owner, &all)
			u.of(Owner(owner)).forgotten += all
			return err
		})
	}
	return u, err
}

// feedsOf reads some feeds of an owner, those that have to go first at the beginning.
func feedsOf(tx Tx, o Owner, skip int) (feeds []victim, err error) {
	first, last := int64(o), int64(o)
	if o == Any { // also those of no owner, and of the public networks of version 2 of the tables
		first, last = 0, 2<<kindShift-1
	}
	now := tx.Now()
	err = tx.Query(`select id, `+taken+`, coalesce(asked, last) from feed
		where owner >= ?1 and owner <= ?2 and url is not null and coalesce(configured_until, 0) <= ?3 and (version > 0 or coalesce(last, 0) <= ?7)
		order by case when coalesce(asked, last, 0) <= ?4 then coalesce(asked, last, 0) else ?4 + 1 end,
			case when first > 0 then first else coalesce(asked, last, 0) end desc, id limit ?5 offset ?6`,
		one(first, last, int64(now), int64(now.Add(-recently)), atOnceVictims, skip, int64(now.Add(-inFlight))),
		func(_ int, row Row) error {
			var v victim
			var id []byte
			var used sql.NullInt64
			err := row.Scan(&id, &v.bytes, &used)
			copy(v.id[:], id)
			v.used = timeOf(used, Never)
			feeds = append(feeds, v)
			return err
		})
	return feeds, err
}

// giveWay forgets feeds, unless they were asked for since. It stops when the store uses no more
// than disk: another node may make room, too.
func (d *Database) giveWay(ctx context.Context, victims []candidate, disk int64) ([]ID, error) {
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
		if used <= disk || f.configured(tx.Now()) {
			return false
		}
		used -= f.taken()
		f.remove(tx)
		return true
	})
}
