// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"slices"
	"time"

	"golang.org/x/time/rate"

	"github.com/feedpollard/pollard/cache/feedstate"
	"github.com/feedpollard/pollard/cache/store"
)

// probeEvery is how often one feed is tried while no host can be reached.
const probeEvery = 15 * time.Second

const (
	// dueSoon is how soon a feed may be due before the store is asked again what is: it does
	// not know beforehand what a poll will come to.
	dueSoon = time.Minute
	// dueEvery is how often the store is asked what is due at the least: another node may have
	// changed it.
	dueEvery = 10 * time.Minute
)

func (c *Cache) prefetch(ctx context.Context) {
	var p pace
	for ctx.Err() == nil {
		_ = c.recordConfigured(ctx) // if it fails, it is tried again
		if !c.settings.Load().Prefetch {
			c.waitForChange(ctx, dueEvery)
			continue
		}
		wait, more := c.claimDue(ctx, &p)
		if more {
			sleep(ctx, wait)
		} else {
			c.waitForChange(ctx, min(max(wait, prefetchTick), dueEvery))
		}
	}
}

// claimDue claims feeds that are due and starts their polls. It returns when to look
// again, and whether that holds even if something changes before.
func (c *Cache) claimDue(ctx context.Context, p *pace) (wait time.Duration, more bool) {
	// If feeds of some rank cannot have a place, only those of ranks 1 and 2 are claimed. All that are claimed may
	// be of one owner, which has half of the places: a claim without a place would have to be returned.
	limit := int(c.inFlight.free(store.RankPublicNew)+1) / 2
	short := limit == 0
	if short {
		limit = int(c.inFlight.free(store.RankOperator))
	}
	if limit == 0 {
		return prefetchTick, true
	}
	if !c.mayClaim() {
		return time.Second, true
	}
	places := limit
	_, offline := c.offline.is()
	switch {
	case offline:
		limit, wait, more = 1, probeEvery, true
	case c.storeAway.text() != "":
		limit = min(limit, minRate) // this claim finds out whether it still is
	default:
		var overdue int64
		if p.behind { // it is counted only then, as that takes a walk of all feeds
			if totals, err := c.store.Totals(ctx); err == nil { // otherwise the claim fails as well
				overdue = totals.Overdue
			}
		}
		if limit = p.tick(c.elapsed(), overdue, limit); limit == 0 {
			return prefetchTick, true
		}
	}
	busy := append(c.origin.Busy(), c.hops.first(c.elapsed())...)
	asked, answered := c.elapsed(), c.timeClaim()
	leases, next, err := c.store.ClaimDue(ctx, store.DueQuery{Limit: limit, Except: busy, Idle: c.settings.Load().IdleAfter, Short: short})
	answered()
	if err != nil {
		if ctx.Err() == nil {
			c.claimFailed(err)
		}
		return time.Second, true
	}
	if len(leases) > 0 {
		c.storeAnswered()
	} else { // nothing was written: the next claim finds out
		c.storeAway.next.Store(int64(c.elapsed()))
	}
	p.behind = len(leases) == limit
	c.checkClock() // the store has
	for i := range leases {
		c.pollLease(&leases[i], asked)
	}
	switch {
	case more:
		return wait, true
	case p.behind && limit == places:
		return prefetchTick / 4, true // polls that end soon leave places for more
	case p.behind:
		return prefetchTick, true
	}
	if len(busy) > 0 {
		next = min(next, time.Second) // nothing announces that they are free again
	}
	return next, false
}

// pollLease makes the poll of a feed that has been claimed.
func (c *Cache) pollLease(lease *store.Lease, leased time.Duration) {
	f := c.InMemory(lease.URL)
	if f == nil {
		f = newFeed(c, lease.URL, &feedstate.State{Due: c.elapsed()})
		s := f.stateFrom(lease.Record, f.state.Load())
		s.Due, s.Granted = c.elapsed(), feedstate.NeverGranted // the grant before this one is not known
		f.publish(s)
		f = c.admit(f)
	}
	if host := c.origin.Host(f.key.URL()); !f.key.Shielded() && host.Site != lease.Host.Site { // its row is of version 2 of the tables, or rules have changed
		lease.Host = host
		c.returnLease(lease)
		return
	}
	o := offer{lease, leased}
	if p, joined := f.start(pollRequest{offer: o}); p == nil || joined && !f.give(p, o) {
		c.returnLease(lease) // the cache is closing, or a poll has just been made
	}
}

