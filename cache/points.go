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
	"github.com/feedpollard/pollard/internal/status"
	"github.com/feedpollard/pollard/policy"
)

// hop waits until a URL may be asked to which a redirect leads that is followed. The poll holds its place in flight.
func (f *Feed) hop(ctx context.Context, to feedurl.URL, host policy.Host) (wait time.Duration, err error) {
	c := f.cache
	c.schedule.hopWaits(host.Site, 1, c.elapsed())
	defer func() {
		c.schedule.hopWaits(host.Site, -1, c.elapsed())
		c.wake(c.schedule.more) // the polls that it went before have a moment now
	}()
	claim := store.Claim{Hop: true, ID: store.IDOf(to.String()), New: !f.Served(), Host: host}
	for {
		if wait = c.schedule.takeHop(host.Site, host.Spacing, c.elapsed()); wait <= 0 {
			leases, err := c.store.Claim(ctx, []store.Claim{claim})
			if err != nil {
				return 0, fmt.Errorf("following a redirect to %s: %w", to.Name(), err)
			}
			if wait = leases[0].Wait; wait <= 0 {
				return 0, nil
			}
			c.schedule.giveHop(host.Site)
		}
		if end, ends := ctx.Deadline(); ends && wait > time.Until(end) || !sleep(ctx, wait) {
			return wait, fmt.Errorf("the site redirects to %s, which must not be asked now", to.Name())
		}
	}
}

// maxPointers is how many feeds in a row may point to the next one.
const maxPointers = 4

// Resolve returns the feed that answers for this one: itself, or the one to which it points. It polls nothing.
// Whether a reader may have that one is for the caller to decide; the reader asks for both (see [Feed.Ask]).
func (f *Feed) Resolve(ctx context.Context) *Feed {
	at := f
	for range maxPointers {
		next := at.target(ctx)
		if next == at {
			return at
		}
		at = next
	}
	return f // they point in a circle
}

// target is the feed to which this one points, or itself, which has the last version that readers got, while the other
// one has none.
func (f *Feed) target(ctx context.Context) *Feed {
	s := f.state.Load()
	if s.Points == "" {
		return f
	}
	target, err := f.cache.Feed(ctx, s.Points)
	if err != nil || s.Version != 0 && !target.Served() {
		return f
	}
	return target
}

// point decides where a feed points after an answer. It makes the feed of the target if there is none, for the
// same owner, so that it is polled at once.
func (f *Feed) point(ctx context.Context, s *feedstate.State, v *feedstate.Classified) {
	to := s.Target(f.key, *v)
	if to == "" {
		return
	}
	target, err := f.pointsTo(ctx, s, to)
	if err != nil {
		v.Points = s.Points
		if v.Answer.Failure == policy.FailureMoved {
			v.Answer.Failure, v.Answer.Err, v.Result = policy.FailureRedirect, err, status.ResultFailed
		}
		return
	}
	t := target.state.Load()
	if v.Good() && to != s.Points && !t.Newest(s) { // the document names it, which alone proves nothing
		target.PollIfDue()
		return
	}
	works := target.Resolve(ctx).state.Load().Works() // the target may point to another feed itself
	if v.Points, v.Answer.Pointing = to, works; !works {
		target.PollIfDue()
	}
}

// pointsTo returns the feed of a target. It fails if a circle of feeds that point to each other, or too long a row,
// would come of it.
func (f *Feed) pointsTo(ctx context.Context, s *feedstate.State, to string) (*Feed, error) {
	c := f.cache
	target, err := c.Feed(ctx, to)
	for at, n := target, 1; err == nil; n++ {
		next := at.state.Load().Points
		switch {
		case next == "":
			if err := c.recordTarget(ctx, s, f.configured() || s.Configured, to); err != nil { // its record: it may be a target itself
				return nil, fmt.Errorf("recording the feed that it redirects to: %w", err)
			}
			return target, nil
		case next == f.key.String():
			return nil, fmt.Errorf("redirects go round in a circle, by way of %s", target.URL().HostPort())
		case n >= maxPointers:
			return nil, fmt.Errorf("redirects to a feed that redirects, and so on: %d in a row are too many", n+1)
		}
		at, err = c.Feed(ctx, next)
	}
	return nil, err
}

// recordTarget makes the record of a target, if it has none. It counts for the owner of the feed that points to it: as
// the operator's until a day after that feed is looked at again, which renews it.
func (c *Cache) recordTarget(ctx context.Context, s *feedstate.State, configured bool, to string) error {
	k := feedstate.ParseKey(to)
	rules := c.settings.Load().Rules(k)
	saved := store.Saved{New: true, Hold: (&feedstate.State{}).LeaseTime(rules), Record: store.Record{
		ID: store.IDOf(to), URL: to, Polled: -1, Asked: -1, First: -1,
		State: store.StateCold, Configured: configured, Site: c.origin.Host(k.URL()).Site,
	}}
	if configured {
		saved.Asked = 0 // as for a configured feed: it is polled although it has no reader yet
	}
	if s.Owner != 0 {
		saved.Askers = []store.Asker{{Owner: s.Owner}}
	}
	if err := c.store.Restore(ctx, []store.Saved{saved}); err != nil {
		return err
	}
	if f := c.InMemory(to); f != nil && !f.state.Load().Recorded {
		return f.reload(ctx)
	}
	return nil
}

// askTarget records that a reader of a feed asks for those to which it points, and starts what is due of them.
func (f *Feed) askTarget(s *feedstate.State, by store.Owner) {
	f.PollIfDue()
	works := true
	at := s.Points
	for range maxPointers {
		target := f.cache.InMemory(at)
		if target == nil {
			return
		}
		target.read(by)
		t := target.state.Load()
		if works = t.Works(); !works && t.Points == "" {
			target.PollIfDue()
		}
		if at = t.Points; at == "" {
			break
		}
	}
	// If the target fails, the site may redirect elsewhere by now, or not any more.
	if own := max(s.Feed.History.Interval, f.rules().MinInterval); !works && !s.Ended && s.NotBefore <= f.cache.elapsed() && f.cache.elapsed()-s.Granted > own {
		f.start(pollRequest{floor: own})
	}
}
