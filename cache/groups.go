// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"slices"
	"time"

	"github.com/feedpollard/pollard/cache/feedstate"
)

func (c *Cache) day() int64 { return c.now().Unix() / int64(24*time.Hour/time.Second) }

// AskedBy records that a reader of a group asks for the feed. The store has that within a
// minute.
func (f *Feed) AskedBy(g feedstate.Group) {
	f = f.use()
	defer f.leave()
	asked := feedstate.GroupDay{Group: g, Day: f.cache.day()}
	for {
		pending := f.groups.Load()
		if pending != nil && slices.Contains(*pending, asked) {
			return
		}
		next := []feedstate.GroupDay{asked}
		if pending != nil {
			next = feedstate.AddGroups(*pending, next, asked.Day)
		}
		if f.groups.CompareAndSwap(pending, &next) {
			return
		}
	}
}

// groupDays returns the groups of the feed: those of its state, and those that have asked since.
func (f *Feed) groupDays(s *feedstate.State) []feedstate.GroupDay {
	var pending []feedstate.GroupDay
	if p := f.groups.Load(); p != nil {
		pending = *p
	}
	return feedstate.AddGroups(s.Feed.Groups, pending, f.cache.day())
}

// addNews returns what adds to the feed's memo which groups asked and what its hub has said, if
// the store does not know; nil: it does.
func (f *Feed) addNews() (add func(memo []byte) []byte) {
	s := f.state.Load()
	days, hub := f.groupDays(s), f.hub.Load()
	if s.Feed.Push.State.With(hub) == s.Feed.Push.State && slices.Equal(days, s.Feed.Groups) {
		return nil
	}
	return func(memo []byte) []byte { return feedstate.AddNewsTo(memo, days, f.cache.day(), hub) }
}

// newsStored records that the store has it.
func (f *Feed) newsStored() {
	f.mu.Lock()
	defer f.mu.Unlock()
	old := f.state.Load()
	next := *old
	next.Feed.Groups, next.Feed.Push.State = f.groupDays(old), old.Feed.Push.State.With(f.hub.Load())
	f.setState(old, &next)
}
