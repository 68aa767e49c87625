// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package readers

import "sync/atomic"

// maxAgents is the size of the cache of parsed User-Agents. An aggregator that declares
// its subscribers has a new User-Agent with each new number.
const maxAgents = 4096

// agents caches parsed User-Agents, without a lock. The hash of a User-Agent selects its
// place in the cache; a User-Agent with the same place replaces it.
type agents struct {
	seed   seed
	places *[maxAgents]atomic.Pointer[agent]
}

// agent is a parsed User-Agent with its keys.
type agent struct {
	*Agent
	key    uint64 // of the User-Agent
	family uint64 // of the family
	feedID uint64 // of the feed ID
}

func newAgents(s seed) agents { return agents{s, new([maxAgents]atomic.Pointer[agent])} }

func (a agents) find(userAgent string) agent {
	userAgent = userAgent[:min(len(userAgent), maxAgent)]
	key := a.seed.text(userAgent)
	place := &a.places[key%maxAgents]
	if known := place.Load(); known != nil && known.key == key {
		return *known
	}
	read := ParseAgent(userAgent)
	found := &agent{&read, key, a.seed.text(read.Family), a.seed.text(read.FeedID)}
	place.Store(found)
	return *found
}
