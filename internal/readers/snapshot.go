// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package readers

import (
	"cmp"
	"errors"
	"net/netip"
	"slices"
	"time"
)

// period is the time in which requests are counted together. Reports cover this period
// and the last one, so that older requests of a reader do not affect its score. Periods
// are the same on all nodes.
const period = 28 * 24 * time.Hour

func periodOf(now time.Time) int64 { return now.Unix() / int64(period/time.Second) }

// Snapshot has the counters of [Statistics] for one period, in the form in which they are
// saved and merged with those of other nodes.
type Snapshot struct {
	Period   int64           `json:"period"` // counted from 1970
	Feeds    []SavedCounters `json:"feeds,omitempty"`
	Families []SavedCounters `json:"families,omitempty"`
	Readers  []SavedCounters `json:"readers,omitempty"`
	Rest     SavedCounters   `json:"rest,omitzero"` // of evicted feeds
}

// SavedCounters are the counters of a reader, a family or a feed.
type SavedCounters struct {
	Feed        string       `json:"feed,omitempty"`
	UserAgent   string       `json:"user_agent,omitempty"`
	Network     netip.Prefix `json:"network,omitzero"`
	Token       string       `json:"token,omitempty"`
	Subscribers int64        `json:"subscribers,omitempty"`
	Times       [3]int64     `json:"times"` // first and last request, start of the latest poll; Unix nanoseconds
	Sums        []int64      `json:"sums"`
	Hours       []uint32     `json:"hours,omitempty"`
	Gaps        []uint32     `json:"gaps,omitempty"`
	GapRange    [2]int64     `json:"gap_range,omitzero"` // in seconds
	Identities  []byte       `json:"identities,omitempty"`
	Networks    []byte       `json:"networks,omitempty"`
}

// Snapshots returns the counters of this period and of the one before, with the limit
// most recent ones in each list. previous may be nil.
func (s *Statistics) Snapshots(now time.Time, limit int) (current, previous *Snapshot) {
	s.lock()
	defer s.mu.Unlock()
	s.turn(now)
	return s.snapshot(limit), s.previous.limited(limit)
}

// turn begins a period. If the clock goes back, it does nothing.
func (s *Statistics) turn(now time.Time) {
	before, after := s.period, periodOf(now)
	if after <= before {
		return
	}
	s.period = after
	if before == 0 {
		return
	}
	s.previous = nil
	if after == before+1 {
		s.previous = s.snapshot(s.limit)
		s.previous.Period = before
	}
	for _, t := range [...]*lru[counters]{s.tables.feeds, s.tables.families, s.tables.readers} {
		t.Purge()
	}
	s.evicted, s.forgotten = counters{}, 0
}

func (s *Statistics) snapshot(limit int) *Snapshot {
	saved := &Snapshot{Period: s.period, Rest: s.evicted.saved()}
	for _, list := range [...]struct {
		table *lru[counters]
		into  *[]SavedCounters
	}{{s.tables.feeds, &saved.Feeds}, {s.tables.families, &saved.Families}, {s.tables.readers, &saved.Readers}} {
		values := list.table.Values() // the least recent first
		for _, c := range values[max(0, len(values)-limit):] {
			*list.into = append(*list.into, c.saved())
		}
	}
	return saved
}

// limited returns the snapshot with the last limit counters of each list, which are the
// most recent.
func (s *Snapshot) limited(limit int) *Snapshot {
	if s == nil {
		return nil
	}
	short := *s
	for _, list := range [...]*[]SavedCounters{&short.Feeds, &short.Families, &short.Readers} {
		*list = (*list)[max(0, len(*list)-limit):]
	}
	return &short
}

// Recent reports whether a snapshot is of this period or the last one.
func (s *Snapshot) Recent(now time.Time) bool {
	return s != nil && (s.Period == periodOf(now) || s.Period == periodOf(now)-1)
}

// forget drops the counters of a feed.
func (s *Snapshot) forget(feed string) {
	if s == nil {
		return
	}
	feed = feed[:min(len(feed), maxFeedName)]
	for _, list := range [...]*[]SavedCounters{&s.Feeds, &s.Families, &s.Readers} {
		*list = slices.DeleteFunc(*list, func(c SavedCounters) bool { return c.Feed == feed })
	}
}

// Resume adds the counters of an earlier process for this period or the last one. The
// gaps of a reader then continue from its last poll.
func (s *Statistics) Resume(now time.Time, saved ...*Snapshot) {
	s.lock()
	defer s.mu.Unlock()
	s.turn(now)
	for _, snapshot := range saved {
		switch {
		case snapshot == nil:
		case snapshot.Period == s.period:
			counted := s.read(snapshot)
			s.evicted.merge(&counted.rest)
			for _, list := range [...]struct {
				table *lru[counters]
				from  []counters
			}{{s.tables.feeds, counted.feeds}, {s.tables.families, counted.families}, {s.tables.readers, counted.readers}} {
				resume(list.table, list.from)
			}
		case snapshot.Period == s.period-1:
			s.previous = snapshot
		}
	}
}

