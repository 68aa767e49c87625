// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package readers

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// Options bound a [Ledger]. The zero value has the defaults.
type Options struct {
	// Readers is how many readers are remembered, one that asks for two feeds being
	// two. Each costs about 1 KiB. Default: 8192.
	Readers int
	// Feeds is how many feeds are. Default: an eighth of Readers.
	Feeds int
	// Seed keys the hashes, so that two runs over the same log agree even where
	// more readers come than are remembered. Default: drawn at random.
	Seed uint64
}

const (
	defaultReaders = 8192
	// maxFeedName is how much of a feed's name is kept, in bytes. Feeds with the
	// same beginning are still told apart.
	maxFeedName = 2048
)

// Ledger keeps what readers did: for each reader of each feed, for each
// User-Agent family of each feed, and for each feed. A reader is a family at a
// network (IPv4 /24, IPv6 /64) with a feed ID and a token.
//
// Its memory is bounded: whoever was longest not seen is forgotten first, while
// the sums over all stay right. What was counted can be taken out of it, for a store. No full address is stored: hashes of them, with a
// key that is not told, pass through estimators of how many there are.
//
// It has no clock: time comes with the requests. It is safe for concurrent use.
type Ledger struct {
	seed     seed
	agents   agents
	readers  *table[record]
	families *table[record]
	feeds    *table[record]

	forgotten atomic.Int64 // readers that gave way

	mu    sync.Mutex
	past  record   // of feeds that gave way
	left  []record // of those, the ones that the next Take can still tell apart
	taken bool     // somebody calls Take
	limit int
}

// NewLedger returns a ledger in which nobody has asked for anything.
func NewLedger(o Options) *Ledger {
	if o.Readers <= 0 {
		o.Readers = defaultReaders
	}
	if o.Feeds <= 0 {
		o.Feeds = max(o.Readers/8, 1)
	}
	s := newSeed(o.Seed)
	l := &Ledger{
		seed: s, agents: newAgents(s), limit: o.Readers,
		readers: newTable[record](o.Readers), families: newTable[record](max(o.Readers/4, 1)), feeds: newTable[record](o.Feeds),
	}
	l.readers.evict = func(*record) { l.forgotten.Add(1) }
	l.feeds.evict = l.leave
	return l
}

// leave keeps the sums of a feed that gives way.
func (l *Ledger) leave(c *record) {
	if c.requests == 0 {
		return // they have been taken
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.taken && len(l.left) < maxLeft {
		l.left = append(l.left, *c)
		return
	}
	l.past.merge(c)
}

// maxLeft bounds the feeds that give way between two calls of Take, at about 1 KiB each.
const maxLeft = 8192

// Note records a request that has been answered. For a known reader it
// allocates nothing.
func (l *Ledger) Note(r Request) {
	v := l.visitor(&r)
	feedKey := l.seed.text(r.Feed)
	var name string
	l.feeds.update(feedKey, func(c *record, fresh bool) {
		if fresh {
			c.key = feedKey
			c.feed, c.feedKey = strings.Clone(r.Feed[:min(len(r.Feed), maxFeedName)]), feedKey
		}
		name = c.feed // shared by the records of the feed's readers
		c.note(&r, &v)
	})
	family := join(feedKey, v.agent.family)
	for _, part := range [...]struct {
		table *table[record]
		key   uint64
	}{
		{l.families, family},
		{l.readers, join(join(family, v.networkKey), join(v.agent.feedID, l.seed.text(r.Token)))},
	} {
		part.table.update(part.key, func(c *record, fresh bool) {
			if fresh {
				c.key, c.feed, c.feedKey = part.key, name, feedKey
			}
			c.note(&r, &v)
		})
	}
}

func (l *Ledger) visitor(r *Request) visitor {
	v := visitor{agent: l.agents.find(r.UserAgent), network: network(r.Client), token: r.Token, hour: r.Time.UTC().Hour()}
	v.networkKey = l.seed.address(v.network.Addr())
	v.identity = join(join(v.agent.key, l.seed.address(r.Client.Unmap())), l.seed.text(r.Token))
	return v
}

// Forget drops what is known of a feed's readers.
func (l *Ledger) Forget(feed string) {
	key := l.seed.text(feed)
	ofFeed := func(c *record) bool { return c.feedKey == key }
	l.readers.drop(ofFeed)
	l.families.drop(ofFeed)
	l.feeds.drop(ofFeed)
	l.mu.Lock()
	l.left = slices.DeleteFunc(l.left, func(c record) bool { return c.feedKey == key })
	l.mu.Unlock()
}
