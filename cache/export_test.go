// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache

// Waiting returns how many polls wait for their turn.
func (c *Cache) Waiting() int64 { return c.queued.inUse() }

// PollIfDue has the feed's poll wait for its turn as a reader does that has seen it due, and reports whether it does.
func PollIfDue(f *Feed) bool {
	p, _ := f.start(pollRequest{})
	return p != nil
}
