// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"time"
)

// atOnce is how many feeds one transaction takes at most.
const atOnce = 500

// usualHold is for feeds that were stored without one.
const usualHold = time.Hour

// Claim implements [Store].
func (d *Database) Claim(ctx context.Context, c Claim) (Lease, error) {
	defer d.took("claim", time.Now())
	return write(ctx, d, Work{}, func(tx Tx) (Lease, error) { return claim(tx, c) })
}

// claim decides on a claim, and writes what it changes.
func claim(tx Tx, c Claim) (lease Lease, err error) {
	name := hostRowOf(c.ID, c.Host)
	hosts, feeds, err := lockAll(tx, map[string]string{name: c.Host.Domain}, 1, c.ID)
	if err != nil {
		return Lease{}, err
	}
	f, h, now, since := feeds[c.ID], hosts[name], tx.Now(), tx.Since()
	changed := f.mended || !f.known || f.host != c.Host
	if !f.known {
		f.begin(now, since, c.URL, c.Hold)
	}
	f.assumePolled(since, c.Hold)
	f.host = c.Host
	if c.Configured && f.configure(now) {
		changed = true
	}
	f.askedBy(c.By, now.day())
	f.classify(now)
	due := f.next
	if c.Floor > 0 { // it brings the poll forward, never back
		due = min(due, f.mayAsk(c.Floor, since))
	}
	at, paused := h.mayAsk(f.rank(), c.ByHand, c.Host.Spacing, now, since)
	switch {
	case due > now:
		lease.Denied, at = DeniedNotDue, max(due, at)
	case paused != nil:
		lease.Denied, lease.Pause = DeniedPaused, paused.pause(now)
	case at > now:
		lease.Denied = DeniedBusy
	default:
		reserved := f.moment
		if at, err = f.takeTurn(tx, now, h, c); err != nil {
			return Lease{}, err
		}
		if at > now {
			lease.Denied = DeniedBusy
		}
		changed = changed || f.moment != reserved
	}
	if lease.Denied == "" {
		now = tx.Now() // to lock the domain may have taken a while
		f.grant(now, tx.Tokens(1), c.Hold)
		h.start(tx, now, c.Host, f.rank(), f.owner)
		changed = true
	} else {
		lease.Wait = at.Sub(now)
	}
	if lease.Denied == DeniedBusy && c.Queue {
		if f.next > now { // a poll by hand: from now on it is due
			f.next, changed = now, true
		}
		if !f.waits() && f.moment <= now {
			f.place, changed = now-ahead, true
		}
	}
	if changed {
		f.save(tx, f.due(), nil, nil)
		readyWhen(tx, h)
	}
	lease.Record = f.record(now)
	return lease, nil
}

// takeTurn returns when a feed has its turn among those of its host and domain: now, or when it may be
// asked for again.
func (f *feedRow) takeTurn(tx Tx, now Time, h *hostRow, c Claim) (Time, error) {
	if c.Queue {
		if other, err := h.before(tx, now, f, c.Prefetch); err != nil || other {
			return now.Add(max(c.Host.Spacing, time.Second)), err
		}
	}
	if err := space(tx, now, f.spaced(c.Host, f.rank(), false)); err != nil || f.moment <= now {
		return now, err
	}
	f.place = End
	return f.moment, nil
}

// begin makes a row a feed that has no version. It keeps the last poll and the pause of an
// earlier one with its URL.
func (f *feedRow) begin(now, since Time, url string, hold time.Duration) {
	known := *f
	*f = newFeed(f.id)
	f.n, f.known, f.url, f.hold = known.n, true, url, hold
	f.last, f.hopped, f.earliest, f.until, f.waiting = known.last, known.hopped, known.earliest, known.until, known.waiting
	f.askers = known.askers
	if known.asked != Never {
		f.seen = shifted(known.seen, known.asked, max(now, known.asked))
	}
	// The decision of an earlier one counts. If a server is lost, so may its record be, with its last poll.
	f.next = max(now, f.earliest, f.last.Add(max(hold, known.hold)), since.Add(hold))
}

// assumePolled takes a feed as polled if a server that is lost may have granted its poll.
func (f *feedRow) assumePolled(since Time, hold time.Duration) (assumed bool) {
	if since == Never || f.next > since {
		return false
	}
	f.next = max(f.next, since.Add(max(f.hold, hold)))
	return true
}

