// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"database/sql"
	"math"
	"slices"
	"time"
)

// maxWait is the longest time after which ClaimDue wants to be called again: another node
// may have stopped meanwhile, or made a feed due.
const maxWait = time.Minute

// ClaimDue implements [Store].
func (d *Database) ClaimDue(ctx context.Context, q DueQuery) ([]Lease, time.Duration, error) {
	defer d.took("claim", time.Now())
	if q.Idle <= 0 {
		q.Idle = math.MaxInt64
	}
	q.Limit = min(q.Limit, atOnce)
	from, err := d.oldest(ctx)
	if err != nil {
		return nil, 0, err
	}
	found, err := write(ctx, d, Work{}, func(tx Tx) (found dueLeases, err error) {
		found.leases, found.wait, err = claimDue(tx, q, from)
		return found, err
	})
	return found.leases, found.wait, err
}

// oldest returns a moment before which no host is ready. While any program keeps a
// transaction open, such as a backup, a database with many writers keeps the entries of its
// indexes that were replaced since. Those of hosts that were polled are at their beginning, and each
// claim would read them all: two for each poll that was made meanwhile.
func (d *Database) oldest(ctx context.Context) (Time, error) {
	const (
		every = time.Second
		// Such is the time between the moment of a transaction and its end, at most.
		margin = 20 * time.Second
	)
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	if now.Sub(d.looked) < every {
		return d.from, nil
	}
	if d.looked = now; now.Sub(d.lookedAll) >= maxWait { // in case the clock was wrong
		d.lookedAll, d.from = now, Never
	}
	from, err := read(ctx, d, func(tx Tx) (Time, error) {
		first := End
		err := tx.Query(firstReady, one(int64(d.from)), func(_ int, row Row) error { return row.Scan((*int64)(&first)) })
		return min(first, tx.Now().Add(-margin)), err
	})
	if err == nil {
		d.from = from
	}
	return d.from, err
}

type dueLeases struct {
	leases []Lease
	wait   time.Duration
}

// rounds is how many groups of hosts one call looks at: most of those of which nothing is
// granted are in order for the next call.
const rounds = 20

func claimDue(tx Tx, q DueQuery, from Time) (leases []Lease, wait time.Duration, err error) {
	except := slices.Clone(q.Except) // and those that this call has granted
	for range rounds {
		want := q.Limit - len(leases)
		hosts, full, err := readyHosts(tx, q, from, except, want)
		if err != nil {
			return nil, 0, err
		}
		granted, later, err := claimOf(tx, q, hosts)
		if err != nil {
			return nil, 0, err
		}
		for _, l := range granted {
			except = append(except, hostRowOf(l.ID, l.Host))
		}
		leases = append(leases, granted...)
		if len(leases) >= q.Limit {
			return leases, 0, nil
		}
		if !full && !later {
			break
		}
	}
	wait, err = nextReady(tx, q, from)
	return leases, wait, err
}

// readyHosts locks up to limit hosts that seem to be ready, those that have waited the
// longest first. Hosts that another node has locked are left to it.
func readyHosts(tx Tx, q DueQuery, from Time, except []string, limit int) (hosts []*hostRow, full bool, err error) {
	all := limit + len(except)
	seen := 0
	statement := hostsReady
	if q.Short {
		statement = hostsCalm
	}
	var ready []string
	err = tx.Query(statement, one(int64(tx.Now()), all, int64(from)), func(_ int, row Row) error {
		var name string
		err := row.Scan(&name)
		seen++
		switch {
		case slices.Contains(except, name):
		case len(ready) < limit:
			ready = append(ready, name)
		default:
			full = true
		}
		return err
	})
	if err != nil {
		return nil, false, err
	}
	// Pauses are read after the hosts are locked: a poll of one may have agreed one just before.
	found := make(map[string]*hostRow, len(ready))
	err = tx.Query(hostByName, each(ready, func(name string) []any { return []any{name} }), func(i int, row Row) error {
		h := found[ready[i]]
		if h == nil {
			h = newHostRow(ready[i])
			found[h.name], hosts = h, append(hosts, h)
		}
		return h.scan(row)
	})
	if err == nil && len(hosts) < len(ready) { // a name is damaged
		hosts = nil
		remakeHosts(tx)
	}
	return hosts, full || seen == all, err
}

