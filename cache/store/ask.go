// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package store

import "time"

// mayAsk returns when the URL may be asked by hand or because of a push: [End] if
// never. A feed that is due in its turn is asked when its next poll is, which has all the other moments in it.
// It is the one rule for all polls, whatever place the feed has among those of its host. Its host has a rule
// of its own: [hostRow.mayAsk]. A feed that starts afresh has its next poll by what was remembered of it: see
// [feedRow.begin].
func (f *feedRow) mayAsk(floor time.Duration, since Time) Time {
	return max(f.earliest, max(f.last, since).Add(floor))
}
