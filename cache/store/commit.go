// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"
)

// Commit implements [Store].
func (d *Database) Commit(ctx context.Context, o Outcome) error {
	if o.Body != nil && o.Body.Version == 0 {
		return errors.New("store: a body needs a version")
	}
	stored, err := d.storeParts(ctx, o.Body)
	if err != nil {
		return err
	}
	work := Work{Bytes: stored.left(), Late: o.Body == nil && !o.Withdraw && len(o.Pauses) == 0}
	fenced, err := write(ctx, d, work, func(tx Tx) (bool, error) { return commit(tx, o, stored) })
	if err != nil {
		return err
	}
	if fenced {
		return errors.Join(ErrFenced, d.dropParts(ctx, stored))
	}
	return nil
}

func commit(tx Tx, o Outcome, body newBody) (fenced bool, err error) {
	name := hostRowOf(o.ID, o.Host)
	if _, err := lockHosts(tx, map[string]string{name: o.Host.Domain}); err != nil {
		return false, err
	}
	feeds, err := lockFeeds(tx, []ID{o.ID})
	if err != nil {
		return false, err
	}
	f := feeds[o.ID]
	if f == nil || !f.known || f.token != o.Token || o.Token == 0 {
		return true, nil
	}
	now := tx.Now()
	f.next, f.host = now.Add(max(0, o.In)), o.Host
	if o.Hold > 0 {
		f.hold = o.Hold
	}
	if o.State != "" {
		f.state = o.State
	}
	change := Change{ID: o.ID, Token: o.Token}
	if o.Body != nil || o.Withdraw {
		f.replaceBody(tx, body)
		change.Version = uint64(f.version)
	}
	tx.Exec(`update feed set state = ?2, next = ?3, due = ?4, hold = ?5, host = ?6, domain = ?7, spacing = ?8,
		version = ?9, size = ?10, coding = ?11, body = ?12, changed = ?13, news = ?14, outcome = token,
		facts = coalesce(?15, facts), memo = coalesce(?16, memo) where n = ?1`,
		f.n, string(f.state), f.next.column(), f.due(), int64(f.hold), name, f.host.Domain, int64(f.host.Spacing),
		f.version, f.size, f.coding, f.body, int64(now), number(change.Version != 0),
		bytesOrNull(o.Facts), bytesOrNull(o.Memo))
	pauses := slices.Clone(o.Pauses)
	slices.SortStableFunc(pauses, func(a, b Pause) int { return cmp.Compare(a.Scope, b.Scope) })
	for _, p := range pauses {
		pauseFor(tx, now, p)
	}
	readyWhen(tx, name)
	tx.Changed(change)
	return false, nil
}

// pauseFor agrees a pause, unless a longer one is in force.
func pauseFor(tx Tx, now Time, p Pause) {
	if p.For <= 0 {
		return
	}
	tx.Exec(`insert into pause (scope, until, why, step) values (?1, ?2, ?3, ?4)
		on conflict (scope) do update set until = excluded.until, why = excluded.why, step = excluded.step
		where pause.until <= excluded.until`, p.Scope, int64(now.Add(p.For)), p.Why, int64(p.Step))
}

// Restore implements [Store].
func (d *Database) Restore(ctx context.Context, saved []Saved) error {
	const inHand = 1 << 20 // bytes of bodies
	for len(saved) > 0 {
		n, size := 0, 0
		for n < min(len(saved), atOnce) && size < inHand {
			if b := saved[n].Body; b != nil {
				size += len(b.Data)
			}
			n++
		}
		some := saved[:n]
		err := d.driver.Write(ctx, Work{Grant: true, Bytes: size, Do: func(tx Tx) error { return restore(tx, some) }})
		if err != nil {
			return err
		}
		saved = saved[n:]
	}
	return ctx.Err()
}

