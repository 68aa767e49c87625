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
	c, host := f.cache, origin.Host(f.key.URL())
	waits := c.polls.Load().waiting.try(1, f.established())
	if waits == nil {
		f.cancelPoll(life, e, retry, policy.HintPolls)
		return nil
	}
	defer waits()
	ctx, cancel := context.WithTimeout(life, maxQueued)
	defer cancel()
	defer f.endQueue(e.poll)
	for {
		granted, again := (*grant)(nil), true
		if e.lease != nil {
			granted, again = f.useLease(ctx, origin, e)
			e.offer = offer{}
		}
		if again {
			granted = f.enter(ctx, origin, e)
		}
		if granted == nil {
			return nil
		}
		if granted.lease == nil {
			select {
			case e.offer = <-e.poll.offers:
				granted.release()
				continue
			default:
			}
		}
		var wait time.Duration
		if granted.lease == nil {
			granted.lease, wait = f.askStore(life, e, host, rules)
		}
		if granted.lease != nil {
			if wait = f.turn(ctx, e, granted); wait <= 0 {
				return granted
			}
			// It gives its claim back, and asks again at the moment that it has reserved.
			f.cancelPoll(life, pollRequest{offer: offer{lease: granted.lease}}, wait, policy.HintAddress)
		}
		granted.release()
		if wait <= 0 || wait > maxQueued {
			return nil
		}
		select {
		case <-time.After(wait):
		case e.offer = <-e.poll.offers:
		case <-ctx.Done():
			f.deferPoll(retry, policy.HintHostSlot)
			return nil
		}
	}
}

// turn returns how long a poll must wait for its turn at the address of its host. A poll by hand
// takes its turn when it is made: it leaves the time of the next one as it is.
func (f *Feed) turn(ctx context.Context, e pollRequest, granted *grant) time.Duration {
	if e.floor > 0 {
		return 0
	}
	return granted.slot.Turn(ctx, f.standing(granted.lease.Version))
}

// standing is that of a feed with a version; 0: it has none.
func (f *Feed) standing(version uint64) policy.Standing {
	switch {
	case !f.established() && slices.Max(append(f.askedBy(), 0)).Kind() <= store.KindPublic:
		return policy.StandingStranger
	case version == 0:
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

// useLease takes a place for a poll that has been claimed already. It reports whether the poll
// has to be claimed again: another node may have the lease by now.
func (f *Feed) useLease(ctx context.Context, origin Origin, e pollRequest) (granted *grant, again bool) {
	c := f.cache
	c.checkClock()
	ctx, cancel := context.WithTimeout(ctx, feedstate.Grace-(c.elapsed()-e.leased))
	defer cancel()
	if granted = f.enter(ctx, origin, e); granted == nil {
		return nil, false
	}
	granted.lease = e.lease
	if c.checkClock(); c.elapsed()-e.leased > feedstate.Grace {
		granted.release()
		c.returnLease(e.lease)
		return nil, true
	}
	return granted, false
}

// enter takes a place among the requests in flight of the feed's host, and among the polls in
// flight. If ctx ends before, it ends the poll and returns nil.
func (f *Feed) enter(ctx context.Context, origin Origin, e pollRequest) *grant {
	slot, err := origin.Acquire(ctx, f.key.URL())
	if err != nil {
		f.cancelPoll(context.WithoutCancel(ctx), e, returnFor, policy.HintHostSlot)
		return nil
	}
	free, err := f.cache.polls.Load().inFlight.acquire(ctx, 1, f.established())
	if err != nil {
		slot.Release()
		f.cancelPoll(context.WithoutCancel(ctx), e, retry, policy.HintPolls)
		return nil
	}
	return &grant{slot: slot, free: free}
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
		ID: f.id, URL: f.key.String(), Hold: f.state.Load().LeaseTime(rules), Floor: e.floor, ByHand: e.floor > 0 && !e.pushed,
		Configured: f.configured(), By: slices.Max(append(f.askedBy(), 0)), Queue: true, Prefetch: c.settings.Load().Prefetch, Host: host,
	}
	asked, answered := c.elapsed(), c.timeClaim()
	leases, err := c.store.Claim(ctx, []store.Claim{claim})
	answered()
	if err != nil {
		if ctx.Err() == nil { // otherwise the cache is closing
			c.claimFailed(err)
		}
		f.deferForStore()
		return nil, 0
	}
	c.storeAnswered()
	lease := &leases[0]
	switch {
	case lease.Denied == "":
		if c.checkClock(); c.elapsed()-asked <= feedstate.Grace {
			return lease, 0
		}
		c.returnLease(lease) // another node may have the lease by now: claim again
		return nil, time.Millisecond
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
		f.deferPoll(lease.Wait, lease.Pause.Why)
	}
	return nil, 0
}

// established reports whether the feed is configured, listed, or read on several days: readers
// cannot have invented it a moment ago.
func (f *Feed) established() bool { return f.state.Load().Established || f.configured() }
