// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache

// UnreadDrift is by how much the count of feeds without a version is wrong.
func (c *Cache) UnreadDrift() int64 {
	n := c.unread.Load()
	c.feeds.Range(func(_, v any) bool {
		if f := v.(*Feed); !f.shielded() && f.state.Load().Version == 0 {
			n--
		}
		return true
	})
	return n
}
