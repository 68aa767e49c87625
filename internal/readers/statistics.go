// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

// Package readers counts who asks for feeds, how often and how well, and limits how often
// they may ask.
//
//   - A [Request] is what is counted of one request, and an [Agent] the program that made it.
//   - [Statistics] count the requests of each feed and reader, for shields and replays.
//     [Statistics.Report] makes the lists that pages and commands show, with a score for each
//     program.
//   - A [Limiter] applies the limits of a shield.
//   - [FeedCounter] counts the subscribers of a feed, for the User-Agent of its polls, by hashes
//     that a [Key] makes.
package readers

import (
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/feedpollard/pollard/internal/feedurl"
)

const (
	// Period is how long requests of a running instance are counted together. Reports
	// cover this period and the last one, so that older requests of a reader do not
	// affect its score. Periods are the same on all nodes.
	Period = 28 * 24 * time.Hour

	// maxReaders is how many readers are remembered, at about 1 KiB each. A reader of two feeds
	// counts twice. Feeds are bounded to an eighth of it.
	maxReaders = 8192
	// maxFeedName is how much of a feed's name is kept, in bytes.
	maxFeedName = 2048
	// maxAgents is how many parsed User-Agents are remembered. An aggregator that declares
	// its subscribers has a new one with each new number.
	maxAgents = 4096
)

// Statistics count requests for each feed, for each User-Agent family of each feed, and
// for each reader of each feed. A reader is a family in a network (IPv4 /24, IPv6 /48)
// with a feed ID.
//
// Their memory is bounded: the least recently seen counters are evicted. Full addresses
// are not kept: sketches of their hashes estimate their number.
//
// Statistics use the times of requests. They are safe for concurrent use.
type Statistics struct {
	seed   seed
	limit  int
	length time.Duration // of a period

	mu     sync.Mutex // guards all below
	agents lru[agent] // by the hash of the User-Agent
	lists  [3]lru[Counters]
}

// The lists of [Statistics] and of a [Snapshot].
const (
	ofFeeds = iota
	ofFamilies
	ofReaders
)

// NewStatistics returns statistics without any requests. Requests are counted together for a
// period; 0: all are.
func NewStatistics(period time.Duration) *Statistics { return newStatistics(period, maxReaders) }

func newStatistics(period time.Duration, limit int) *Statistics {
	return &Statistics{
		seed: newSeed(), limit: limit, length: period, agents: newLRU[agent](maxAgents),
		lists: [...]lru[Counters]{ofFeeds: newLRU[Counters](limit / 8), ofFamilies: newLRU[Counters](limit / 4), ofReaders: newLRU[Counters](limit)},
	}
}

// lru holds values by hash, and evicts the least recently used ones.
type lru[V any] struct {
	*simplelru.LRU[uint64, *V]
}

func newLRU[V any](capacity int) lru[V] {
	values, err := simplelru.NewLRU[uint64, *V](max(capacity, 1), nil)
	if err != nil {
		panic(err) // only for a capacity below 1
	}
	return lru[V]{values}
}

// find returns the value of a key, and adds a zero value if the key is new.
func (l lru[V]) find(key uint64) (value *V, fresh bool) {
	if value, ok := l.Get(key); ok {
		return value, false
	}
	value = new(V)
	l.Add(key, value)
	return value, true
}

// Record counts a request that has been answered. For a known reader it does not allocate.
func (s *Statistics) Record(r Request) {
	r.Feed = r.Feed[:min(len(r.Feed), maxFeedName)]
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count(&r)
}

func (s *Statistics) count(r *Request) {
	userAgent := shortened(r.UserAgent)
	by, fresh := s.agents.find(s.seed.text(userAgent))
	if fresh {
		*by = s.parse(userAgent)
	}
	period, keys, feed, identity := s.period(r.Time), s.keys(r.Feed, by, feedurl.Network(r.Client)), "", identity(r)
	for i, key := range keys {
		c, fresh := s.lists[i].find(join(key, uint64(period)))
		if fresh {
			if feed == "" {
				feed = strings.Clone(r.Feed)
			}
			c.Period, c.Feed, c.key, c.feedKey = period, feed, key, keys[ofFeeds]
		}
		feed = c.Feed
		c.count(r, by, identity)
	}
}

func (s *Statistics) parse(userAgent string) agent {
	a := ParseAgent(userAgent)
	return agent{a, s.seed.text(a.Family), s.seed.text(a.FeedID)}
}

func (s *Statistics) period(at time.Time) int64 {
	if s.length <= 0 {
		return 0
	}
	return at.Unix() / int64(s.length/time.Second)
}

// keys returns the keys of a request in each list, which are the same in all periods.
func (s *Statistics) keys(feed string, by *agent, network netip.Prefix) (keys [3]uint64) {
	keys[ofFeeds] = s.seed.text(feed)
	keys[ofFamilies] = join(keys[ofFeeds], by.family)
	keys[ofReaders] = join(join(keys[ofFamilies], s.seed.address(network.Addr())), by.feedID)
	return keys
}

// Forget drops the counters of a feed and its readers.
func (s *Statistics) Forget(feed string) {
	key := s.seed.text(feed[:min(len(feed), maxFeedName)])
	s.drop(func(c *Counters) bool { return c.feedKey == key })
}

func (s *Statistics) drop(match func(*Counters) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, list := range s.lists {
		for _, key := range list.Keys() {
			if c, _ := list.Peek(key); match(c) {
				list.Remove(key)
			}
		}
	}
}

// Snapshot has the counters of [Statistics] in the form in which they are saved and
// merged with those of other nodes: of feeds, of families and of readers, the most
// recently used ones last.
type Snapshot [3][]Counters

// Snapshot drops the counters of periods before the last one, and returns the limit most
// recent ones of each list.
func (s *Statistics) Snapshot(now time.Time, limit int) (saved Snapshot) {
	s.drop(func(c *Counters) bool { return c.Period < s.period(now)-1 })
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.snapshot(limit)
}

func (s *Statistics) snapshot(limit int) (saved Snapshot) {
	for i, list := range s.lists {
		values := list.Values()
		for _, c := range values[max(0, len(values)-limit):] {
			saved[i] = append(saved[i], *c)
		}
	}
	return saved
}

// Resume adds the counters that an earlier process has saved. The gaps of a reader then
// continue from its last poll.
func (s *Statistics) Resume(saved Snapshot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, list := range saved {
		list = slices.Clone(list)
		slices.SortStableFunc(list, func(a, b Counters) int { return a.Last.Compare(b.Last) })
		for j := range list {
			s.identify(&list[j], i)
			if c, fresh := s.lists[i].find(join(list[j].key, uint64(list[j].Period))); fresh {
				*c = list[j]
			} else {
				c.merge(&list[j])
			}
		}
	}
}

// identify sets what is not saved of counters in a list.
func (s *Statistics) identify(c *Counters, list int) {
	if c.agent != nil {
		return
	}
	by := s.parse(c.UserAgent)
	keys := s.keys(c.Feed, &by, c.Network)
	c.agent, c.key, c.feedKey = &by, keys[list], keys[ofFeeds]
}
