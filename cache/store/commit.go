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

// longestJitter is longer than what jitter adds to the interval of a feed.
const longestJitter = time.Hour

// Commit implements [Store].
func (d *Database) Commit(ctx context.Context, o Outcome) error {
	defer d.took("commit", time.Now())
	if o.Body != nil && o.Body.Version == 0 {
		return errors.New("store: a body needs a version")
	}
	// The claim keeps the feed from being polled too early if this is lost, unless the origin
	// has asked for more than the claim holds for.
	soon := o.NotBefore == 0 && (o.Claimed == 0 || o.In <= o.Claimed+longestJitter)
	work := Work{Late: o.Body == nil && !o.Withdraw && len(o.Pauses)+len(o.Hops) == 0 && soon}
	if o.Body != nil {
		work.Bytes = len(o.Body.Data)
	}
	refused, err := write(ctx, d, work, func(tx Tx) (error, error) { return d.commit(tx, o) })
	if err == nil {
		err = refused
	}
	return err
}

// commit stores an outcome. It returns why it or its body was refused, which does not undo the transaction.
func (d *Database) commit(tx Tx, o Outcome) (refused, err error) {
	names := slices.Clone(o.Good)
	for _, p := range o.Pauses {
		names = append(names, p.Site)
	}
	hops := slices.Collect(maps.Keys(o.Hops))
	sites, feeds, err := lockAll(tx, names, hops, []ID{o.ID})
	if err != nil {
		return nil, err
	}
	f := feeds[o.ID]
	if !f.holds(o.Token) {
		return ErrFenced, nil
	}
	if o.Body != nil && f.version == 0 && f.owner.Kind() != KindOperator && d.driver.Left() != Unlimited {
		o.Body, refused = nil, ErrShort
	}
	now, old := tx.Now(), *f
	change := f.commit(now, o, sites, feeds)
	f.replaceBody(tx, &old, o.Body)
	for _, id := range hops {
		feeds[id].save(tx, nil, nil)
	}
	f.save(tx, o.PollState, o.FeedState)
	saveSites(tx, sites)
	tx.Changed(change)
	return refused, nil
}

// holds reports whether a token is that of the last grant of the feed. f is nil if nothing is known of it. A feed that was
// forgotten has no token.
func (f *feedRow) holds(token Token) bool { return f != nil && f.token == token && token != 0 }

// commit records an outcome in the rows that are locked for it.
func (f *feedRow) commit(now Time, o Outcome, sites map[string]*siteRow, feeds map[ID]*feedRow) Change {
	f.site = o.Site
	f.pickOwner(now)
	for _, site := range o.Good {
		if s := sites[site]; s != nil {
			s.answeredWell(now)
		}
	}
	f.pause(now, sites, o.Pauses)
	for id, length := range o.Hops {
		feeds[id].leaveAlone(now, length)
	}
	if o.NotBefore > 0 {
		f.earliest = max(f.earliest, now.Add(min(o.NotBefore, maxPause)))
	}
	f.next = max(now.in(o.In), f.earliest)
	if o.State != "" {
		f.state = o.State
	}
	if f.state == StateFailing && f.poke < f.next { // it has its backoff
		f.poke = f.next
	}
	change := Change{ID: o.ID, Token: o.Token}
	if o.Body != nil || o.Withdraw {
		f.setBody(o.Body)
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
	return change
}

// in returns the moment of a decision.
func (t Time) in(d time.Duration) Time {
	if d == Ended {
		return End
	}
	return t.Add(min(max(0, d), longestNext))
}

// leaveAlone has the URL of a feed left alone for some time: a redirect led there, and it asked for that. If
// there is no feed, its row is one of times alone.
func (f *feedRow) leaveAlone(now Time, length time.Duration) {
	f.earliest = max(f.earliest, now.Add(min(length, maxPause)))
	if f.hasURL {
		f.next = max(f.next, f.earliest)
	} else {
		f.until = max(f.until, f.earliest)
	}
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