// grant moves a feed as a poll does that starts now.
func (f *feedRow) grant(now Time, token Token, hold time.Duration) {
	f.token, f.last, f.hold, f.next, f.place, f.moment = token, now, hold, now.Add(hold), End, Never
	f.classify(now)
}

// Hop implements [Store].
func (d *Database) Hop(ctx context.Context, hop Hop) (Passage, error) {
	return write(ctx, d, Work{}, func(tx Tx) (Passage, error) { return grantHop(tx, hop) })
}

func grantHop(tx Tx, hop Hop) (Passage, error) {
	name := hostRowOf(hop.ID, hop.Host)
	hosts, feeds, err := lockAll(tx, map[string]string{name: hop.Host.Domain}, 1, hop.ID, hop.From)
	if err != nil {
		return Passage{}, err
	}
	f, h, now := feeds[hop.ID], hosts[name], tx.Now()
	from := feeds[hop.From]
	if from == nil || !from.known { // it has been forgotten since its poll began
		unknown := newFeed(hop.From)
		from = &unknown
	}
	from.classify(now)
	waiting, moment := f.waiting, f.moment
	at, denied, err := mayHop(tx, now, hop, f, from, h)
	if err != nil {
		return Passage{}, err
	}
	if denied != "" {
		if f.waiting != waiting || f.moment != moment {
			f.save(tx, f.place.column(), nil, nil)
		}
		return Passage{Denied: denied, Wait: at.Sub(now)}, nil
	}
	now = tx.Now() // to lock the domain may have taken a while
	h.start(tx, now, hop.Host, from.rank(), from.owner)
	floor := now.Add(hop.Floor)
	f.hopped, f.until, f.waiting, f.moment = now, max(f.until, floor), 0, Never
	if f.known && f.next < floor {
		f.next, f.changed, f.news, f.outcome = floor, now, 0, 0
		f.place = End // it is due again by its next poll alone
		tx.Changed(Change{ID: hop.ID})
	}
	from.followed = now
	f.save(tx, f.due(), nil, nil)
	if from.known && from != f {
		from.save(tx, from.place.column(), nil, nil)
	}
	readyWhen(tx, h)
	return Passage{}, nil
}

// mayHop decides whether a redirect of a feed may be followed to the URL of another. If not, it returns
// until when, and the row of the URL changes by who waits for it.
func mayHop(tx Tx, now Time, hop Hop, f, from *feedRow, h *hostRow) (at Time, denied Refusal, err error) {
	rank := from.rank()
	free, paused := h.mayAsk(rank, false, hop.Host.Spacing, now, tx.Since())
	if first := hop.First && from.followed == Never && rank <= RankNamedNew && paused == nil; !first || f.earliest > now {
		at = f.mayAsk(hop.Floor, tx.Since())
		if f.known && hop.Yield && f.next != End {
			return max(f.next, at, free), DeniedTaken, nil
		}
		place := from.placeToFollow()
		if f.waiting != 0 && f.waiting < place { // another one goes first, if it comes
			at = at.Add(hop.Floor / 4)
		}
		if at > now {
			if f.waiting == 0 || place < f.waiting {
				f.waiting = place
			}
			return max(at, free), DeniedNotDue, nil
		}
	}
	switch {
	case paused != nil:
		return free, DeniedPaused, nil
	case free > now:
		return free, DeniedBusy, nil
	}
	if mine, err := h.turnOf(tx, now, rank, hop.Prefetch); err != nil || !mine {
		return now.Add(max(hop.Host.Spacing, time.Second)), DeniedBusy, err
	}
	if from.host.Name == hop.Host.Name {
		return now, "", nil
	}
	if err := space(tx, now, f.spaced(hop.Host, rank, true)); err != nil || f.moment <= now {
		return now, "", err
	}
	return f.moment, DeniedBusy, nil
}

// placeToFollow orders feeds that wait to follow a redirect to the same URL: those of a better rank first, of
// these the one that followed one longest ago.
func (f *feedRow) placeToFollow() int64 {
	return int64(f.rank())<<40 | int64(max(0, f.followed)/Time(time.Second))
}
