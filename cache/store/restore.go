// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package store

import "context"

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
	var ids []ID
	for _, r := range saved {
		if r.Pause != nil {
			restorePause(tx, now, *r.Pause)
		} else {
			ids = append(ids, r.ID)
		}
	}
	_, feeds, err := lockAll(tx, nil, ids, nil)
	if err != nil {
		return err
	}
	now = tx.Now()
	for _, r := range saved {
		f := feeds[r.ID]
		switch {
		case r.Pause != nil:
			continue
		case f.hasURL && r.New:
			if r.Configured {
				f.restoreConfigured(now)
				f.save(tx, nil, nil)
			}
			continue
		}
		old := *f
		if f.restore(now, tx.Lost(), r); r.URL == "" {
			f.save(tx, nil, nil)
			continue
		}
		f.replaceBody(tx, &old, r.Body)
		f.save(tx, append([]byte{}, f.pollState...), append([]byte{}, f.feedState...))
		tx.Changed(Change{ID: r.ID, Version: uint64(f.version)})
	}
	return nil
}

// restoreConfigured makes a feed that is known one that is configured: if it was not, as though asked for now.
func (f *feedRow) restoreConfigured(now Time) {
	if !f.configured(now) {
		f.asked = now
	}
	f.configure(now)
	f.pickOwner(now)
}

// restore makes the row that of a record of an export. The row keeps what it remembers.
func (f *feedRow) restore(now, lost Time, r Saved) {
	if !f.hasURL && r.URL != "" {
		f.begin(now, lost, r.URL, r.Hold)
	}
	f.last = max(f.last, before(now, r.Polled))
	f.asked = max(f.asked, before(now, r.Asked))
	if r.NotBefore > 0 {
		f.earliest = max(f.earliest, now.Add(min(r.NotBefore, maxPause)))
	}
	if first := before(now, r.First); first != Never && (f.first == Never || first < f.first) {
		f.first = first
	}
	if f.owner == 0 {
		f.owner = r.Owner.ofNow()
	}
	for _, a := range r.Askers {
		f.askedBy([]Owner{a.Owner.ofNow()}, now.day()-a.Ago)
	}
	if r.URL == "" {
		if f.hasURL {
			f.next = max(f.next, f.earliest)
		} else {
			f.decided(now.Add(min(r.In, maxPause)))
			f.until = max(f.until, f.remembered())
		}
		return
	}
	f.next = max(now.in(r.In), f.earliest, f.next)
	f.setBody(r.Body)
	f.token = 0
	if r.Polled >= 0 {
		f.token = newToken() // so that no lease from before fits
	}
	if f.state, f.points, f.pollState, f.feedState = r.State, r.Points, r.PollState, r.FeedState; !f.earlier {
		f.site = r.Site // otherwise a claim makes it the row of a site
	}
	if r.Configured {
		f.configure(now)
	}
	f.changed, f.news, f.outcome = now, number(f.version != 0), 0
	f.pickOwner(now)
}
