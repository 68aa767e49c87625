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
	hosts, feeds, err := lockAll(tx, []string{name}, 1, c.ID)
	if err != nil {
		return Lease{}, err
	}
	f, h, now, since := feeds[c.ID], hosts[name], tx.Now(), tx.Since()
	changed := f.mended || f.earlier || !f.known || f.host != c.Host
	if !f.known {
		f.begin(now, since, c.URL, c.Hold)
	}
	f.assumePolled(since, c.Hold)
	if err := f.moveTo(tx, now, h, c.Host); err != nil {
		return Lease{}, err
	}
	if c.Configured && f.configure(now) {
		changed = true
	}
	if c.Own && f.first == Never {
		f.first, changed = now, true
	}
	f.askedBy(c.By, now.day())
	f.classify(now)
	due := f.next
	if c.Floor > 0 { // it brings the poll forward, never back
		due = min(due, f.mayAsk(c.Floor, since))
	}
	at, paused := h.mayAsk(f.version != 0, c.Host.Spacing, now, since)
	switch {
	case due > now:
		lease.Denied, at = DeniedNotDue, max(due, at)
	case paused != nil:
		lease.Denied, lease.Pause = DeniedPaused, paused.shown(now)
	case at > now:
		lease.Denied = DeniedBusy
	default:
		if !c.Queue {
			break
		}
		other, err := h.before(tx, now, f, c.Prefetch)
		if err != nil {
			return Lease{}, err
		}
		if other {
			lease.Denied, at = DeniedBusy, now.Add(max(c.Host.Spacing, time.Second))
		}
	}
	if lease.Denied == "" {
		f.grant(now, tx.Tokens(1), c.Hold)
		h.start(tx, now, f.rank(), f.owner)
		changed = true
	} else {
		lease.Wait = at.Sub(now)
	}
	if lease.Denied == DeniedBusy && c.Queue {
		if f.next > now { // a poll by hand: from now on it is due
			f.next, changed = now, true
		}
		if !f.waits() {
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

// begin makes a row a feed that has no version. It keeps the last poll and the pause of an
// earlier one with its URL.
func (f *feedRow) begin(now, since Time, url string, hold time.Duration) {
	known := *f
	*f = newFeed(f.id)
	f.n, f.known, f.url, f.hold = known.n, true, url, hold
	f.last, f.earliest, f.refused, f.until = known.last, known.earliest, known.refused, known.until
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
	f.token, f.last, f.hold, f.next, f.place = token, now, hold, now.Add(hold), End
	f.classify(now)
}

// Hop implements [Store].
func (d *Database) Hop(ctx context.Context, hop Hop) (wait time.Duration, err error) {
	return write(ctx, d, Work{}, func(tx Tx) (time.Duration, error) { return grantHop(tx, hop) })
}

func grantHop(tx Tx, hop Hop) (wait time.Duration, err error) {
	if hop.Host.Site == "" {
		return 0, nil
	}
	hosts, feeds, err := lockAll(tx, []string{hop.Host.Site}, 0, hop.To)
	if err != nil {
		return 0, err
	}
	h, now := hosts[hop.Host.Site], tx.Now()
	at, _ := h.mayAsk(!hop.New, hop.Host.Spacing, now, tx.Since())
	if to := feeds[hop.To]; to != nil {
		at = max(at, to.earliest)
	}
	if at > now {
		return at.Sub(now), nil
	}
	h.free = now
	tx.Exec(`update host set free = ?2 where name = ?1`, h.name, int64(h.free))
	readyWhen(tx, h)
	return 0, nil
}