// claimOf grants one poll of each host, if it has a feed that is due. Hosts whose feed sleeps have not waited
// as long as it seemed: they are left for the next group, and later is true.
func claimOf(tx Tx, q DueQuery, hosts []*hostRow) (leases []Lease, later bool, err error) {
	picked, later, err := pick(tx, q, hosts)
	if err != nil {
		return nil, false, err
	}
	now, since := tx.Now(), tx.Since()
	for i, h := range hosts {
		f := picked[i]
		if f == nil {
			readyWhen(tx, h)
			continue
		}
		f.mend(now)
		presumed := f.assumePolled(since, 0)
		at, _ := h.mayAsk(f.version != 0, f.host.Spacing, now, since)
		switch {
		case f.next > now: // its place is that of a poll that has been made, or damaged
			f.place, later = End, later || !presumed
		case at > now: // after a fail-over
			h.pauseUntil(tx, at)
			continue
		default:
			if f.hold <= 0 {
				f.hold = usualHold
			}
			f.grant(now, tx.Tokens(1), f.hold)
			h.start(tx, now, f.rank(), f.owner)
			leases = append(leases, Lease{Record: f.record(now)})
		}
		f.save(tx, f.due(), nil, nil)
		readyWhen(tx, h)
	}
	return leases, later, nil
}

// pauseUntil has claims leave the host alone until a moment.
func (h *hostRow) pauseUntil(tx Tx, until Time) {
	tx.Exec(`update host set ready = ?2, calm = case when calm is null then null else cast(?2 as bigint) end where name = ?1`, h.name, int64(until))
}

// maxWaiting is for how long a feed keeps its place for which a reader waits.
const maxWaiting = 5 * time.Minute

// sleep is for how long feeds are left alone that no reader asks for: then it is looked at them
// again, as the operator may have changed for how long they are polled.
const sleep = 24 * time.Hour

// pick finds the feed of each host whose turn it is. Feeds that no reader has asked for in
// q.Idle are put to sleep; then slept is true, and their host has none.
func pick(tx Tx, q DueQuery, hosts []*hostRow) (picked []*feedRow, slept bool, err error) {
	now := tx.Now()
	all := make([]*search, len(hosts))
	for i, h := range hosts {
		all[i] = &search{host: h, ranks: h.open(now), from: Never, to: now, now: now}
		if q.Short {
			all[i].ranks = slices.DeleteFunc(all[i].ranks, func(r Rank) bool { return r > RankNamed })
		}
	}
	if err = findRanks(tx, all); err == nil {
		err = findTurn(tx, all)
	}
	if err != nil {
		return nil, false, err
	}
	picked = make([]*feedRow, len(hosts))
	cut := now.Add(-q.Idle)
	for i, s := range all {
		switch f := s.found; {
		case f == nil:
		case f.damaged: // it starts afresh when it is asked for
			slept = true
			tx.Exec(`update feed set due = null where n = ?1`, f.n)
		case f.waits() && (f.place+ahead < now.Add(-maxWaiting) || f.place+ahead > now):
			f.place, slept = End, true
			tx.Exec(`update feed set due = ?2 where n = ?1`, f.n, f.due())
		case !f.waits() && q.Idle != math.MaxInt64 && f.asked <= cut:
			slept = true
			tx.Exec(putToSleep, s.host.name, int64(s.ranks[0]), int64(now), int64(cut), int64(now.Add(sleep)))
		default:
			picked[i] = f
		}
	}
	return picked, slept, nil
}

const putToSleep = `update feed set due = ?5 where n in (select n from feed
	where site = ?1 and ` + rankColumn + ` = ?2 and due > 0 and due <= ?3 and (asked is null or asked <= ?4) order by due limit 500 for update skip locked)`

// nextReady returns when ClaimDue may find something. Hosts that are excepted do not
// count: the node knows when it is done with them.
func nextReady(tx Tx, q DueQuery, from Time) (time.Duration, error) {
	if q.Short { // no index has it, and other polls are in flight that will end
		return time.Second, nil
	}
	next := End
	err := tx.Query(`select name, ready from host where ready >= ?2 order by ready limit ?1`, one(1+len(q.Except), int64(from)),
		func(_ int, row Row) error {
			var name string
			var ready sql.NullInt64
			err := row.Scan(&name, &ready)
			if !slices.Contains(q.Except, name) {
				next = min(next, timeOf(ready, End))
			}
			return err
		})
	return max(time.Millisecond, min(maxWait, next.Sub(tx.Now()))), err
}
