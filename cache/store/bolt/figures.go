// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package bolt

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"go.etcd.io/bbolt"

	"github.com/feedpollard/pollard/figures"
)

// bucketFigures has figures by their kind and key. An earlier version, which knows
// nothing of it, leaves it alone.
const bucketFigures = "figures"

// pairs are the figures in a transaction.
type pairs struct{ *bbolt.Bucket }

func figureKey(r figures.Ref) []byte { return append([]byte{byte(r.Kind)}, r.Key...) }

func (p pairs) Get(r figures.Ref) ([]byte, error)     { return p.Bucket.Get(figureKey(r)), nil }
func (p pairs) Put(r figures.Ref, value []byte) error { return p.Bucket.Put(figureKey(r), value) }
func (p pairs) Delete(r figures.Ref) error            { return p.Bucket.Delete(figureKey(r)) }

func (p pairs) has(r figures.Ref) bool { return p.Bucket.Get(figureKey(r)) != nil }

// changeFigures makes a change in a transaction of its own: figures have nothing to do
// with the schedule.
func (s *Store) changeFigures(ctx context.Context, do func(figures.Pairs) error) error {
	if err := s.usable(ctx); err != nil {
		return err
	}
	err := updateDB(s.db, func(tx *bbolt.Tx) error {
		b, err := tx.CreateBucketIfNotExists([]byte(bucketFigures))
		if err != nil {
			return err
		}
		return do(pairs{b})
	})
	if err != nil {
		return fmt.Errorf("writing figures to %s: %w", s.db.Path(), err)
	}
	return nil
}

// AddFigures implements [figures.Store].
func (s *Store) AddFigures(ctx context.Context, b *figures.Batch) error {
	return s.changeFigures(ctx, b.Apply)
}

// FigureSeed implements [figures.Store].
func (s *Store) FigureSeed(ctx context.Context) (seed uint64, err error) {
	if seed, err = s.knownSeed(ctx); seed != 0 || err != nil {
		return seed, err // a disk that is full is no reason to have none
	}
	err = s.changeFigures(ctx, func(p figures.Pairs) (err error) {
		seed, err = figures.Seed(p)
		return err
	})
	return seed, err
}

func (s *Store) knownSeed(ctx context.Context) (seed uint64, err error) {
	if err := s.usable(ctx); err != nil {
		return 0, err
	}
	err = viewDB(s.db, func(tx *bbolt.Tx) (err error) {
		if b := tx.Bucket([]byte(bucketFigures)); b != nil && (pairs{b}).has(figures.SeedRef) {
			seed, err = figures.Seed(pairs{b})
		}
		return err
	})
	return seed, err
}

// Figures implements [figures.Store].
func (s *Store) Figures(ctx context.Context, kind figures.Kind, prefix string) (found []figures.Figure, err error) {
	if err := s.usable(ctx); err != nil {
		return nil, err
	}
	err = viewDB(s.db, func(tx *bbolt.Tx) error {
		b := tx.Bucket([]byte(bucketFigures))
		if b == nil {
			return nil
		}
		from := figureKey(figures.Ref{Kind: kind, Key: prefix})
		c := b.Cursor()
		for k, v := c.Seek(from); bytes.HasPrefix(k, from); k, v = c.Next() {
			if f, err := figures.Decode(figures.Ref{Kind: kind, Key: string(k[1:])}, v); err == nil {
				found = append(found, f)
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading figures from %s: %w", s.db.Path(), err)
	}
	return slices.Clip(found), nil
}

// Interface guard.
var _ figures.Store = (*Store)(nil)
