// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"fmt"
	"time"

	"github.com/feedpollard/pollard/cache/feedstate"
	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/internal/feedurl"
	"github.com/feedpollard/pollard/policy"
)

// aliasInterval is how often the URL of an alias is asked whether it still redirects: no moment in the store is
// farther ahead than a pause can be.
const aliasInterval = 7 * 24 * time.Hour

// hop lets a poll follow a redirect if the URL was not asked in its own MinInterval, or that of the feed.
func (f *Feed) hop(ctx context.Context, u feedurl.URL, host policy.Host) error {
	to, settings := u.String(), f.cache.settings.Load()
	floor := max(f.rules().MinInterval, settings.Rules(feedstate.ParseKey(to)).MinInterval)
	for {
		p, err := f.cache.store.Hop(ctx, store.Hop{
			ID: store.IDOf(to), From: f.id, First: f.state.Load().Feed.Version.Number == 0, Prefetch: settings.Prefetch, Floor: floor, Yield: !f.configured(), Host: host,
		})
		switch {
		case err != nil:
			return fmt.Errorf("following a redirect to %s: %w", feedurl.Redact(to), err)
		case p.Denied == "":
			return nil
		case p.Denied != store.DeniedBusy:
			other, err := f.cache.Feed(ctx, to)
			return &feedstate.Redirected{
				To: to, Taken: p.Denied == store.DeniedTaken, Served: err == nil && other.Served(), Wait: p.Wait,
			}
		}
		end, ends := ctx.Deadline()
		if ends && p.Wait > time.Until(end) || !sleep(ctx, p.Wait) { // a hop that waits holds its place in flight
			return &feedstate.Redirected{To: to, Wait: p.Wait}
		}
	}
}

// createTarget makes the record of the feed that an alias leads to, if it has none.
// The URL has just been asked by the alias's own poll, so its first poll comes a floor
// later. Hints of the redirect itself do not count for the URL.
func (c *Cache) createTarget(ctx context.Context, alias *Feed, key string, in time.Duration) error {
	k := feedstate.ParseKey(key)
	id, rules := store.IDOf(key), c.settings.Load().Rules(k)
	records, err := c.store.Lookup(ctx, []store.ID{id})
	if err != nil || len(records) > 0 {
		return err
	}
	return c.store.Restore(ctx, []store.Saved{{New: true, Record: store.Record{
		ID: id, URL: key, In: min(in, rules.MinInterval), Hold: (&feedstate.State{}).LeaseTime(rules),
		Polled: -1, Asked: alias.sinceAsked(c.elapsed()), State: store.StateCold,
		Configured: alias.configured(), Host: c.origin.Host(k.URL()),
	}}})
}

// maxAliases is how many aliases in a row are followed.
const maxAliases = 4

// Resolve returns the feed that answers for this one: itself, unless it has become
// an alias of another. It polls nothing. Whether a reader may have that one is for the caller to decide; the
// reader asks for both (see [Feed.Ask]).
func (f *Feed) Resolve(ctx context.Context) *Feed {
	for range maxAliases {
		next := f.target(ctx)
		if next == f {
			break
		}
		f = next
	}
	return f
}

// target is the feed that an alias leads to, or the feed itself.
func (f *Feed) target(ctx context.Context) *Feed {
	s := f.state.Load()
	if s.Feed.Alias == "" {
		return f
	}
	target, err := f.cache.Feed(ctx, s.Feed.Alias)
	if err != nil {
		return f
	}
	if answersItself(s, target.state.Load()) {
		return f
	}
	return target
}

// answersItself reports whether an alias has the newer version: from before the move, or from a
// poll that came to the target later than that one's own polls, which the redirect has put off.
func answersItself(alias, target *feedstate.State) bool {
	newer := alias.Last.Failure == policy.FailureNone && alias.Granted > target.Granted
	return alias.Version != 0 && (target.Version == 0 || newer)
}

// pollAlias makes the polls of an alias that a reader causes besides those of its target.
func (f *Feed) pollAlias(s *feedstate.State) {
	target := f.cache.InMemory(s.Feed.Alias)
	if target == nil {
		return
	}
	switch t := target.state.Load(); {
	case t.Feed.History.Failures >= 3 || t.Ended:
		// A feed that fails at its new address is asked for at its own again.
		if floor := f.rules().MinInterval; f.cache.now().Sub(s.Last.At) > floor {
			f.start(pollRequest{floor: floor})
		}
	case t.DueAt(f.cache.elapsed()) && answersItself(s, t):
		target.start(pollRequest{})
	}
}
