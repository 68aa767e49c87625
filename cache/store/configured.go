// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"time"
)

// Nodes may have different configurations, and only a node that has a feed in its own says so. So a feed is
// configured for a time, which such a node renews. After it, a sweep takes the feed for one of its readers'.
const configuredFor = 48 * time.Hour

// Configured implements [Store].
func (d *Database) Configured(ctx context.Context) ([]ID, error) {
	return read(ctx, d, func(tx Tx) (ids []ID, err error) {
		err = tx.Query(`select id from feed where configured = 1 and configured_until > ?1 order by id`, one(int64(tx.Now().Add(configuredFor/2))), func(_ int, row Row) error {
			var id []byte
			err := row.Scan(&id)
			ids = append(ids, ID{})
			copy(ids[len(ids)-1][:], id)
			return err
		})
		return ids, err
	})
}

// configure records that a node has the feed in its configuration. It reports whether that changes the row.
func (f *feedRow) configure(now Time) (changed bool) {
	if f.configured && f.configuredUntil > now.Add(configuredFor/2) {
		return false
	}
	f.configured, f.configuredUntil = true, now.Add(configuredFor)
	return true
}

// lapse ends the time for which the feed is configured if it has passed. It reports whether that changes the row.
func (f *feedRow) lapse(now Time) (changed bool) {
	switch {
	case !f.configured:
		return false
	case f.configuredUntil == Never: // a node of an earlier edition has said so
		return f.configure(now)
	}
	f.configured = f.configuredUntil > now
	return !f.configured
}
