// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"database/sql"
	"math"
)

const (
	// polled are the feeds that are polled by decisions: ?1 is now, and ?2 the earliest moment at which a reader may have
	// asked for them last.
	polled = `url is not null and next is not null and (wanted <= ?1 or (version > 0 or configured_until > ?1) and coalesce(asked, 0) >= ?2)`
	// poked is when a poke has a feed polled.
	poked = `case when earliest > wanted then earliest else wanted end`

	dueColumns = `select id, url, site, owner, version, n`
	feedsDue   = dueColumns + `, next from feed where ` + polled + ` and next <= ?1 and (next, n) > (?3, ?4) order by next, n limit ?5`
	feedsPoked = dueColumns + `, ` + poked + ` from feed where url is not null and wanted is not null and ` + poked + ` <= ?1 order by 7, n`
	nextDue    = `select next from feed where ` + polled + ` and next > ?1 order by next limit 1`
	nextPoked  = `select min(` + poked + `) from feed where url is not null and wanted is not null and ` + poked + ` > ?1`
)

// Due implements [Store].
func (d *Database) Due(ctx context.Context, q DueQuery) (Due, error) {
	return read(ctx, d, func(tx Tx) (Due, error) { return readDue(tx, q) })
}

func readDue(tx Tx, q DueQuery) (Due, error) {
	now, asked := tx.Now(), int64(math.MinInt64)
	if q.Idle > 0 {
		asked = int64(now.Add(-q.Idle)) + 1
	}
	due, rows := Due{To: q.From}, 0
	add := func(_ int, row Row) error {
		f, at, err := scanDue(row, now)
		if rows++; f.ID != (ID{}) {
			due.Feeds = append(due.Feeds, f)
		}
		if !q.Poked {
			due.To = at
		}
		return err
	}
	var err error
	if q.Poked {
		err = tx.Query(feedsPoked, one(int64(now)), add)
	} else {
		err = tx.Query(feedsDue, one(int64(now), asked, int64(q.From.next), q.From.n, q.Limit), add)
	}
	if err != nil || !q.Poked && rows >= q.Limit { // there may be more
		return due, err
	}
	next := End
	soonest := func(_ int, row Row) error {
		var at sql.NullInt64
		err := row.Scan(&at)
		next = min(next, timeOf(at, End))
		return err
	}
	err = tx.Query(nextPoked, one(int64(now)), soonest)
	if err == nil && !q.Poked {
		err = tx.Query(nextDue, one(int64(now), asked), soonest)
	}
	if due.Wait = next.Sub(now); due.Wait != Ended { // some time has passed since
		due.Wait = max(1, next.Sub(tx.Now()))
	}
	return due, err
}

// scanDue reads a row of dueColumns and of a moment. If its ID is not that of its URL, the feed has none.
func scanDue(row Row, now Time) (f DueFeed, at Cursor, err error) {
	var id []byte
	var url, site string
	var owner, version int64
	err = row.Scan(&id, &url, &site, &owner, &version, &at.n, (*int64)(&at.next))
	f = DueFeed{ID: IDOf(url), Site: site, Owner: Owner(owner).ofNow(), New: version == 0, For: now.Sub(at.next)}
	if string(id) != string(f.ID[:]) {
		f.ID = ID{}
	}
	return f, at, err
}
