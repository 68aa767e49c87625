// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package readers

// maxAgents is how many User-Agents are remembered as read. An agent that
// declares its subscribers has a new User-Agent with each new number.
const maxAgents = 4096

// agents remembers User-Agents that have been read, so that a known one costs a
// hash and a look-up.
type agents struct {
	seed  seed
	table *table[agent]
}

// agent is a User-Agent that was read, with its keys.
type agent struct {
	*Agent
	key    uint64 // of the User-Agent
	family uint64 // of the family
	feedID uint64 // of the feed ID
}

func newAgents(s seed) agents { return agents{s, newTable[agent](maxAgents)} }

func (a agents) find(userAgent string) agent {
	userAgent = userAgent[:min(len(userAgent), maxAgent)]
	key := a.seed.text(userAgent)
	var found agent
	a.table.update(key, func(known *agent, fresh bool) {
		if fresh {
			read := ParseAgent(userAgent)
			*known = agent{&read, key, a.seed.text(read.Family), a.seed.text(read.FeedID)}
		}
		found = *known
	})
	return found
}
