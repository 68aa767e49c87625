// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package bolt

import (
	"bytes"
	"context"
	"fmt"

	"go.etcd.io/bbolt"

	"github.com/feedpollard/pollard/cache/store"
)

// bucketCounters has the statistics of nodes by node.
const bucketCounters = "counters"

// SaveCounters implements [store.Store].
func (s *Store) SaveCounters(ctx context.Context, node string, data []byte) error {
	if len(data) > store.MaxCounters {
		return store.ErrCountersTooLarge
	}
	if err := s.usable(ctx); err != nil {
		return err
	}
	err := updateDB(s.db, func(tx *bbolt.Tx) error {
		b, err := tx.CreateBucketIfNotExists([]byte(bucketCounters))
		if err != nil {
			return err
		}
		if len(data) == 0 {
			return b.Delete([]byte(node))
		}
		return b.Put([]byte(node), data)
	})
	if err != nil {
		return fmt.Errorf("writing counters to %s: %w", s.db.Path(), err)
	}
	return nil
}

// Counters implements [store.Store].
func (s *Store) Counters(ctx context.Context) (map[string][]byte, error) {
	if err := s.usable(ctx); err != nil {
		return nil, err
	}
	counters := make(map[string][]byte)
	err := viewDB(s.db, func(tx *bbolt.Tx) error {
		b := tx.Bucket([]byte(bucketCounters))
		if b == nil {
			return nil
		}
		return b.ForEach(func(node, data []byte) error {
			counters[string(node)] = bytes.Clone(data)
			return nil
		})
	})
	if err != nil {
		return nil, fmt.Errorf("reading counters from %s: %w", s.db.Path(), err)
	}
	return counters, nil
}
