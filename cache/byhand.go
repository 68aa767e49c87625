// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
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
	if !f.state.Load().Recorded && !f.configured() && f.underWay() == nil {
		c.drop(f, true)
		return nil, fmt.Errorf("%w: %s", ErrUnknownFeed, feedurl.Redact(key))
	}
	return f, nil
}

// Refresh polls a feed now, whatever its hints say, and waits for the outcome. It fails with
// a [TooEarly] if the last poll is less than MinInterval ago, if the origin has asked for a
// pause, or if no poll can be made for another reason. The feed is polled then without being asked for again.
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
		_ = f.poke(ctx, store.Poke{Floor: floor}) // if the store is away, the person has to ask again
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
			return status.Feed{}, errors.New("too many polls wait for their turn: try again in a minute")
		}
		if !p.wait(ctx, coldTimeout, c.elapsed()) {
			if own || polled() || f.sent() {
				return f.describe(), nil // it goes on without us
			}
			_ = f.poke(ctx, store.Poke{Floor: f.rules().MinInterval})
			return status.Feed{}, &TooEarly{c.now().Add(max(tryAgain, c.schedule.open(f.host().Site)-c.elapsed())), policy.HintHostSlot}
		}
	}
	if !polled() {
		_ = f.poke(ctx, store.Poke{Floor: f.rules().MinInterval})
		s := f.held(f.state.Load(), c.elapsed())
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
	now, wall := f.cache.elapsed(), f.cache.now()
	if p := f.sitePause(now); p.until > max(now, s.Due) {
		return &TooEarly{wall.Add(p.until - now), p.why}
	}
	if s.DueAt(now) && !s.Poked {
		return nil
	}
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
	if q := c.schedule.leaveOne(f.id); q != nil {
		q.end()
	}
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

// maxPinged is how many feeds one ping has polled at once.
const maxPinged = 32

// Ping says that shielded feeds have changed: they are polled unconditionally, as soon as MinInterval has passed since
// their last poll. Retry-After, rate limits and back-off stand. If they are many, those are polled that readers asked
// for again, the last ones first; the others are polled when a reader asks. It reports whether any of them is known, and
// fails if the store cannot be read or written.
func (c *Cache) Ping(ctx context.Context, keys []string) (known bool, err error) {
	var feeds []*Feed
	for _, key := range keys {
		f, err := c.existing(ctx, key)
		switch {
		case errors.Is(err, ErrUnknownFeed):
			continue
		case err != nil:
			return known, err
		}
		known, feeds = true, append(feeds, f)
	}
	if len(feeds) > maxPinged {
		slices.SortStableFunc(feeds, func(a, b *Feed) int { return cmp.Compare(b.asked.Load(), a.asked.Load()) })
		var again, once []*Feed
		for _, f := range feeds {
			if f.askedAgain() && len(again) < maxPinged {
				again = append(again, f)
			} else {
				once = append(once, f)
			}
		}
		for _, f := range once {
			f.pinged.Store(true)
		}
		feeds = again
	}
	for _, f := range feeds {
		if err := f.poke(ctx, store.Poke{Floor: f.rules().MinInterval, Patient: true}); err != nil {
			return known, err
		}
	}
	return known, nil
}

// askedAgain reports whether a reader asked for the feed an hour or more after the first one did.
func (f *Feed) askedAgain() bool {
	first, last := f.state.Load().First, time.Duration(f.asked.Load())*time.Second
	return first != feedstate.NeverGranted && f.asked.Load() != neverRequested && last-first >= time.Hour
}

// poke has the store remember that the feed be polled, and starts the poll if it may be made now.
func (f *Feed) poke(ctx context.Context, p store.Poke) error {
	f = f.use()
	defer f.leave()
	if age := f.cache.now().Sub(f.state.Load().Last.At); age >= 0 { // a request may arrive long after its poll was granted
		p.In = max(p.In, p.Floor-age)
	}
	if err := f.cache.store.Touch(ctx, map[store.ID]store.Asked{f.id: {Ago: -1, Poke: &p}}); err != nil {
		return err
	}
	if err := f.reload(ctx); err != nil {
		return err
	}
	f.PollIfDue()
	f.cache.wake(f.cache.changed)
	return nil
}
