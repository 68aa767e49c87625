// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/feedpollard/pollard/cache/queue"
	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/policy"
)

const (
	// maxQueued is how long a poll waits for its turn.
	maxQueued = 5 * time.Minute
	// maxPaused is the longest pause of a site whose end a poll waits for.
	maxPaused = 15 * time.Second
	// claimsAtOnce is how many polls are claimed in one transaction at most.
	claimsAtOnce = 64
	// claimsApart is how far apart such transactions are while no reader waits: what comes due in between shares one.
	claimsApart = 50 * time.Millisecond
)

// schedule is whose turn it is: the queue, and the polls that wait in it because a reader or a poke wants them.
// A restart forgets it: the store has all that must not be forgotten.
type schedule struct {
	mu     sync.Mutex // guards what follows
	queue  *queue.Queue
	polls  map[store.ID]*queued
	pauses map[pausedFeeds]pause
	round  time.Duration // no turn is taken before, unless a reader waits
	closed bool

	more chan struct{} // a poll may be claimed
}

// queued is a poll that waits for its turn.
type queued struct {
	feed    *Feed
	request pollRequest
	poll    *inFlight
	poked   bool   // a poke has caused it
	place   func() // among the polls that wait; nil if it does not count among them
}

// pausedFeeds are the feeds of a site that a pause holds for: all, or those without a version.
type pausedFeeds struct {
	site string
	new  bool
}

// pause is one that the store has told of.
type pause struct {
	until time.Duration
	why   string
}

func newSchedule() schedule {
	return schedule{
		queue: queue.New(queue.Owner(store.Operator)), polls: make(map[store.ID]*queued), pauses: make(map[pausedFeeds]pause),
		more: make(chan struct{}, 1),
	}
}

// add has a poll wait for its turn. It reports false if the cache is closing.
func (s *schedule) add(f queue.Feed, q *queued) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	if old := s.polls[f.ID]; old != nil { // of a feed that was forgotten meanwhile
		defer old.end()
	}
	s.polls[f.ID] = q
	s.queue.Wait(f)
	return true
}

// again records that a reader has asked again for a feed that has no version, if its poll still waits.
func (s *schedule) again(f queue.Feed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.queue.Waits(f.ID) {
		s.queue.Wait(f)
	}
}

// keeps reports whether a feed keeps its turn although its readers have gone: strangers may have made it up.
func keeps(f queue.Feed) bool { return !f.New || store.Owner(f.Owner) != store.Any && f.Owner != 0 }

// leaveOne takes the poll of a feed out of the queue; nil if none waits.
func (s *schedule) leaveOne(id store.ID) *queued {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.polls[id]
	if q != nil {
		s.queue.Leave(queue.ID(id))
		delete(s.polls, id)
	}
	return q
}

// close ends the schedule, and returns the polls that wait.
func (s *schedule) close() []*queued {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return slices.Collect(maps.Values(s.polls))
}

// addDue adds feeds that are due, for which no reader waits. With again, they are all there are.
func (s *schedule) addDue(again bool, feeds []queue.Feed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if again {
		s.queue.DropDue()
	}
	s.queue.Due(feeds...)
}

// next takes feeds whose turn it is, with the polls that wait of them, or returns when one has its turn.
func (s *schedule) next(now time.Duration) (turns []*turn, wait time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.polls) == 0 && now < s.round {
		return nil, s.round - now
	}
	for _, f := range s.queue.Next(now, claimsAtOnce) {
		t := &turn{Feed: f}
		if q := s.polls[f.ID]; q != nil {
			t.queued = *q
			delete(s.polls, f.ID)
		}
		turns = append(turns, t)
	}
	if len(turns) > 0 {
		s.round = now + claimsApart
		return turns, 0
	}
	return nil, max(s.queue.When(now)-now, time.Millisecond)
}

// back has a feed that was taken wait again. Its site is not asked before a moment.
func (s *schedule) back(t *turn, at time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waitOn(t)
	s.queue.Back(t.Feed, at)
}

// waitOn has the readers of a feed that was taken wait on, if there are any. The caller holds the lock.
func (s *schedule) waitOn(t *turn) {
	if t.place != nil {
		s.polls[t.ID] = new(t.queued)
	}
}

// aside has a feed that was taken wait until comeBack is called, while others of its site go on.
func (s *schedule) aside(t *turn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waitOn(t)
	s.queue.Free(t.Site)
}

// comeBack puts a feed into the queue again that was put aside, unless its poll has ended meanwhile.
func (s *schedule) comeBack(t *turn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.polls[t.ID]
	switch {
	case s.closed:
	case t.place == nil:
		s.queue.Due(t.Feed)
	case q != nil && q.poll == t.poll:
		s.queue.Wait(t.Feed)
	}
}

