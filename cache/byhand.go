// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/feedpollard/pollard/policy"
)

// TooEarly says that a feed may not be polled by hand yet.
type TooEarly struct {
	Until time.Time
	Why   string
}

func (e *TooEarly) Error() string {
	return fmt.Sprintf("not before %s: %s", e.Until.UTC().Format(time.RFC3339), e.Why)
}

// Refresh polls a feed now, whatever its hints say, and waits for the outcome.
// Two things a person's wish does not override: the operator's floor, counted
// from the last poll, and what the origin has asked for in so many words. Then,
// and where no poll can be made for another reason, it fails with a [TooEarly].
func (c *Cache) Refresh(ctx context.Context, url string) (Account, error) {
	f := c.known(url)
	if f == nil {
		return Account{}, fmt.Errorf("%w: %s", ErrUnknownFeed, url)
	}
	before := f.state.Load()
	if early := f.tooEarly(before, f.rules(), c.now()); early != nil {
		return Account{}, early
	}
	polled := func() bool { return !f.state.Load().memo.Last.At.Equal(before.memo.Last.At) }
	for joined := true; joined && !polled(); {
		// A poll that somebody else has started may come to nothing where a forced
		// one does not: it keeps out of skipHours.
		var fl *flight
		if fl, joined = f.board(true); fl == nil {
			return Account{}, errors.New("the cache is closing, or the feed has just been forgotten")
		}
		if !fl.wait(ctx, coldPatience, c.now()) {
			return f.account(c.now()), nil // it goes on without us
		}
	}
	if !polled() {
		return Account{}, f.held()
	}
	return f.account(c.now()), nil
}

// held tells what keeps a poll by hand back that was allowed.
func (f *Feed) held() error {
	s := f.state.Load()
	if o := f.origin(); o != nil {
		if at, why := o.Ready(f.target(s)); at.After(f.cache.now()) {
			return &TooEarly{at, why}
		}
	}
	if text := f.cache.outage.text(); text != "" {
		return &TooEarly{f.cache.now().Add(storeRetry), hintStore + ": " + text}
	}
	return &TooEarly{s.Next, s.memo.Decision.Winner}
}

// tooEarly tells why a feed may not be polled by hand; nil: it may.
func (f *Feed) tooEarly(s *state, rules policy.Rules, now time.Time) error {
	if s.due(now) {
		return nil
	}
	d := s.memo.Decision
	switch why := d.Winner; {
	case why == policy.HintRetryAfter, why == policy.HintRateLimit, why == hintStore, strings.HasSuffix(why, "cooldown"):
		return &TooEarly{s.Next, why}
	}
	if s.outstanding() {
		return &TooEarly{s.Next, "a poll was reserved and its outcome is not known"}
	}
	for _, t := range d.Considered { // another hint may have won and ask for more
		if t.Hint != policy.HintRetryAfter && t.Hint != policy.HintRateLimit {
			continue
		}
		if until := d.At.Add(time.Duration(t.Seconds) * time.Second); until.After(now) {
			return &TooEarly{until, t.Hint}
		}
	}
	if until := s.memo.Last.At.Add(rules.MinInterval); until.After(now) {
		return &TooEarly{until, "the last poll is less than min_interval ago"}
	}
	return nil
}

// hintRefresh is the winner of a decision that [Cache.Expire] has overruled.
const hintRefresh = "refresh"

// Expire makes a feed due: the next reader who asks for it causes a poll. It is
// for a publisher who knows that a feed of a site in this process has changed.
func (c *Cache) Expire(key string) (Account, error) {
	f := c.known(key)
	if f == nil {
		return Account{}, fmt.Errorf("%w: %s", ErrUnknownFeed, key)
	}
	now := c.now()
	f.mu.Lock()
	f.expired.Store(true)
	if f.flight == nil { // otherwise when it has landed: it may have seen what was before
		f.reschedule(f.state.Load(), now, hintRefresh)
	}
	f.mu.Unlock()
	return f.account(now), nil
}

// Forget removes a feed and all that is known of it, or fails with
// [ErrUnknownFeed]. Its record goes too, so a reader who asks again causes a
// poll. A configured feed stays known, as one that has never been polled.
func (c *Cache) Forget(ctx context.Context, url string) error {
	f := c.known(url)
	if f == nil {
		return fmt.Errorf("%w: %s", ErrUnknownFeed, url)
	}
	for !f.forgotten.Load() {
		// A poll under way would bring back what it knew.
		if fl := f.underWay(); fl != nil && !fl.wait(ctx, coldPatience, c.now()) {
			return fmt.Errorf("%s is being polled: try again in a minute", url)
		}
		n, err := c.forget(ctx, []*Feed{f}, func(*Feed) bool { return true })
		if err != nil || n > 0 {
			return err
		}
	}
	return nil
}