// returnLease returns a claim that is not used: the feed is still due.
func (c *Cache) returnLease(lease *store.Lease) {
	s := feedstate.Of(lease.Record, c.elapsed())
	o := store.Outcome{
		ID: lease.ID, Token: lease.Token, Hold: lease.Hold, State: s.StoreState(c.isConfigured(lease.URL)), Host: lease.Host,
	}
	if err := c.store.Commit(context.WithoutCancel(c.life), o); err != nil {
		c.log().Warn("claim could not be returned", c.urlField(lease.URL), errField(err))
	}
}

// recordConfigured records in the store which feeds are configured: it makes records of those that have none
// yet, so that they are due. Only what differs is written. A second call waits for the end of the first.
func (c *Cache) recordConfigured(ctx context.Context) error {
	if err := c.recording.Acquire(ctx, 1); err != nil {
		return err
	}
	defer c.recording.Release(1)
	s := c.settings.Load()
	defer s.tried()
	if s.recorded.Swap(true) { // first, so that a feed that is forgotten meanwhile is noticed
		return nil
	}
	known, err := c.store.Configured(ctx)
	var missing []store.Saved
	for _, key := range s.Feeds {
		id := store.IDOf(key)
		if _, found := slices.BinarySearchFunc(known, id, store.ID.Compare); found || feedstate.Shielded(key) {
			continue
		}
		k := feedstate.ParseKey(key)
		missing = append(missing, store.Saved{New: true, Record: store.Record{
			ID: id, URL: key, Hold: (&feedstate.State{}).LeaseTime(s.Rules(k)), Polled: -1, // as though asked for now: idle_after counts from here
			State: store.StateCold, Configured: true, Host: c.origin.Host(k.URL()),
		}})
	}
	if err == nil && len(missing) > 0 {
		err = c.store.Restore(ctx, missing)
	}
	if err != nil {
		s.recorded.Store(false)
	}
	return err
}

// listTimeout is how long a list waits for the record of configured feeds: a store may hang.
const listTimeout = time.Second

// awaitConfigured waits until recordConfigured was tried once with the settings: a list has the feeds of a
// configuration as soon as that is in force.
func (c *Cache) awaitConfigured(ctx context.Context) {
	select {
	case <-c.settings.Load().listable:
	case <-time.After(listTimeout):
	case <-ctx.Done():
	case <-c.open.Done():
	}
}

// waitForChange waits until something has changed, but not for longer than d.
func (c *Cache) waitForChange(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-c.changed:
	case <-ctx.Done():
	}
}

const (
	// prefetchTick is how often due feeds are claimed while there are any.
	prefetchTick = 125 * time.Millisecond
	// backlog is in what time feeds that are overdue are worked off, as far as the
	// bound of polls in flight allows: after a restart no resolver or uplink sees a burst.
	backlog = 2 * time.Minute
	// minRate is the least rate of it, in polls a second.
	minRate = 8
	// longestTick bounds for how much time polls may start at once: what the store or the
	// machine has held up is not made up for in a burst.
	longestTick = 4 * prefetchTick
)

// pace decides how many polls may start with a tick: a share of those that are overdue, if there are places for them.
type pace struct {
	behind bool // the last claim has found as many as might start
	starts rate.Limiter
}

func (p *pace) tick(now time.Duration, overdue int64, places int) int {
	at, most := time.Unix(0, int64(now)), max(minRate, float64(overdue)/backlog.Seconds())
	p.starts.SetLimitAt(at, rate.Limit(most))
	p.starts.SetBurstAt(at, max(1, int(most*longestTick.Seconds())))
	n := min(int(p.starts.TokensAt(at)), places)
	p.starts.AllowN(at, n)
	return n
}
