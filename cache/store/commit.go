// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"
)

const (
	// longestJitter is longer than what jitter adds to the interval of a feed.
	longestJitter = time.Hour
	// longestSkip is for how long skipDays and skipHours put off a poll, at most.
	longestSkip = 3 * 24 * time.Hour
)

// Commit implements [Store].
func (d *Database) Commit(ctx context.Context, o Outcome) error {
	defer d.took("commit", time.Now())
	if o.Body != nil && o.Body.Version == 0 {
		return errors.New("store: a body needs a version")
	}
	// The claim keeps the feed from being polled too early if this is lost, unless the origin
	// has asked for more than the claim holds for.
	soon := o.NotBefore == 0 && (o.Claimed == 0 || o.In <= o.Claimed+longestJitter)
	work := Work{Late: o.Body == nil && !o.Withdraw && len(o.Pauses) == 0 && soon}
	if o.Body != nil {
		work.Bytes = len(o.Body.Data)
	}
	refused, err := write(ctx, d, work, func(tx Tx) (error, error) { return d.commit(tx, o) })
	if err == nil {
		err = refused
	}
	return err
}

// hostsOf returns the names of the rows of hosts that an outcome changes.
func hostsOf(o Outcome) []string {
	names := append([]string{hostRowOf(o.ID, o.Host)}, o.Good...)
	for _, p := range o.Pauses {
		names = append(names, p.Site)
	}
	return names
}

// commit stores an outcome. It returns why it or its body was refused, which does not undo the transaction.
func (d *Database) commit(tx Tx, o Outcome) (refused, err error) {
	name := hostRowOf(o.ID, o.Host)
	asked := slices.Collect(maps.Keys(o.Hops))
	hosts, feeds, err := lockAll(tx, hostsOf(o), len(asked), append(asked, o.ID)...)
	if err != nil {
		return nil, err
	}
	f := feeds[o.ID]
	if f == nil || !f.known || f.token != o.Token || o.Token == 0 {
		return ErrFenced, nil
	}
	if o.Body != nil && f.version == 0 && f.rank() != RankOperator && d.driver.Left() != Unlimited {
		o.Body, refused = nil, ErrShort
	}
	now := tx.Now()
	if err := f.moveTo(tx, now, hosts[name], o.Host); err != nil {
		return nil, err
	}
	f.place = End
	f.classify(now)
	for _, site := range o.Good {
		hosts[site].answeredWell(tx, now)
	}
	pause(tx, now, f, hosts, o.Pauses)
	for id, length := range o.Hops {
		feeds[id].leaveAlone(tx, now, length)
	}
	if o.NotBefore > 0 {
		f.earliest = max(f.earliest, now.Add(min(o.NotBefore, maxPause)))
	}
	f.next = max(now.Add(max(0, o.In)), f.earliest)
	if o.Hold > 0 {
		f.hold = o.Hold
	}
	if o.State != "" {
		f.state = o.State
	}
	change := Change{ID: o.ID, Token: o.Token}
	if o.Body != nil || o.Withdraw {
		f.replaceBody(tx, o.Body)
		change.Version = uint64(f.version)
	}
	f.changed, f.news, f.outcome = now, number(change.Version != 0), o.Token
	if o.PollState != nil {
		f.pollState = o.PollState
	}
	if o.FeedState != nil {
		f.feedState = o.FeedState
	}
	if o.Points != nil {
		f.points = *o.Points
	}
	f.save(tx, f.due(), o.PollState, o.FeedState)
	for _, h := range hosts {
		readyWhen(tx, h)
	}
	tx.Changed(change)
	return refused, nil
}

// leaveAlone has the URL of a feed left alone for some time: a redirect led there, and it asked for that. If
// there is no feed, its row is one of times alone.
func (f *feedRow) leaveAlone(tx Tx, now Time, length time.Duration) {
	f.earliest = max(f.earliest, now.Add(min(length, maxPause)))
	if f.known {
		f.next = max(f.next, f.earliest)
	} else {
		f.until = max(f.until, f.earliest, now.Add(keepForgotten))
	}
	f.save(tx, f.due(), nil, nil)
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
		err := d.driver.Write(ctx, Work{Bytes: size, Do: func(tx Tx) error { return restore(tx, some) }})
		if err != nil {
			return err
		}
		saved = saved[n:]
	}
	return ctx.Err()
}

func restore(tx Tx, saved []Saved) error {
	now := tx.Now()
	saved = slices.DeleteFunc(slices.Clone(saved), func(r Saved) bool {
		if r.Pause != nil {
			restorePause(tx, now, *r.Pause)
		}
		return r.Pause != nil
	})
	if len(saved) == 0 {
		return nil
	}
	ids := make([]ID, len(saved))
	var names []string
	for i, r := range saved {
		if ids[i] = r.ID; r.URL != "" {
			names = append(names, hostRowOf(r.ID, r.Host))
		}
	}
	hosts, feeds, err := lockAll(tx, names, len(ids), ids...)
	if err != nil {
		return err
	}
	now = tx.Now()
	for _, r := range saved {
		f, was := feeds[r.ID], feeds[r.ID].configured
		if f.known && r.New && !(r.Configured && f.configure(now)) {
			continue // its site may be another one, which is not locked
		}
		if f.known && r.URL != "" {
			if err := f.moveTo(tx, now, hosts[hostRowOf(r.ID, r.Host)], r.Host); err != nil {
				return err
			}
		}
		if !f.known || !r.New {
			restoreOne(tx, now, f, r)
		} else {
			f.restoreConfigured(tx, now, was)
		}
		if r.URL != "" {
			readyWhen(tx, hosts[f.row()])
		}
	}
	return nil
}