func restore(tx Tx, saved []Saved) error {
	ids := make([]ID, len(saved))
	domains := make(map[string]string, len(saved))
	for i, r := range saved {
		ids[i] = r.ID
		domains[hostRowOf(r.ID, r.Host)] = r.Host.Domain
	}
	if _, err := lockHosts(tx, domains); err != nil {
		return err
	}
	feeds, err := lockFeeds(tx, ids)
	if err != nil {
		return err
	}
	if err := addFeeds(tx, feeds, ids); err != nil {
		return err
	}
	now := tx.Now()
	for _, r := range saved {
		f := feeds[r.ID]
		if f.known && r.New {
			continue
		}
		restoreOne(tx, now, f, r)
		readyWhen(tx, f.row())
	}
	return nil
}

func restoreOne(tx Tx, now Time, f *feedRow, r Saved) {
	next := now.Add(r.In)
	if f.known {
		next = max(next, f.next)
	}
	body := newBody{}
	if r.Body != nil {
		body = storeBody(tx, r.Body)
	}
	f.replaceBody(tx, body)
	f.token = 0
	if r.Polled >= 0 {
		f.token = tx.Tokens(1) // so that no lease from before fits
	}
	f.known, f.url, f.next, f.hold, f.state, f.configured, f.host = true, r.URL, next, r.Hold, r.State, r.Configured, r.Host
	f.last, f.asked = before(now, r.Polled), before(now, r.Asked)
	f.save(tx)
	tx.Exec(`update feed set asked = ?2, version = ?3, size = ?4, coding = ?5, body = ?6, facts = ?7, memo = ?8, changed = ?9, news = ?10, outcome = 0
		where n = ?1`, f.n, f.asked.column(), f.version, f.size, f.coding, f.body, bytesOrNull(r.Facts), bytesOrNull(r.Memo),
		int64(now), number(f.version != 0))
	tx.Changed(Change{ID: r.ID, Version: uint64(f.version)})
}

// SaveCounters implements [Store].
func (d *Database) SaveCounters(ctx context.Context, node string, data []byte) error {
	if len(data) > MaxCounters {
		return ErrCountersTooLarge
	}
	return d.driver.Write(ctx, Work{Bytes: len(data), Do: func(tx Tx) error {
		if len(data) == 0 {
			tx.Exec(`delete from counters where node = ?1`, node)
		} else {
			tx.Exec(`insert into counters (node, data) values (?1, ?2) on conflict (node) do update set data = excluded.data`, node, data)
		}
		return nil
	}})
}

// Touch implements [Store].
func (d *Database) Touch(ctx context.Context, asked map[ID]time.Duration) error {
	ids := make([]ID, 0, len(asked))
	for id := range asked {
		ids = append(ids, id)
	}
	ids = sortedIDs(ids)
	for len(ids) > 0 {
		some := ids[:min(len(ids), atOnce)]
		err := d.driver.Write(ctx, Work{Late: true, Do: func(tx Tx) error { return touch(tx, some, asked) }})
		if err != nil {
			return err
		}
		ids = ids[len(some):]
	}
	return ctx.Err()
}

// touch records when readers asked. Feeds that sleep are polled again, so their hosts are
// locked first.
func touch(tx Tx, ids []ID, asked map[ID]time.Duration) error {
	hosts := make(map[string]string)
	err := tx.Query(`select host, domain from feed where id = ?1 and `+sleeps, each(ids, idArgument), func(_ int, row Row) error {
		var host, domain string
		err := row.Scan(&host, &domain)
		hosts[host] = domain
		return err
	})
	if err != nil {
		return err
	}
	if len(hosts) > 0 {
		if _, err := lockHosts(tx, hosts); err != nil {
			return err
		}
	}
	if _, err := lockFeeds(tx, ids); err != nil {
		return err
	}
	now := tx.Now()
	for _, id := range ids {
		tx.Exec(`update feed set asked = ?2, due = case when version <> 0 or configured <> 0 then next else due end
			where id = ?1 and url is not null and (asked is null or asked < ?2)`, id[:], int64(before(now, max(asked[id], 0))))
	}
	for name := range hosts {
		readyWhen(tx, name)
	}
	return nil
}
