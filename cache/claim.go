// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"time"

	"github.com/feedpollard/pollard/cache/feedstate"
	"github.com/feedpollard/pollard/cache/queue"
	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/policy"
)

// turn is a feed whose turn it is, on its way to a poll.
type turn struct {
	queue.Feed
	queued
	host policy.Host
	slot policy.Slot
	free func() // the place among the polls in flight
}

func (t *turn) release() {
	t.slot.Release()
	t.free()
}

// giveUp ends a turn without a poll.
func (c *Cache) giveUp(t *turn) {
	now := c.elapsed()
	c.schedule.end(t, false, now, now)
	if t.poll != nil {
		t.queued.end()
	}
}

// aside has a feed wait for some time, while others of its site go on.
func (c *Cache) aside(t *turn, wait time.Duration) {
	c.schedule.aside(t)
	time.AfterFunc(wait, func() {
		c.schedule.comeBack(t)
		c.wake(c.schedule.more)
	})
}

// putBack has a feed wait for its turn again, when its site may be asked. One that is not paced comes back by itself.
func (c *Cache) putBack(t *turn, wait time.Duration) {
	if t.Site == "" {
		c.aside(t, wait)
	} else {
		c.schedule.back(t, c.elapsed()+wait)
	}
	if t.poll != nil && t.place == nil { // no reader waits for it
		t.feed.finish(t.poll)
	}
}

// prepare takes the place of each poll at its site and among those in flight, before it is claimed: a poll that is
// claimed starts at once.
func (c *Cache) prepare(ctx context.Context, turns []*turn) (ready []*turn) {
	if err := c.find(ctx, turns); err != nil {
		c.logUnreadable("the records of feeds that are due cannot be read", "", err)
		for _, t := range turns {
			c.putBack(t, storeRetry)
		}
		return nil
	}
	for _, t := range turns {
		if c.enter(t) {
			ready = append(ready, t)
		}
	}
	return ready
}

// find finds the feeds that are due, and reads the records of those that are not in memory.
func (c *Cache) find(ctx context.Context, turns []*turn) error {
	missing := make(map[store.ID]*turn)
	var ids []store.ID
	for _, t := range turns {
		if t.feed != nil {
			continue
		}
		if f, ok := c.table.ids.Load(store.ID(t.ID)); ok {
			t.feed = f.(*Feed)
			continue
		}
		missing[t.ID], ids = t, append(ids, t.ID)
	}
	if len(ids) == 0 {
		return nil
	}
	records, err := c.store.Lookup(ctx, ids)
	for i := range records {
		f := newFeed(c, records[i].URL, &feedstate.State{})
		f.adopt(records[i])
		missing[records[i].ID].feed = c.admit(f)
	}
	return err
}

// enter takes the places of a poll. It reports false if the poll cannot be made now.
func (c *Cache) enter(t *turn) bool {
	f, now := t.feed, c.elapsed()
	if f == nil { // it was forgotten
		c.giveUp(t)
		return false
	}
	origin := f.origin()
	if origin == nil || t.request.floor == 0 && !f.mayPoll(f.state.Load(), now) {
		c.giveUp(t)
		return false
	}
	if t.host = f.host(); t.host.Site != t.Site { // its row is of version 2 of the tables: of a host, or of one feed
		c.giveUp(t)
		c.schedule.addDue(false, []queue.Feed{f.queued(now)})
		return false
	}
	if t.slot = origin.Acquire(f.key.URL()); t.slot == nil { // its host is busy: others of the site need not be
		c.aside(t, tryAgain)
		return false
	}
	if t.free = c.inFlight.try(f.owner(), 1); t.free == nil {
		t.slot.Release()
		c.putBack(t, tryAgain)
		return false
	}
	if t.poll == nil {
		t.poll, _ = f.blockPolls()
	}
	if t.poll == nil { // another poll is under way
		t.release()
		c.giveUp(t)
		return false
	}
	return true
}