// restoreConfigured makes a feed that is known one that is configured: if it was not, as though asked for now.
func (f *feedRow) restoreConfigured(tx Tx, now Time, was bool) {
	if !was {
		f.readBy(nil, now)
	}
	f.classify(now)
	f.save(tx, f.due(), nil, nil)
}

func restoreOne(tx Tx, now Time, f *feedRow, r Saved) {
	if !f.known && r.URL != "" { // what was remembered of it counts
		f.begin(now, tx.Since(), r.URL, r.Hold)
	}
	if last := before(now, r.Polled); last > f.last || r.URL != "" {
		f.last, f.hold = max(f.last, last), r.Hold
	}
	if r.NotBefore > 0 {
		f.earliest = max(f.earliest, now.Add(r.NotBefore))
	}
	f.restoreAskers(now, r.Record)
	if r.URL == "" {
		f.until = max(f.until, now.Add(min(r.In, maxPause)))
		f.save(tx, f.due(), nil, nil)
		return
	}
	f.next = max(now.Add(r.In), f.earliest, f.next)
	f.replaceBody(tx, r.Body)
	f.token = 0
	if r.Polled >= 0 {
		f.token = tx.Tokens(1) // so that no lease from before fits
	}
	f.url, f.state, f.configured, f.host, f.points, f.pollState, f.feedState = r.URL, r.State, false, r.Host, r.Points, r.PollState, r.FeedState
	if r.Configured {
		f.configure(now)
	}
	f.place = End
	f.changed, f.news, f.outcome = now, number(f.version != 0), 0
	f.classify(now)
	f.save(tx, f.due(), append([]byte{}, f.pollState...), append([]byte{}, f.feedState...))
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
func (d *Database) Touch(ctx context.Context, asked map[ID]Asked) error {
	defer d.took("touch", time.Now())
	for ids := range slices.Chunk(sortedIDs(slices.Collect(maps.Keys(asked))), atOnce) {
		err := d.driver.Write(ctx, Work{Late: true, Do: func(tx Tx) error { return touch(tx, ids, asked) }})
		if err != nil {
			return err
		}
	}
	return ctx.Err()
}

// touch records when readers asked. Feeds that sleep are polled again, and others become
// established, so the hosts of those are locked first.
func touch(tx Tx, ids []ID, asked map[ID]Asked) error {
	var hosts []string
	now := tx.Now()
	var known []ID // a row that is added after they are locked is not locked
	err := tx.Query(feedIfKnown, each(ids, idArgument), func(_ int, row Row) error {
		f, err := scanFeed(row)
		if err != nil || f.damaged {
			return err
		}
		known = append(known, f.id)
		if _, moved := f.touch(now, asked); moved {
			hosts = append(hosts, f.row())
		}
		return err
	})
	if err != nil {
		return err
	}
	locked, feeds, err := lockAll(tx, hosts, 0, known...)
	if err != nil {
		return err
	}
	now = tx.Now()
	for _, id := range known {
		f := feeds[id]
		if f == nil || !f.known {
			continue
		}
		established, owner, place := f.established, f.owner, f.place.column()
		due, moved := f.touch(now, asked)
		if locked[f.row()] != nil {
			place = due
		} else if moved { // its next poll decides
			f.established, f.owner = established, owner
		}
		var state []byte
		if change := asked[id].FeedState; change != nil {
			if state = change(f.feedState); state != nil {
				f.feedState, f.changed, f.news, f.outcome = state, now, 0, 0
				tx.Changed(Change{ID: id})
			}
		}
		f.save(tx, place, nil, state)
	}
	for _, h := range locked {
		readyWhen(tx, h)
	}
	return nil
}

// touch records that readers asked for the feed, if they did, and judges it. It returns its
// place among the feeds of its host, and whether that is another one now.
func (f *feedRow) touch(now Time, all map[ID]Asked) (due any, moved bool) {
	rank, before := f.rank(), f.place.column()
	if a, ok := all[f.id]; ok && a.Ago >= 0 {
		asked := now.Add(-a.Ago)
		f.readBy(a.By, asked)
		if a.Own && f.first == Never {
			f.first = asked
		}
		due = f.due()
	} else {
		due = before
	}
	lapsed := f.lapse(now)
	if f.classify(now); lapsed && due != nil {
		due = f.due()
	}
	return due, f.rank() != rank || due != before
}
