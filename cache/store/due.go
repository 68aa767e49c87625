// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"database/sql"
	"math"
	"slices"
	"strconv"
	"time"
)

// maxWait is the longest time after which ClaimDue wants to be called again: another node
// may have stopped meanwhile, or made a feed due.
const maxWait = time.Minute

// ClaimDue implements [Store].
func (d *Database) ClaimDue(ctx context.Context, q DueQuery) ([]Lease, time.Duration, error) {
	if q.Idle <= 0 {
		q.Idle = math.MaxInt64
	}
	if err := d.wake(ctx, q.Idle); err != nil {
		return nil, 0, err
	}
	q.Limit = min(q.Limit, atOnce)
	found, err := write(ctx, d, Work{Grant: true}, func(tx Tx) (found dueLeases, err error) {
		found.leases, found.wait, err = claimDue(tx, q)
		return found, err
	})
	return found.leases, found.wait, err
}

type dueLeases struct {
	leases []Lease
	wait   time.Duration
}

// rounds is how many groups of hosts one call looks at: most of those of which nothing is
// granted are in order for the next call.
const rounds = 20

func claimDue(tx Tx, q DueQuery) (leases []Lease, wait time.Duration, err error) {
	except := slices.Clone(q.Except) // and those that this call has granted
	for range rounds {
		want := q.Limit - len(leases)
		hosts, full, err := readyHosts(tx, except, want)
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
	wait, err = nextReady(tx, q.Except)
	return leases, wait, err
}

// readyHosts locks up to limit hosts that seem to be ready, those that have waited the
// longest first. Hosts that another node has locked are left to it.
func readyHosts(tx Tx, except []string, limit int) (hosts []*hostRow, full bool, err error) {
	all := limit + len(except)
	seen := 0
	var ready [][]any // names and domains
	err = tx.Query(hostsReady, one(int64(tx.Now()), all), func(_ int, row Row) error {
		var name, domain string
		err := row.Scan(&name, &domain)
		seen++
		switch {
		case slices.Contains(except, name):
		case len(ready) < limit:
			ready = append(ready, []any{name, domain})
		default:
			full = true
		}
		return err
	})
	if err != nil {
		return nil, false, err
	}
	// Pauses are read after the hosts are locked: a poll of one may have agreed one just before.
	err = tx.Query(hostByName, ready, func(_ int, row Row) error {
		h, err := scanHost(row)
		hosts = append(hosts, &h)
		return err
	})
	return hosts, full || seen == all, err
}

// claimOf grants one poll of each host, if it has a feed that is due. Hosts that have not
// waited as long as they seemed to are left for the next group, and later is true.
func claimOf(tx Tx, q DueQuery, hosts []*hostRow) (leases []Lease, later bool, err error) {
	now := tx.Now()
	picked := make([]*feedRow, len(hosts))
	var open []int // hosts that are not paused
	for i, h := range hosts {
		if denied, until, _ := h.deny(now, tx.Since(), 0); denied != "" {
			tx.Exec(`update host set ready = ?2 where name = ?1`, h.name, int64(until))
			continue
		}
		open = append(open, i)
	}
	if err := pick(tx, q.Idle, hosts, open, picked); err != nil {
		return nil, false, err
	}
	now = tx.Now()
	token := tx.Tokens(len(open))
	for _, i := range open {
		f, h := picked[i], hosts[i]
		switch {
		case f == nil:
		case max(h.free, f.next) > h.ready:
			later = true
		default:
			if f.hold <= 0 {
				f.hold = usualHold
			}
			if denied, until, _ := h.deny(now, tx.Since(), f.host.Spacing); denied != "" { // after a fail-over
				tx.Exec(`update host set ready = ?2 where name = ?1`, h.name, int64(until))
				continue
			}
			if !f.presume(tx.Since(), 0) || f.next <= now {
				f.grant(now, token, f.hold)
				h.start(tx, now, f.host.Spacing)
				leases = append(leases, Lease{Record: f.record(now)})
			}
			f.save(tx)
		}
		readyWhen(tx, h.name)
		token++
	}
	return leases, later, nil
}

// pick finds the first due feed of each open host. Feeds that no reader has asked for in
// idle are put to sleep on the way.
func pick(tx Tx, idle time.Duration, hosts []*hostRow, open []int, picked []*feedRow) error {
	for range 4 { // or the rest of the sleepers is for the next call
		now := tx.Now()
		sleeping := false
		err := tx.Query(feedOfHost, each(open, func(i int) []any { return []any{hosts[i].name, int64(now)} }),
			func(i int, row Row) error {
				f, err := scanFeed(row)
				picked[open[i]] = &f
				return err
			})
		if err != nil {
			return err
		}
		cut := now.Add(-idle)
		for _, i := range open {
			if f := picked[i]; f != nil && idle != math.MaxInt64 && f.asked <= cut {
				picked[i], sleeping = nil, true
				tx.Exec(`update feed set due = null where n in (select n from feed
					where host = ?1 and due <= ?2 and (asked is null or asked <= ?3) order by due limit 500 for update skip locked)`,
					hosts[i].name, int64(now), int64(cut))
			}
		}
		if !sleeping {
			return nil
		}
		clear(picked)
	}
	return nil
}

// nextReady returns when ClaimDue may find something. Hosts that are excepted do not
// count: the node knows when it is done with them.
func nextReady(tx Tx, except []string) (time.Duration, error) {
	next := End
	err := tx.Query(`select name, ready from host where ready is not null order by ready limit ?1`, one(1+len(except)),
		func(_ int, row Row) error {
			var name string
			var ready sql.NullInt64
			err := row.Scan(&name, &ready)
			if !slices.Contains(except, name) {
				next = min(next, moment(ready, End))
			}
			return err
		})
	return max(time.Millisecond, min(maxWait, next.Sub(tx.Now()))), err
}

// keyIdle is the key in meta of the longest idle time that feeds were put to sleep by.
const keyIdle = "idle"

// wake lets feeds be polled again that sleep and are not idle by a longer idle time.
func (d *Database) wake(ctx context.Context, idle time.Duration) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.knows && d.idle == idle {
		return nil
	}
	if !d.knows {
		d.idle = math.MaxInt64
		err := d.driver.Read(ctx, func(tx Tx) error {
			return tx.Query(`select value from meta where key = ?1`, one(keyIdle), func(_ int, row Row) error {
				var value string
				if err := row.Scan(&value); err != nil {
					return err
				}
				n, err := strconv.ParseInt(value, 10, 64)
				if err == nil {
					d.idle = time.Duration(n)
				}
				return nil
			})
		})
		if err != nil {
			return err
		}
		d.knows = true
	}
	if d.idle == idle {
		return nil
	}
	if d.idle < idle {
		if err := d.wakeAll(ctx, idle); err != nil {
			return err
		}
	}
	err := d.driver.Write(ctx, Work{Do: func(tx Tx) error {
		tx.Exec(`insert into meta (key, value) values (?1, ?2) on conflict (key) do update set value = excluded.value`,
			keyIdle, strconv.FormatInt(int64(idle), 10))
		return nil
	}})
	if err == nil {
		d.idle = idle
	}
	return err
}

