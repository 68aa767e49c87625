// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"slices"
	"time"
)

// Group names the readers that are admitted in one way, such as by a token of a gateway. A feed
// remembers for 30 days which groups asked for it, whichever handler served them.
type Group uint64

// GroupOf returns the group of a text, which cannot be read from it.
func GroupOf(text string) Group {
	sum := sha256.Sum256([]byte(text))
	return Group(binary.BigEndian.Uint64(sum[:]))
}

const (
	groupDays = 30 // for how many days a group counts
	maxGroups = 16 // of a feed; the one that asked the longest ago is forgotten first
)

// groupDay is a group, and the last day on which its readers asked.
type groupDay struct {
	Group Group `json:"m"`
	Day   int64 `json:"d"` // counted from 1970
}

func (c *Cache) day() int64 { return c.now().Unix() / int64(24*time.Hour/time.Second) }

// AskedBy records that a reader of a group asks for the feed. The store has that within a
// minute.
func (f *Feed) AskedBy(g Group) {
	f = f.use()
	defer f.leave()
	asked := groupDay{g, f.cache.day()}
	for {
		pending := f.groups.Load()
		if pending != nil && slices.Contains(*pending, asked) {
			return
		}
		next := []groupDay{asked}
		if pending != nil {
			next = mergeGroups(*pending, next, asked.Day)
		}
		if f.groups.CompareAndSwap(pending, &next) {
			return
		}
	}
}

// groupDays returns the groups of the feed: those of its state, and those that have asked since.
func (f *Feed) groupDays(s *state) []groupDay {
	var pending []groupDay
	if p := f.groups.Load(); p != nil {
		pending = *p
	}
	return mergeGroups(s.feed.Groups, pending, f.cache.day())
}

// mergeGroups returns the groups of two lists that count on a day.
func mergeGroups(a, b []groupDay, day int64) (all []groupDay) {
	for _, g := range slices.Concat(a, b) {
		if day-g.Day >= groupDays {
			continue
		}
		if i := slices.IndexFunc(all, func(d groupDay) bool { return d.Group == g.Group }); i >= 0 {
			all[i].Day = max(all[i].Day, g.Day)
			continue
		}
		all = append(all, g)
	}
	slices.SortStableFunc(all, func(a, b groupDay) int { return int(b.Day - a.Day) })
	return all[:min(len(all), maxGroups)]
}

func groupsOf(days []groupDay) []Group {
	groups := make([]Group, 0, len(days))
	for _, d := range days {
		groups = append(groups, d.Group)
	}
	return groups
}

// addNews returns what adds to the feed's memo which groups asked and what its hub has said, if
// the store does not know; nil: it does.
func (f *Feed) addNews() (add func(memo []byte) []byte) {
	s := f.state.Load()
	days, hub := f.groupDays(s), f.hub.Load()
	if s.feed.Push.State.with(hub) == s.feed.Push.State && slices.Equal(days, s.feed.Groups) {
		return nil
	}
	return func(memo []byte) []byte {
		var m feedState
		if json.Unmarshal(memo, &m) != nil {
			return nil // there is none yet, or it is damaged: the next poll replaces it
		}
		m.convert(narrow)
		m.Groups = mergeGroups(m.Groups, days, f.cache.day())
		m.Push.State = m.Push.State.with(hub)
		memo, _ = m.encode() // nil if it fails: the memo stays
		return memo
	}
}

// newsStored records that the store has it.
func (f *Feed) newsStored() {
	f.mu.Lock()
	defer f.mu.Unlock()
	old := f.state.Load()
	next := *old
	next.feed.Groups, next.feed.Push.State = f.groupDays(old), old.feed.Push.State.with(f.hub.Load())
	f.setState(old, &next)
}
