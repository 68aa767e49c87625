// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache

// Waiting returns how many polls wait for their turn.
func (c *Cache) Waiting() int64 { return c.queued.inUse() }
