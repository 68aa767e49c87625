// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/feedpollard/pollard/cache/feedstate"
	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/internal/feedurl"
	"github.com/feedpollard/pollard/internal/status"
	"github.com/feedpollard/pollard/policy"
)

// ErrUnknownFeed reports that the cache does not know the feed.
var ErrUnknownFeed = errors.New("no such feed")

// TooEarly reports that a feed may not be polled by hand yet.
type TooEarly struct {
	Until time.Time
	Why   string // a hint, or a text
}

func (e *TooEarly) Error() string {
	return fmt.Sprintf("not before %s: %s", e.Until.UTC().Format(time.RFC3339), status.HintShort(e.Why))
}

// tooSoon is why a feed must wait for MinInterval.
const tooSoon = "the last poll is less than min_interval ago"

// existing returns the feed of a key that has a record, or fails with [ErrUnknownFeed].
func (c *Cache) existing(ctx context.Context, key string) (*Feed, error) {
	f, err := c.Feed(ctx, key)
	if err != nil {
		return nil, err
	}
	if !f.state.Load().Known && !f.configured() && f.underWay() == nil {
		c.drop(f, true)
		return nil, fmt.Errorf("%w: %s", ErrUnknownFeed, feedurl.Redact(key))
	}
	return f, nil
}

// Refresh polls a feed now, whatever its hints say, and waits for the outcome. It fails with
// a [TooEarly] if the last poll is less than MinInterval ago, if the origin has asked for a
// pause, or if no poll can be made for another reason.
func (c *Cache) Refresh(ctx context.Context, key string) (status.Feed, error) {
	return c.refresh(ctx, key, false)
}

// RefreshAtOnce is like Refresh, but a shielded feed is always polled, and once more if a poll is under
// way: its publisher knows that it has changed.
func (c *Cache) RefreshAtOnce(ctx context.Context, key string) (status.Feed, error) {
	return c.refresh(ctx, key, feedstate.Shielded(key))
}

func (c *Cache) refresh(ctx context.Context, key string, own bool) (status.Feed, error) {
	f, err := c.existing(ctx, key)
	if err != nil {
		return status.Feed{}, err
	}
	asked, err := f.refreshOne(ctx, own)
	if target := f.Resolve(ctx); target != f { // both are asked: its own URL may not redirect any more
		if answered, early := target.refreshOne(ctx, own); early == nil || err != nil {
			return answered, early
		}
	}
	return asked, err
}

// refreshOne polls a feed by hand, whether it points to another one or not.
func (f *Feed) refreshOne(ctx context.Context, own bool) (status.Feed, error) {
	c := f.cache
	f = f.use()
	defer f.leave()
	floor := f.rules().MinInterval
	before := f.state.Load()
	if own {
		floor = time.Nanosecond
	} else if early := f.tooEarly(before, floor); early != nil {
		return status.Feed{}, early
	} else if age := c.now().Sub(before.Last.At); before.Feed.History.Unsent > 0 && age > 0 {
		// Nothing of the last poll reached the origin: another one may be made in its place,
		// unless the URL was asked since.
		floor = min(floor, age)
	}
	polled := func() bool {
		s := f.state.Load()
		return s.Feed.History.Unsent == 0 && !s.Last.At.Equal(before.Last.At)
	}
	for joined := true; joined && (own || !polled()); {
		// A poll that a reader has started may be put off if this one is not: it keeps out of
		// skipHours.
		var p *inFlight
		if p, joined = f.start(pollRequest{floor: floor}); p == nil {
			return status.Feed{}, errors.New("the cache is closing")
		}
		if !p.wait(ctx, coldTimeout, c.elapsed()) {
			return f.describe(), nil // it goes on without us
		}
	}
	if !polled() {
		s := f.state.Load()
		if text := c.storeAway.text(); text != "" {
			return status.Feed{}, &TooEarly{c.now().Add(storeRetry), policy.HintStore + ": " + text}
		}
		if s.Ended || s.Last.Winner == "" { // it is gone, or its last decision was forgotten
			return status.Feed{}, &TooEarly{c.now().Add(s.Granted + floor - c.elapsed()), tooSoon}
		}
		return status.Feed{}, &TooEarly{c.now().Add(s.Due - c.elapsed()), s.Last.Winner}
	}
	return f.describe(), nil
}

// tooEarly returns why a feed may not be polled by hand; nil if it may, as far as memory
// knows.
func (f *Feed) tooEarly(s *feedstate.State, floor time.Duration) error {
	now := f.cache.elapsed()
	if s.DueAt(now) {
		return nil
	}
	wall := f.cache.now()
	if why := s.Last.Winner; feedstate.PauseAsked(why) || why == policy.HintStore {
		return &TooEarly{wall.Add(s.Due - now), why}
	}
	if s.NotBefore > now {
		return &TooEarly{wall.Add(s.NotBefore - now), policy.HintRetryAfter}
	}
	// If the clock was set back, the store knows.
	if until := s.Last.At.Add(floor); until.After(wall) && !s.Last.At.After(wall) && s.Feed.History.Unsent == 0 && s.Last.Result != "" {
		return &TooEarly{until, tooSoon}
	}
	return nil
}

