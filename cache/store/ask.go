// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package store

import "time"

// cause is why a URL is asked.
type cause int

const (
	byTurn     cause = iota // its feed is due, for a reader or in the background
	byHand                  // someone wants to know, or a push says that there is something new
	byRedirect              // another feed redirects to it
)

// mayAsk returns when the URL may be asked: [End] if never. It is the one rule for all polls, whatever
// place the feed has among those of its host. Its host has a rule of its own: [hostRow.mayAsk].
//
//	                                  in turn   by hand   redirect
//	next                              yes       no        no
//	last and hopped, and the floor    by next   yes       yes
//	earliest                          by next   yes       yes
//	since, and the floor              by next   yes       yes
//
// A feed that starts afresh has its next poll by what was remembered of it: see [feedRow.begin].
func (f *feedRow) mayAsk(why cause, floor time.Duration, since Time) Time {
	if why == byTurn {
		return f.next
	}
	return max(f.earliest, max(f.last, f.hopped, since).Add(floor))
}
