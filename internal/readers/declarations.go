// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package readers

// declarations are the numbers of subscribers that aggregators declare: the sums of the
// latest number for each feed ID. The number of addresses does not matter.
type declarations struct {
	families map[[2]uint64]int64 // by feed and family
	feeds    map[uint64]int64
}

func declaredSubscribers(readers []counters) declarations {
	type key struct{ feed, family, feedID uint64 }
	latest := map[key]*counters{}
	for i := range readers {
		c := &readers[i]
		k := key{c.feedKey, c.agent.family, c.agent.feedID}
		if o := latest[k]; c.subscribers > 0 && (o == nil || c.last > o.last || c.last == o.last && c.subscribers > o.subscribers) {
			latest[k] = c
		}
	}
	d := declarations{map[[2]uint64]int64{}, map[uint64]int64{}}
	for k, c := range latest {
		d.families[[2]uint64{k.feed, k.family}] += c.subscribers
		d.feeds[k.feed] += c.subscribers
	}
	return d
}

// family returns the subscribers that a family declares for a feed.
func (d declarations) family(c *counters) int64 {
	return d.families[[2]uint64{c.feedKey, c.agent.family}]
}

// feed returns the subscribers that all aggregators declare for a feed.
func (d declarations) feed(key uint64) int64 { return d.feeds[key] }