// end ends the turn of a feed: its site was asked and is free again then, or at once if it was not.
func (s *schedule) end(t *turn, asked bool, now, free time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if asked {
		s.queue.Asked(t.Site, t.Owner, now, free)
	} else {
		s.queue.Free(t.Site)
	}
}

// hold records a pause that a claim has met: of a site, or of those of its feeds that have no version. by is the owner
// of the feed that caused it, or 0 if that is not known. If the end is far, hold returns the other polls that wait for
// it: their readers need not.
func (s *schedule) hold(site string, p policy.Pause, by store.Owner, until, now time.Duration) (ended []*queued) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for of, p := range s.pauses {
		if p.until <= now {
			delete(s.pauses, of)
		}
	}
	s.pauses[pausedFeeds{site, p.New}] = pause{until, p.Why}
	s.queue.Hold(site, p.New, until, queue.Owner(by))
	if until-now <= maxPaused {
		return nil
	}
	for id, q := range s.polls {
		if f := q.feed.queued(now); f.Site == site && (!p.New || f.New) {
			s.queue.Leave(id)
			if keeps(f) {
				s.queue.Due(f)
			}
			delete(s.polls, id)
			ended = append(ended, q)
		}
	}
	return ended
}

// paused returns the pause that holds for a feed; its end is 0 if there is none.
func (s *schedule) paused(f queue.Feed, now time.Duration) (longest pause) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, of := range []pausedFeeds{{f.Site, false}, {f.Site, f.New}} {
		if p := s.pauses[of]; p.until > max(now, longest.until) {
			longest = p
		}
	}
	return longest
}

// open returns when a site may be asked next, as far as this node knows.
func (s *schedule) open(site string) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.queue.Open(site)
}

// answered records whether the last answer of a feed has paused its site.
func (s *schedule) answered(id store.ID, paused bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if paused {
		s.queue.Paused(queue.ID(id))
	} else {
		s.queue.Answered(queue.ID(id))
	}
}

// leave takes the polls out of the queue that began to wait before a moment.
func (s *schedule) leave(before time.Duration) (late []*queued) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, q := range s.polls {
		if q.poll.started < before {
			s.queue.Leave(queue.ID(id))
			delete(s.polls, id)
			if f := q.feed.queued(q.poll.started); before < math.MaxInt64 && keeps(f) {
				s.queue.Due(f) // its readers need not wait, and it keeps its turn
			}
			late = append(late, q)
		}
	}
	return late
}

// hopWaits counts a redirect as waiting for a site until it is called with -1.
func (s *schedule) hopWaits(site string, n int, now time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue.HopWaits(site, n, now)
}

// takeHop takes the next slot of a site for a redirect, or returns how long that is for another poll.
func (s *schedule) takeHop(site string, spacing, now time.Duration) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.queue.TakeHop(site, spacing, now)
}

// giveHop gives a slot back that the redirect could not use.
func (s *schedule) giveHop(site string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue.GiveHop(site)
}

// queued returns the feed as the queue has it.
func (f *Feed) queued(now time.Duration) queue.Feed {
	s := f.state.Load()
	return queue.Feed{ID: queue.ID(f.id), Site: f.host().Site, Owner: queue.Owner(f.owner()), New: s.Version == 0 || s.Unstored != nil, Due: min(s.Due, now)}
}

// claimTurns claims the polls of feeds whose turn it is, and starts them.
func (c *Cache) claimTurns(ctx context.Context) {
	defer func() {
		for _, q := range c.schedule.close() {
			q.end()
		}
	}()
	for ctx.Err() == nil {
		for _, q := range c.schedule.leave(c.elapsed() - maxQueued) {
			q.end()
		}
		var turns []*turn
		wait := c.untilClaim()
		if wait > 0 { // the store is away: what readers wait for is not polled now
			for _, q := range c.schedule.leave(math.MaxInt64) {
				q.end()
			}
		} else {
			turns, wait = c.schedule.next(c.elapsed())
		}
		if len(turns) > 0 {
			c.claim(ctx, c.prepare(ctx, turns))
			continue
		}
		select {
		case <-time.After(min(wait, maxQueued/10)):
		case <-c.schedule.more:
		case <-ctx.Done():
		}
	}
}

// end ends a poll that was not made.
func (q *queued) end() {
	if q.place != nil {
		q.place()
	}
	q.feed.finish(q.poll)
	q.feed.readIfOutdated()
}
