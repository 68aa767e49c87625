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

	notes     notes        // requests that are not in all records yet
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
// allocates nothing. It waits for nobody: see [notes].
func (l *Ledger) Note(r Request) {
	n := note{Request: r, visitor: l.visitor(&r), feedKey: l.seed.text(r.Feed)}
	family := join(n.feedKey, n.visitor.agent.family)
	n.keys = [...]uint64{
		n.feedKey, family,
		join(join(family, n.visitor.networkKey), join(n.visitor.agent.feedID, l.seed.text(r.Token))),
	}
	if l.enter(&n, l.notes.crowded()) {
		l.enterNotes(false)
	} else {
		l.notes.add(n)
	}
}

// enter enters a request into the records where it is missing. It reports false where
// it still is in one, because somebody else uses that and it may not wait.
func (l *Ledger) enter(n *note, wait bool) bool {
	all := true
	for i, t := range [...]*table[record]{l.feeds, l.families, l.readers} {
		if n.entered[i] {
			continue
		}
		change := func(c *record, fresh bool) {
			if fresh {
				if n.name == "" {
					n.name = strings.Clone(n.Feed[:min(len(n.Feed), maxFeedName)])
				}
				c.key, c.feed, c.feedKey = n.keys[i], n.name, n.feedKey
			}
			n.name = c.feed // shared by the records of the feed's readers
			c.note(&n.Request, &n.visitor)
		}
		if wait {
			t.update(n.keys[i], change)
		} else if !t.try(n.keys[i], change) {
			all = false
			continue
		}
		n.entered[i] = true
	}
	return all
}

// enterNotes enters the requests that were put off. Where it may not wait, it leaves them
// alone from the first one on whose record is still in use.
func (l *Ledger) enterNotes(wait bool) {
	for n := l.notes.takeAll(); n != nil; {
		next := n.next
		if l.enter(n, wait) {
			l.notes.count.Add(-1)
			n = next
			continue
		}
		for ; n != nil; n = next {
			next = n.next
			l.notes.put(n)
		}
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
	l.enterNotes(true)
	key := l.seed.text(feed)
	ofFeed := func(c *record) bool { return c.feedKey == key }
	l.readers.drop(ofFeed)
	l.families.drop(ofFeed)
	l.feeds.drop(ofFeed)
	l.mu.Lock()
	l.left = slices.DeleteFunc(l.left, func(c record) bool { return c.feedKey == key })
	l.mu.Unlock()
}