const sleeps = `due is null and next is not null and url is not null and (version <> 0 or configured <> 0)`

func (d *Database) wakeAll(ctx context.Context, idle time.Duration) error {
	for last := int64(0); ; {
		var hosts map[string]string
		var rows []int64
		found := 0
		err := d.driver.Read(ctx, func(tx Tx) error {
			hosts, rows, found = make(map[string]string), nil, 0
			now := tx.Now()
			return tx.Query(`select n, host, domain, asked from feed where n > ?1 and `+sleeps+` order by n limit ?2`,
				one(last, atOnce), func(_ int, row Row) error {
					var n int64
					var host, domain string
					var asked sql.NullInt64
					err := row.Scan(&n, &host, &domain, &asked)
					if found++; now.Sub(moment(asked, Never)) < idle || idle == math.MaxInt64 {
						hosts[host] = domain
						rows = append(rows, n)
					}
					last = max(last, n)
					return err
				})
		})
		if err != nil || found == 0 {
			return err
		}
		err = d.driver.Write(ctx, Work{Do: func(tx Tx) error {
			if _, err := lockHosts(tx, hosts); err != nil {
				return err
			}
			for _, n := range rows {
				tx.Exec(`update feed set due = next where n = ?1 and `+sleeps, n)
			}
			for name := range hosts {
				readyWhen(tx, name)
			}
			return nil
		}})
		if err != nil {
			return err
		}
	}
}