// resume adds counters to a table, the most recent last.
func resume(table *lru[counters], saved []counters) {
	slices.SortStableFunc(saved, func(a, b counters) int { return cmp.Compare(a.last, b.last) })
	for i := range saved {
		if c, fresh := table.find(saved[i].key); fresh {
			*c = saved[i]
		} else {
			c.merge(&saved[i])
		}
	}
}

// saved returns the counters in the form in which they are saved.
func (c *counters) saved() SavedCounters {
	if c.requests == 0 {
		return SavedCounters{}
	}
	saved := SavedCounters{
		Feed: c.feed, Network: c.network, Token: c.token, Subscribers: c.subscribers,
		Times: [...]int64{c.began, c.last, c.poll},
		Hours: withoutZeros(c.hours[:]), Gaps: withoutZeros(c.gaps.counts[:]), GapRange: [...]int64{c.gaps.low, c.gaps.high},
		Identities: c.identitySketch().bytes(), Networks: c.networkSketch().bytes(),
	}
	if c.agent.Agent != nil {
		saved.UserAgent = c.agent.UserAgent
	}
	for _, n := range c.sums() {
		saved.Sums = append(saved.Sums, *n)
	}
	return saved
}

// withoutZeros returns a copy of a list without the zeros at its end.
func withoutZeros(list []uint32) []uint32 {
	for len(list) > 0 && list[len(list)-1] == 0 {
		list = list[:len(list)-1]
	}
	return slices.Clone(list)
}

// lists are the counters of feeds, families and readers.
type lists struct {
	feeds, families, readers []counters
	rest                     counters // of evicted feeds
}

var errSnapshot = errors.New("damaged statistics of readers")

// Check returns an error if a snapshot is damaged. It must be called before a snapshot
// from a store is used.
func (s *Snapshot) Check() error {
	if s == nil {
		return nil
	}
	for _, list := range [...][]SavedCounters{s.Feeds, s.Families, s.Readers, {s.Rest}} {
		for i := range list {
			if !list[i].valid() {
				return errSnapshot
			}
		}
	}
	return nil
}

func (s *SavedCounters) valid() bool {
	var c counters
	negative := func(n int64) bool { return n < 0 }
	return len(s.Sums) <= len(c.sums()) && !slices.ContainsFunc(s.Sums, negative) &&
		len(s.Hours) <= len(c.hours) && len(s.Gaps) <= len(c.gaps.counts) && s.Network == s.Network.Masked() &&
		c.identitySketch().mergeBytes(s.Identities) == nil && c.networkSketch().mergeBytes(s.Networks) == nil
}

// read returns the counters of a snapshot.
func (s *Statistics) read(saved *Snapshot) (counted lists) {
	for _, list := range [...]struct {
		from []SavedCounters
		into *[]counters
		key  func(keys) uint64
	}{
		{saved.Feeds, &counted.feeds, func(k keys) uint64 { return k.feed }},
		{saved.Families, &counted.families, func(k keys) uint64 { return k.family }},
		{saved.Readers, &counted.readers, func(k keys) uint64 { return k.reader }},
	} {
		*list.into = make([]counters, len(list.from))
		for i := range list.from {
			c := &(*list.into)[i]
			s.readCounters(c, &list.from[i])
			c.key = list.key(s.keys(c.feedKey, &requester{agent: c.agent, network: c.network, token: c.token}))
		}
	}
	s.readCounters(&counted.rest, &saved.Rest)
	return counted
}

func (s *Statistics) readCounters(c *counters, saved *SavedCounters) {
	c.feed, c.feedKey = saved.Feed, s.seed.text(saved.Feed)
	c.agent, c.network, c.token, c.subscribers = s.agents.find(saved.UserAgent), saved.Network, saved.Token, saved.Subscribers
	c.began, c.last, c.poll = saved.Times[0], saved.Times[1], saved.Times[2]
	sums := c.sums()
	for i, n := range saved.Sums {
		*sums[i] = n
	}
	copy(c.hours[:], saved.Hours)
	copy(c.gaps.counts[:], saved.Gaps)
	for _, n := range saved.Gaps {
		c.gaps.total += int64(n)
	}
	c.gaps.low, c.gaps.high = saved.GapRange[0], saved.GapRange[1]
	_ = c.identitySketch().mergeBytes(saved.Identities) // Check has found them valid
	_ = c.networkSketch().mergeBytes(saved.Networks)
}