// claim asks the store for polls, and starts those that it grants. The store moves the next poll of each into the
// future before it is sent, so that a crash costs a delay and never a second poll.
func (c *Cache) claim(ctx context.Context, turns []*turn) {
	if len(turns) == 0 {
		return
	}
	leases, asked, err := c.askStore(ctx, turns)
	if err != nil {
		for _, t := range turns {
			if t.release(); t.place != nil { // the reader gets what is stored
				c.giveUp(t)
			} else {
				c.putBack(t, storeRetry)
			}
		}
		return
	}
	c.checkClock()
	for i, t := range turns {
		c.answer(t, &leases[i], asked)
	}
}

// askStore makes the claims of polls, and returns when.
func (c *Cache) askStore(ctx context.Context, turns []*turn) (leases []store.Lease, asked time.Duration, err error) {
	claims := make([]store.Claim, len(turns))
	for i, t := range turns {
		f := t.feed
		claims[i] = store.Claim{
			ID: f.id, URL: f.key.String(), Hold: f.state.Load().LeaseTime(f.rules()), Floor: t.request.floor,
			Configured: f.configured(), By: f.askedBy(), Own: f.own.Load(), Host: t.host,
		}
	}
	asked = c.elapsed()
	answered := c.timeClaim()
	leases, err = c.store.Claim(ctx, claims)
	answered()
	if err == nil {
		c.storeAnswered()
	} else if ctx.Err() == nil { // otherwise the cache is closing
		c.claimFailed(err)
	}
	return leases, asked, err
}

// answer starts a poll that was granted. One that was refused waits on, if that is not for long.
func (c *Cache) answer(t *turn, lease *store.Lease, asked time.Duration) {
	f, now := t.feed, c.elapsed()
	late := now-asked > feedstate.Grace // another node may have the lease by now
	if lease.Denied == store.DeniedPaused {
		t.New = lease.Version == 0 // as the store has it: memory may have a version that the disk had no room for
	}
	switch {
	case lease.Denied == "" && !late:
		t.poked = t.poked || lease.Poked || t.request.floor > 0
		c.schedule.end(t, true, now, now+t.host.Spacing)
		if t.place != nil {
			t.place()
		}
		if !c.background(func() { f.run(c.life, t, lease) }) {
			c.returnLease(lease)
			t.release()
			f.finish(t.poll)
		}
		return
	case lease.Denied == "":
		t.queued.poked = t.queued.poked || lease.Poked
		c.returnLease(lease)
		c.putBack(t, 0)
	case lease.Denied == store.DeniedBusy:
		c.putBack(t, lease.Wait)
	case lease.Denied == store.DeniedPaused && lease.Wait <= maxPaused:
		c.hold(t, lease, now)
		c.putBack(t, 0)
	default:
		c.refused(t, lease, now)
	}
	t.release()
}

// refused ends the turn of a feed that is not due, as another node has polled it, or whose site has a long pause.
func (c *Cache) refused(t *turn, lease *store.Lease, now time.Duration) {
	f := t.feed
	if _, err := f.replaceState(c.life, f.state.Load(), &lease.Record); err != nil {
		c.readLater(f)
	}
	if lease.Denied == store.DeniedPaused {
		if keeps(t.Feed) {
			c.schedule.addDue(false, []queue.Feed{t.Feed})
		}
		c.hold(t, lease, now)
	}
	c.giveUp(t) // last: who waits for it sees the pause
}

// hold records the pause that a claim has met. Polls that wait for its end, if that is far, end.
func (c *Cache) hold(t *turn, lease *store.Lease, now time.Duration) {
	var by store.Owner
	if f := c.InMemory(lease.Pause.URL); f != nil {
		by = f.owner()
	}
	for _, q := range c.schedule.hold(t.Site, lease.Pause, by, now+lease.Wait, now) {
		q.end()
	}
}

// returnLease returns a claim that is not used: the feed is still due.
func (c *Cache) returnLease(lease *store.Lease) {
	s := feedstate.FromRecord(lease.Record, c.elapsed())
	o := store.Outcome{ID: lease.ID, Token: lease.Token, State: s.StoreState(c.isConfigured(lease.URL)), Site: lease.Site}
	if err := c.store.Commit(context.WithoutCancel(c.life), o); err != nil {
		c.log().Warn("claim could not be returned", c.urlField(lease.URL), errField(err))
	}
}
