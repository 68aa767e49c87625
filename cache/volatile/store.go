// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

// Package volatile is a store that keeps records in memory and forgets them with
// the process. It serves simulations on a virtual clock and tests; a gateway that
// polls real origins needs a durable store, or a crash makes it poll again.
package volatile

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/feedpollard/pollard/cache"
)

// Store implements [cache.Store]. The zero value is ready to use.
type Store struct {
	mu      sync.RWMutex // guards all
	records map[cache.ID]cache.Record
	bodies  map[cache.ID]cache.Body
	latest  time.Time
}

// Reserve implements [cache.Store].
func (s *Store) Reserve(ctx context.Context, claims []cache.Claim) ([]cache.Grant, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.records == nil {
		s.records, s.bodies = make(map[cache.ID]cache.Record), make(map[cache.ID]cache.Body)
	}
	grants := make([]cache.Grant, len(claims))
	for i, c := range claims {
		r := s.records[c.ID]
		if r.Token == c.Token {
			r.ID, r.URL, r.Token, r.Next = c.ID, c.URL, r.Token+1, ceil(c.Next)
			s.records[c.ID] = r
			s.saw(c.Now)
			grants[i].OK = true
		}
		grants[i].Schedule = r.Schedule
	}
	return grants, nil
}

// Commit implements [cache.Store].
func (s *Store) Commit(ctx context.Context, o cache.Outcome) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok := s.records[o.ID]
	if !ok || r.Token != o.Token {
		return cache.ErrFenced
	}
	r.Next, r.Memo = ceil(o.Next), slices.Clone(o.Memo)
	if o.Body != nil {
		r.Version = o.Body.Version
		s.bodies[o.ID] = *o.Body
	}
	s.records[o.ID] = r
	s.saw(o.Now)
	return nil
}

// Load implements [cache.Store].
func (s *Store) Load(_ context.Context, id cache.ID) (cache.Record, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	r, ok := s.records[id]
	if !ok {
		return r, cache.ErrNoRecord
	}
	r.Memo = slices.Clone(r.Memo)
	return r, nil
}

// Body implements [cache.Store].
func (s *Store) Body(_ context.Context, id cache.ID) (cache.Body, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	b, ok := s.bodies[id]
	if !ok {
		return b, cache.ErrNoBody
	}
	return cache.Body{Version: b.Version, Coded: maps.Clone(b.Coded)}, nil
}

// Scan implements [cache.Store].
func (s *Store) Scan(_ context.Context, visit func(cache.Record) error) error {
	s.mu.RLock()
	all := slices.Collect(maps.Values(s.records))
	s.mu.RUnlock()
	for _, r := range all {
		r.Memo = slices.Clone(r.Memo)
		if err := visit(r); err != nil {
			return err
		}
	}
	return nil
}

// Forget implements [cache.Store].
func (s *Store) Forget(_ context.Context, ids []cache.ID) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range ids {
		delete(s.records, id)
		delete(s.bodies, id)
	}
	return nil
}

// Latest implements [cache.Store].
func (s *Store) Latest(context.Context) (time.Time, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.latest, nil
}

// Close implements [cache.Store]. What is stored stays until the store itself goes.
func (s *Store) Close() error { return nil }

func (s *Store) saw(now time.Time) {
	if now.After(s.latest) {
		s.latest = now.Round(0)
	}
}

// ceil is a time to the millisecond, rounded up: a poll is late rather than early.
func ceil(t time.Time) time.Time {
	t = t.Round(0).UTC()
	if down := t.Truncate(time.Millisecond); !down.Equal(t) {
		return down.Add(time.Millisecond)
	}
	return t
}

var _ cache.Store = (*Store)(nil)