// Forget removes a feed and its record, so the next request for it causes a poll. It
// returns [ErrUnknownFeed] if the feed is not known. A configured feed remains, in the
// state before its first poll.
func (c *Cache) Forget(ctx context.Context, key string) error {
	f, err := c.existing(ctx, key)
	if err != nil {
		return err
	}
	// A poll under way would bring back what it knew, and no poll may start meanwhile.
	own, other := f.blockPolls()
	for own == nil {
		if !other.wait(ctx, coldTimeout, c.elapsed()) {
			return fmt.Errorf("%s is being polled: try again in a minute", feedurl.Redact(key))
		}
		own, other = f.blockPolls()
	}
	defer f.finish(own)
	if err := c.store.Forget(ctx, f.id); err != nil && !errors.Is(err, store.ErrNoRecord) {
		return err
	}
	c.forgotten([]store.ID{f.id})
	c.settings.Load().recorded.Store(false)
	c.wake(c.changed)
	return nil
}

// Ping says that a shielded feed has changed: the next request polls it unconditionally, on all nodes, as
// soon as MinInterval has passed since its last poll. Retry-After, rate limits and back-off stand. It fails with
// [ErrUnknownFeed], or if the store cannot be written.
func (c *Cache) Ping(ctx context.Context, key string) error {
	f, err := c.existing(ctx, key)
	if err != nil {
		return err
	}
	f = f.use()
	if f.pinged.Swap(int64(max(c.elapsed(), 1))) != 0 {
		f.leave()
		return nil // an earlier one has to wait, and does what this one asks for
	}
	wait, err := f.latestPing(ctx)
	if wait <= 0 || err != nil {
		f.leave()
		return err
	}
	if !c.background(func() {
		defer f.leave()
		for wait > 0 && err == nil && sleep(c.open, wait) {
			wait, err = f.latestPing(c.open)
		}
		if err != nil && c.open.Err() == nil {
			c.log().Warn("publish ping is lost, as the store cannot be written", c.urlField(f.key.String()), errField(err))
		}
	}) {
		f.leave()
	}
	return nil
}

// latestPing makes a feed due because of its latest ping. If that is too early, it returns how long to wait.
// Otherwise no ping waits any more.
func (f *Feed) latestPing(ctx context.Context) (wait time.Duration, err error) {
	for {
		latest := f.pinged.Load()
		wait, err = f.ping(ctx, time.Duration(latest))
		if wait > 0 && err == nil || f.pinged.CompareAndSwap(latest, 0) {
			return wait, err
		}
	}
}

// pingChanges reports whether a ping changes when or how a feed is polled next.
func pingChanges(s *feedstate.State, started, now time.Duration) bool {
	soon := s.Feed.History.Failures > 0 || s.DueAt(now) // back-off stands
	return !s.Ended && s.NotBefore <= now && s.Granted <= started &&
		!(soon && (s.Version == 0 || s.Doubtful(false, true) != nil))
}

// ping makes a feed due because of a ping. If that is too early, it returns how long to wait.
func (f *Feed) ping(ctx context.Context, started time.Duration) (wait time.Duration, err error) {
	c := f.cache
	if f.underWay() == nil && !pingChanges(f.state.Load(), started, c.elapsed()) { // usual for many pings
		return 0, nil
	}
	own, _ := f.blockPolls()
	if own == nil {
		return time.Second, nil // the answer may be older than the ping
	}
	defer f.finish(own)
	s, now, floor := f.state.Load(), c.elapsed(), f.rules().MinInterval
	if !pingChanges(s, started, now) {
		return 0, nil
	}
	due, waits := s.Due, s.Feed.History.Failures > 0 // back-off stands
	wait = floor - (now - s.Granted)
	if age := c.now().Sub(s.Last.At); age >= 0 { // a request may arrive long after its poll was granted
		wait = max(wait, floor-age)
	}
	if wait > 0 {
		return wait, nil
	}
	// All nodes see a claim that is returned at once.
	lease, err := c.store.Claim(ctx, store.Claim{
		ID: f.id, URL: f.key.String(), Hold: s.LeaseTime(f.rules()), Floor: max(floor, time.Nanosecond), Configured: f.configured(),
	})
	if err != nil {
		return 0, err
	}
	s = f.adopt(lease.Record)
	if lease.Denied != "" { // another node has polled the feed, or made it due: that may have been read already
		c.readLater(f)
		return lease.Wait, nil
	}
	next, in := *s, time.Duration(0)
	if waits {
		in = max(0, due-c.elapsed())
	}
	next.Doubt()
	next.DeferredUntil, next.Due = 0, c.elapsed()+in
	if err := f.commit(ctx, &next, &lease, store.Outcome{In: in}, false); err != nil {
		return 0, err
	}
	f.publish(&next)
	return 0, nil
}
