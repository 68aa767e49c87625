// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"time"
)

// atOnce is how many feeds one transaction takes at most, but for claims.
const atOnce = 500

// newToken returns a random number above 0, which fits into a column. It names grants and bodies.
func newToken() Token {
	var b [8]byte
	rand.Read(b[:]) //nolint:errcheck // it never fails
	return Token(max(1, binary.BigEndian.Uint64(b[:])>>1))
}

// Claim implements [Store].
func (d *Database) Claim(ctx context.Context, claims []Claim) ([]Lease, error) {
	defer d.took("claim", time.Now())
	return write(ctx, d, Work{}, func(tx Tx) ([]Lease, error) { return claim(tx, claims) })
}

// claim decides on claims, and writes what they change.
func claim(tx Tx, claims []Claim) ([]Lease, error) {
	var names []string
	var added, hops []ID
	for _, c := range claims {
		if names = append(names, c.Host.Site); c.Hop {
			hops = append(hops, c.ID)
		} else {
			added = append(added, c.ID)
		}
	}
	sites, feeds, err := lockAll(tx, names, added, hops)
	if err != nil {
		return nil, err
	}
	before := make(map[ID][]pauseRow)
	for _, id := range added {
		if before[id], err = feeds[id].pausesBefore(tx); err != nil {
			return nil, err
		}
	}
	now, lost := tx.Now(), tx.Lost()
	leases := make([]Lease, len(claims))
	for i, c := range claims {
		f, s := feeds[c.ID], sites[c.Host.Site]
		if c.Hop {
			leases[i] = f.hop(now, c, s)
			continue
		}
		if !f.hasURL {
			f.begin(now, lost, c.URL, c.Hold)
		}
		if f.last < lost { // it may have been polled until then
			f.last, f.next = lost, max(f.next, lost.Add(min(c.Hold, longestNext)))
		}
		if f.earlier {
			f.moveTo(now, c.Host.Site, s, before[c.ID])
		}
		leases[i] = f.claim(now, c, s)
	}
	for _, id := range sortedIDs(added) {
		feeds[id].save(tx, nil, nil)
	}
	saveSites(tx, sites)
	return leases, nil
}

// begin makes a row a feed that has no version. It keeps what is remembered of an earlier one with its URL: its last
// poll, its decision, its pause and who asked. If records were lost at a moment, it may have been polled until then.
func (f *feedRow) begin(now, lost Time, url string, hold time.Duration) {
	before := *f
	*f = newFeed(f.id)
	f.n, f.hasURL, f.url = before.n, true, url
	f.last, f.earliest, f.refused, f.until = max(before.last, lost), before.earliest, before.refused, before.until
	f.owner, f.askers = before.owner, before.askers
	f.next = max(now, f.earliest, f.last.Add(min(hold, longestNext)))
	if before.next != End {
		f.next = max(f.next, before.next)
	}
}

// claim decides on a claim of the feed, whose site is nil if it is not paced.
func (f *feedRow) claim(now Time, c Claim, s *siteRow) (lease Lease) {
	f.site = c.Host.Site
	if c.Configured {
		f.configure(now)
	}
	if c.Own && f.first == Never {
		f.first = now
	}
	f.askedBy(c.By, now.day())
	f.pickOwner(now)
	due := min(f.next, f.pokeAt())
	if c.Floor > 0 { // it brings the poll forward, never back
		due = min(due, max(f.earliest, f.last.Add(c.Floor)))
	}
	at, paused := now, (*pauseRow)(nil)
	if s != nil {
		at, paused = s.nextAllowed(f.version != 0, c.Host.Spacing, now)
	}
	switch {
	case due > now:
		lease.Denied, at = DeniedNotDue, max(due, at)
	case paused != nil:
		lease.Denied, lease.Pause = DeniedPaused, paused.pause(now)
	case at > now:
		lease.Denied = DeniedBusy
	default:
		lease.Poked = f.poke != End
		f.token, f.last, f.next, f.poke = newToken(), now, now.Add(min(c.Hold, longestNext)), End
		if len(c.By) > 0 { // a minute ago at most: Touch says when
			f.asked = max(f.asked, now)
		}
		if s != nil {
			s.ask(now)
		}
	}
	if lease.Denied != "" {
		lease.Wait = at.Sub(now)
	}
	lease.Record = f.record(now)
	return lease
}

// hop decides whether a redirect to the URL of the feed may be followed. f is nil if nothing is known of the URL.
func (f *feedRow) hop(now Time, c Claim, s *siteRow) (lease Lease) {
	at, paused := now, (*pauseRow)(nil)
	if s != nil {
		at, paused = s.nextAllowed(!c.New, c.Host.Spacing, now)
	}
	if paused != nil {
		lease.Denied, lease.Pause = DeniedPaused, paused.pause(now)
	} else if at > now {
		lease.Denied = DeniedBusy
	}
	if f != nil && f.earliest > now { // the URL has a pause of its own
		at = max(at, f.earliest)
		if lease.Denied = DeniedPaused; f.earliest.Sub(now) > lease.Pause.For {
			lease.Pause = Pause{For: f.earliest.Sub(now), URL: c.URL}
		}
	}
	if lease.Denied != "" {
		lease.Wait = at.Sub(now)
	} else if s != nil {
		s.ask(now)
	}
	return lease
}
