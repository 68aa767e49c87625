// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package readers

import (
	"strings"
	"sync"
)

// Options bound [Statistics]. The zero value has the defaults.
type Options struct {
	// Readers bounds the readers that are remembered. A reader of two feeds counts twice.
	// Each needs about 1 KiB. Default: 8192.
	Readers int
	// Feeds bounds the feeds that are remembered. Default: an eighth of Readers.
	Feeds int
	// Seed keys the hashes. With the same seed, two runs over a log have the same result
	// even if readers are evicted. Default: random.
	Seed uint64
}

const (
	defaultReaders = 8192
	// maxFeedName is how much of a feed's name is kept, in bytes. Feeds are distinguished
	// by a hash of the whole name.
	maxFeedName = 2048
)

// Statistics count requests for each reader of each feed, for each User-Agent family of
// each feed, and for each feed. A reader is a family in a network (IPv4 /24, IPv6 /48)
// with a feed ID and a token.
//
// Their memory is bounded: the least recently seen reader is evicted first, and the
// totals still include it. Full addresses are not kept: sketches of their hashes estimate
// their number.
//
// Statistics use the times of requests. They are safe for concurrent use.
type Statistics struct {
	seed    seed
	agents  agents
	limit   int
	waiting chan entry // requests that found the lock taken

	mu        sync.Mutex // guards all below
	tables    tables
	evicted   counters  // of feeds that were evicted
	forgotten int64     // readers that were evicted
	period    int64     // the current period; 0: not known
	previous  *Snapshot // of the period before
}

// tables are the counters by key.
type tables struct {
	feeds, families, readers *lru[counters]
}

// maxWaiting bounds the requests that wait to be counted, at about 350 bytes each.
const maxWaiting = 256

// NewStatistics returns statistics without any requests.
func NewStatistics(o Options) *Statistics {
	if o.Readers <= 0 {
		o.Readers = defaultReaders
	}
	if o.Feeds <= 0 {
		o.Feeds = max(o.Readers/8, 1)
	}
	s := &Statistics{seed: newSeed(o.Seed), limit: o.Readers, waiting: make(chan entry, maxWaiting)}
	s.agents = newAgents(s.seed)
	s.tables = tables{
		feeds:    newLRU(o.Feeds, func(c *counters) { s.evicted.merge(c) }),
		families: newLRU[counters](max(o.Readers/4, 1), nil),
		readers:  newLRU(o.Readers, func(*counters) { s.forgotten++ }),
	}
	return s
}

// entry is a request that is to be counted.
type entry struct {
	Request
	who requester
}

// keys are the keys of the counters of a request.
type keys struct{ feed, family, reader uint64 }

func (s *Statistics) keys(feed uint64, who *requester) keys {
	family := join(feed, who.agent.family)
	network := s.seed.address(who.network.Addr())
	return keys{feed, family, join(join(family, network), join(who.agent.feedID, s.seed.text(who.token)))}
}

// Record counts a request that has been answered. For a known reader it does not
// allocate. If the lock is taken, the request is queued and a later call counts it, so
// that the handler does not wait.
func (s *Statistics) Record(r Request) {
	e := entry{r, s.requester(&r)}
	if !s.mu.TryLock() {
		select {
		case s.waiting <- e:
			return
		default:
			s.mu.Lock() // the queue is full
		}
	}
	defer s.mu.Unlock()
	s.countWaiting(8)
	s.count(&e)
}

// countWaiting counts up to n queued requests.
func (s *Statistics) countWaiting(n int) {
	for range n {
		select {
		case e := <-s.waiting:
			s.count(&e)
		default:
			return
		}
	}
}

func (s *Statistics) count(e *entry) {
	k := s.keys(s.seed.text(e.Feed), &e.who)
	feed, fresh := s.tables.feeds.find(k.feed)
	if fresh {
		feed.key, feed.feedKey, feed.feed = k.feed, k.feed, strings.Clone(e.Feed[:min(len(e.Feed), maxFeedName)])
	}
	feed.count(&e.Request, &e.who)
	family, fresh := s.tables.families.find(k.family)
	if fresh {
		family.key, family.feedKey, family.feed = k.family, k.feed, feed.feed
	}
	family.count(&e.Request, &e.who)
	reader, fresh := s.tables.readers.find(k.reader)
	if fresh {
		reader.key, reader.feedKey, reader.feed = k.reader, k.feed, feed.feed
	}
	reader.count(&e.Request, &e.who)
}

func (s *Statistics) requester(r *Request) requester {
	return requester{
		agent: s.agents.find(r.UserAgent), network: network(r.Client), token: r.Token,
		identity: identity(r), hour: r.Time.UTC().Hour(),
	}
}

// lock locks the counters and counts all queued requests.
func (s *Statistics) lock() {
	s.mu.Lock()
	s.countWaiting(maxWaiting)
}

// Forget drops the counters of a feed and its readers.
func (s *Statistics) Forget(feed string) {
	s.lock()
	defer s.mu.Unlock()
	key := s.seed.text(feed)
	for _, t := range [...]*lru[counters]{s.tables.feeds, s.tables.families, s.tables.readers} {
		for _, c := range t.Values() {
			if c.feedKey == key {
				t.Remove(c.key)
			}
		}
	}
	s.previous.forget(feed)
}
