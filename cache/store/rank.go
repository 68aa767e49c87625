// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package store

// Rank is how much claim a feed has on all that can run out: polls of a host, polls in flight, bytes,
// space and the patience of a host. 1 is the best.
type Rank int

// The ranks of feeds.
const (
	RankOperator  Rank = iota + 1 // configured or listed
	RankNamed                     // of a shield, a token or a private address, and established
	RankNamedNew                  // of one of those, and not established
	RankPublic                    // of public networks, and established
	RankPublicNew                 // of public networks, and not established
)

// ranks is how many there are.
const ranks = int(RankPublicNew)

// rankColumn is [feedRow.rank] in SQL. The index feed_due has the same expression.
const rankColumn = `case when configured = 1 or owner / 1152921504606846976 = 5 then 1
	when owner / 1152921504606846976 in (2, 3, 4) then case when not_established = 0 then 2 else 3 end
	when not_established = 0 then 4 else 5 end`

// Established reports whether feeds of the rank are configured, listed, or read on three of the last 30 days by
// someone of their best kind.
func (r Rank) Established() bool { return r == RankOperator || r == RankNamed || r == RankPublic }

// rank returns the rank of the feed, as of the last [feedRow.classify].
func (f *feedRow) rank() Rank {
	if f.configured {
		return RankOperator
	}
	return f.owner.Rank(f.established)
}
