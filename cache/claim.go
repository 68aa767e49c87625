// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"slices"
	"time"

	"github.com/feedpollard/pollard/cache/feedstate"
	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/policy"
)

// hopFirst is how long a poll waits that lets a redirect go first.
const hopFirst = time.Second

// offerTimeout is how long a poll that another claim was granted waits for that one's lease.
const offerTimeout = time.Second

// grant is the right to make a poll, which the store has durably given.
type grant struct {
	lease *store.Lease
	slot  policy.Slot
	free  func() // the place among the polls in flight
}

func (g *grant) release() {
	g.slot.Release()
	g.free()
}

// claim gets the right to make a poll, unless the poll brings its lease. It returns nil if the
// poll must not be made. The order in which feeds of a host are polled is the store's: a poll
// asks again when its host is free, or is granted by the background's claim. It takes its place
// among those in flight before it asks, as a poll that is claimed starts at once, and gives it
// back while it waits.
func (f *Feed) claim(life context.Context, origin Origin, e pollRequest, rules policy.Rules) *grant {
	waits := f.cache.waiting.try(f.share(), 1)
	if waits == nil {
		f.cancelPoll(life, e, retry, policy.HintPolls)
		return nil
	}
	defer waits()
	ctx, cancel := context.WithTimeout(life, maxQueued)
	defer cancel()
	defer f.endQueue(e.poll)
	for {
		granted, again := f.tryClaim(ctx, life, origin, e, rules)
		if granted != nil || again <= 0 || again > maxQueued {
			return granted
		}
		e.offer = offer{}
		select {
		case <-time.After(again):
		case e.offer = <-e.poll.offers:
		case <-ctx.Done():
			f.deferPoll(retry, policy.HintHostSlot, false)
			return nil
		}
	}
}

// tryClaim claims a poll and does not wait. Without a grant it returns when to try again; 0: the poll must not
// be made.
func (f *Feed) tryClaim(ctx, life context.Context, origin Origin, e pollRequest, rules policy.Rules) (_ *grant, again time.Duration) {
	granted, again := f.enter(ctx, origin, e)
	if granted == nil {
		return nil, again
	}
	if e.lease == nil {
		select {
		case e.offer = <-e.poll.offers: // the background's claim has been granted the poll
		default:
		}
	}
	if host := origin.Host(f.key.URL()); e.lease == nil && slices.Contains(f.cache.hops.first(f.cache.elapsed()), host.Site) {
		again = hopFirst
	} else if granted.lease = e.lease; e.lease == nil {
		granted.lease, again = f.askStore(life, e, origin.Host(f.key.URL()), rules)
	} else if f.cache.checkClock(); f.cache.elapsed()-e.leased > feedstate.Grace { // another node may have the lease by now
		f.cache.returnLease(e.lease)
		granted.lease, again = nil, time.Millisecond
	}
	if granted.lease != nil {
		// A poll by hand takes its turn at the address when it is made: it leaves the time of the next one as it is.
		if e.floor == 0 {
			again = granted.slot.Turn(ctx, standing(granted.lease.Record))
		}
		if again <= 0 {
			return granted, 0
		}
		// It gives its claim back, and asks again at the moment that it has reserved.
		f.cancelPoll(life, pollRequest{offer: offer{lease: granted.lease}}, again, policy.HintAddress)
	}
	granted.release()
	return nil, again
}

// standing is that of a feed at an address.
func standing(r store.Record) policy.Standing {
	switch {
	case r.Rank == store.RankPublicNew:
		return policy.StandingStranger
	case r.Version == 0:
		return policy.StandingNew
	}
	return policy.StandingKnown
}

// give gives a lease to the feed's poll if that waits for its claim. It reports whether it does.
func (f *Feed) give(p *inFlight, o offer) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if p.queueEnded {
		return false
	}
	select {
	case p.offers <- o:
		return true
	default:
		return false
	}
}

// endQueue returns the lease that was offered to a poll that does not wait any more.
func (f *Feed) endQueue(p *inFlight) {
	f.mu.Lock()
	p.queueEnded = true
	f.mu.Unlock()
	select {
	case o := <-p.offers:
		f.cache.returnLease(o.lease)
	default:
	}
}

// enter takes a place among the requests in flight of the feed's host, and among the polls in flight. If it
// gets none, it returns when to try again; 0: the poll has ended, and given its lease back if it has one.
func (f *Feed) enter(ctx context.Context, origin Origin, e pollRequest) (_ *grant, again time.Duration) {
	within := ctx
	if e.lease != nil {
		f.cache.checkClock()
		var cancel context.CancelFunc
		within, cancel = context.WithTimeout(ctx, feedstate.Grace-(f.cache.elapsed()-e.leased))
		defer cancel()
	}
	slot, err := origin.Acquire(within, f.key.URL())
	if err != nil {
		f.cancelPoll(context.WithoutCancel(ctx), e, returnFor, policy.HintHostSlot)
		return nil, 0
	}
	free := f.cache.inFlight.try(f.share(), 1)
	switch {
	case free != nil:
		return &grant{slot: slot, free: free}, 0
	case e.lease != nil:
		f.cancelPoll(context.WithoutCancel(ctx), e, returnFor, policy.HintPolls)
	default:
		again = tryAgain
	}
	slot.Release()
	return nil, again
}

// askStore asks the store for the poll. If the host is busy, it returns when to ask again. The
// store moves the next poll into the future before this one is sent, so that a crash costs a
// delay and never a second poll.
func (f *Feed) askStore(ctx context.Context, e pollRequest, host policy.Host, rules policy.Rules) (_ *store.Lease, wait time.Duration) {
	c := f.cache
	if !c.mayClaim() {
		f.deferForStore()
		return nil, 0
	}
	claim := store.Claim{
		ID: f.id, URL: f.key.String(), Hold: f.state.Load().LeaseTime(rules), Floor: e.floor,
		Configured: f.configured(), By: slices.Max(append(f.askedBy(), 0)), Own: f.own.Load(), Queue: true, Prefetch: c.settings.Load().Prefetch, Host: host,
	}
	asked, answered := c.elapsed(), c.timeClaim()
	lease, err := c.store.Claim(ctx, claim)
	answered()
	if err != nil {
		if ctx.Err() == nil { // otherwise the cache is closing
			c.claimFailed(err)
		}
		f.deferForStore()
		return nil, 0
	}
	c.storeAnswered()
	switch {
	case lease.Denied == "":
		c.hops.give(host.Site)
		if c.checkClock(); c.elapsed()-asked <= feedstate.Grace {
			return &lease, 0
		}
		c.returnLease(&lease) // another node may have the lease by now: claim again
		return nil, time.Millisecond
	case lease.Denied == store.DeniedBusy && lease.Wait > maxQueued:
		f.deferPoll(lease.Wait, policy.HintHostSlot, true)
		return nil, 0
	case lease.Denied == store.DeniedBusy, lease.Denied == store.DeniedPaused && lease.Wait <= maxPaused:
		return nil, max(lease.Wait, time.Millisecond)
	case lease.Denied == store.DeniedNotDue && e.floor == 0 && 0 <= lease.Polled && lease.Polled < offerTimeout:
		return nil, offerTimeout // perhaps the background's claim has just been granted the poll
	}
	// Another node may have polled the feed.
	if _, err := f.replaceState(ctx, f.state.Load(), &lease.Record); err != nil {
		f.deferForStore()
		return nil, 0
	}
	if lease.Denied == store.DeniedPaused {
		f.deferPoll(lease.Wait, lease.Pause.Why, true)
	}
	return nil, 0
}
