// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"slices"
	"time"
)

// atOnce is how many feeds one transaction takes at most.
const atOnce = 500

// usualHold is for feeds that were stored without one.
const usualHold = time.Hour

// Claim implements [Store]. If there are so many claims that they take several
// transactions and one fails, what the others have granted is not used.
func (d *Database) Claim(ctx context.Context, claims []Claim) ([]Lease, error) {
	defer d.took("claim", time.Now())
	leases := make([]Lease, 0, len(claims))
	for some := range slices.Chunk(claims, atOnce) {
		answers, err := write(ctx, d, Work{}, func(tx Tx) ([]Lease, error) { return claimNamed(tx, some) })
		if err != nil {
			return nil, err
		}
		leases = append(leases, answers...)
	}
	return leases, ctx.Err()
}

func claimNamed(tx Tx, claims []Claim) ([]Lease, error) {
	domains := make(map[string]string, len(claims))
	ids := make([]ID, len(claims))
	for i, c := range claims {
		ids[i] = c.ID
		domains[hostRowOf(c.ID, c.Host)] = c.Host.Domain
	}
	hosts, feeds, err := lockAll(tx, domains, ids)
	if err != nil {
		return nil, err
	}
	now := tx.Now()
	token := tx.Tokens(len(claims))
	touched := make(map[string]bool)
	leases := make([]Lease, len(claims))
	for i, c := range claims {
		f, h := feeds[c.ID], hosts[hostRowOf(c.ID, c.Host)]
		lease, changed, err := claimOne(tx, now, c, f, h, token)
		if err != nil {
			return nil, err
		}
		token++
		if changed {
			touched[f.row()] = true
		}
		leases[i] = lease
		leases[i].Record = f.record(now)
	}
	for name := range touched {
		readyWhen(tx, name)
	}
	return leases, nil
}

// claimOne decides on one claim, and writes what it changes.
func claimOne(tx Tx, now Time, c Claim, f *feedRow, h *hostRow, token Token) (lease Lease, changed bool, err error) {
	since := tx.Since()
	changed = f.mended
	if !f.known {
		f.begin(now, since, c.URL, c.Hold)
		changed = true
	}
	f.assumePolled(since, c.Hold)
	if f.configured != c.Configured || f.host != c.Host {
		f.configured, f.host, changed = c.Configured, c.Host, true
	}
	f.askedBy(c.By, now.day())
	f.classify(now)
	due := f.next
	if c.Floor > 0 { // it brings the poll forward, never back
		due = min(due, max(f.earliest, max(f.last, f.hopped, since).Add(c.Floor)))
	}
	denied, until, why := h.deny(now, since, c.Host.Spacing)
	if due > now {
		denied, until, why = DeniedNotDue, max(due, until), ""
	}
	if denied == "" && c.Queue {
		other, err := h.before(tx, now, f, c.Prefetch)
		if err != nil {
			return lease, false, err
		}
		if other {
			denied, until = DeniedBusy, now.Add(max(c.Host.Spacing, time.Second))
		}
	}
	if lease.Denied = denied; denied == "" {
		f.grant(now, token, c.Hold)
		h.start(tx, now, c.Host, f.class(), f.owner)
		changed = true
	} else {
		lease.Wait, lease.Why = until.Sub(now), why
	}
	if denied == DeniedBusy && c.Queue && !f.waits() {
		f.place, changed = now-ahead, true
	}
	if changed {
		f.save(tx, f.due(), nil, nil)
	}
	return lease, changed, nil
}

// begin makes a row a feed that has no version. It keeps the last poll and the pause of an
// earlier one with its URL.
func (f *feedRow) begin(now, since Time, url string, hold time.Duration) {
	known := *f
	*f = newFeed(f.id)
	f.n, f.known, f.url, f.hold = known.n, true, url, hold
	f.last, f.hopped, f.earliest, f.until = known.last, known.hopped, known.earliest, known.until
	f.askers = known.askers
	if known.asked != Never {
		f.seen = known.seen << min(max(0, now.day()-known.asked.day()), 32) & (1<<32 - 1)
	}
	f.next = max(now, f.earliest)
	if f.last != Never {
		f.next = max(f.next, f.last.Add(hold))
	}
	if since != Never { // its record may have been lost, with its last poll
		f.next = max(f.next, since.Add(hold))
	}
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
func (d *Database) Hop(ctx context.Context, hop Hop) (Passage, error) {
	return write(ctx, d, Work{}, func(tx Tx) (Passage, error) { return grantHop(tx, hop) })
}

func grantHop(tx Tx, hop Hop) (Passage, error) {
	name := hostRowOf(hop.ID, hop.Host)
	hosts, feeds, err := lockAll(tx, map[string]string{name: hop.Host.Domain}, []ID{hop.ID})
	if err != nil {
		return Passage{}, err
	}
	f, h, now, since := feeds[hop.ID], hosts[name], tx.Now(), tx.Since()
	if f.known && hop.Yield && f.next != End {
		return Passage{Denied: DeniedTaken}, nil
	}
	class, owner, err := placeOf(tx, hop.From)
	if err != nil {
		return Passage{}, err
	}
	denied, until, _ := h.deny(now, since, hop.Host.Spacing)
	if free := max(f.last, f.hopped, since).Add(hop.Floor); free > now {
		denied, until = DeniedNotDue, max(free, until)
	}
	if denied != "" {
		return Passage{Denied: denied, Wait: until.Sub(now)}, nil
	}
	if class == 1 && h.turn == 0 {
		upTo := Time(0)
		if hop.Prefetch {
			upTo = now
		}
		if first, err := inTurn(tx, []*hostRow{h}, upTo, true); err != nil || first[0] != nil && !first[0].damaged {
			return Passage{Denied: DeniedBusy, Wait: max(hop.Host.Spacing, time.Second)}, err
		}
	}
	h.start(tx, now, hop.Host, class, owner)
	floor := now.Add(hop.Floor)
	f.hopped, f.until = now, max(f.until, floor)
	if f.known && f.next < floor {
		f.next, f.changed, f.news, f.outcome = floor, now, 0, 0
		f.place = max(f.place, floor) // it may sleep for longer
		tx.Changed(Change{ID: hop.ID})
	}
	f.save(tx, f.place.column(), nil, nil)
	return Passage{}, nil
}

// placeOf returns the class and owner of a feed; 0 is none.
func placeOf(tx Tx, id ID) (class int64, owner Owner, err error) {
	class = 1
	var number int64
	err = tx.Query(`select not_established, owner from feed where id = ?1`, one(id[:]), func(_ int, row Row) error {
		return row.Scan(&class, &number)
	})
	return class, Owner(number), err
}
