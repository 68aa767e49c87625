// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

// Package volatile is a store that keeps records in memory and forgets them with
// the process. It serves simulations on a virtual clock and tests; a gateway that
// polls real origins needs a durable store, or a crash makes it poll again.
package volatile

import (
	"context"
	"errors"
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
	closed  bool
}

// ErrClosed says that the store has been closed.
var ErrClosed = errors.New("store: closed")

// Reopen returns an open store with what this one holds: a restart, for those who
// simulate one. The store itself must have been closed.
func (s *Store) Reopen() *Store {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return &Store{records: s.records, bodies: s.bodies, latest: s.latest}
}

// usable reports why an operation may not be carried out. The caller holds mu.
func (s *Store) usable(ctx context.Context) error {
	if s.closed {
		return ErrClosed
	}
	return ctx.Err()
}

// Reserve implements [cache.Store].
func (s *Store) Reserve(ctx context.Context, claims []cache.Claim) ([]cache.Grant, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable(ctx); err != nil {
		return nil, err
	}
	if s.records == nil {
		s.records, s.bodies = make(map[cache.ID]cache.Record), make(map[cache.ID]cache.Body)
	}
	grants := make([]cache.Grant, len(claims))
	granted, latest := false, time.Time{}
	for i, c := range claims {
		r := s.records[c.ID]
		first := !slices.ContainsFunc(claims[:i], func(before cache.Claim) bool { return before.ID == c.ID })
		if first && r.Token == c.Token {
			if r.Token == 0 {
				r.ID, r.URL = c.ID, c.URL
			}
			r.Token, r.Next = r.Token+1, ceil(c.Next)
			s.records[c.ID] = r
			grants[i].OK, granted = true, true
		}
		grants[i].Schedule = r.Schedule
		if c.Now.After(latest) {
			latest = c.Now
		}
	}
	if granted {
		s.saw(latest)
	}
	return grants, nil
}

// Commit implements [cache.Store].
func (s *Store) Commit(ctx context.Context, o cache.Outcome) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable(ctx); err != nil {
		return err
	}
	if o.Body != nil && o.Body.Version == 0 {
		return errors.New("store: version 0 is no version")
	}
	r, ok := s.records[o.ID]
	if !ok || r.Token != o.Token {
		return cache.ErrFenced
	}
	r.Next, r.Memo = ceil(o.Next), slices.Clone(o.Memo)
	if o.Body != nil {
		r.Version = o.Body.Version
		s.bodies[o.ID] = copied(*o.Body)
	}
	s.records[o.ID] = r
	s.saw(o.Now)
	return nil
}

// Load implements [cache.Store].
func (s *Store) Load(ctx context.Context, id cache.ID) (cache.Record, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if err := s.usable(ctx); err != nil {
		return cache.Record{}, err
	}
	r, ok := s.records[id]
	if !ok {
		return r, cache.ErrNoRecord
	}
	r.Memo = slices.Clone(r.Memo)
	return r, nil
}

// Body implements [cache.Store].
func (s *Store) Body(ctx context.Context, id cache.ID) (cache.Body, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if err := s.usable(ctx); err != nil {
		return cache.Body{}, err
	}
	b, ok := s.bodies[id]
	if !ok {
		return b, cache.ErrNoBody
	}
	return copied(b), nil
}

// Scan implements [cache.Store].
func (s *Store) Scan(ctx context.Context, visit func(cache.Record) error) error {
	s.mu.RLock()
	err := s.usable(ctx)
	all := slices.Collect(maps.Values(s.records))
	s.mu.RUnlock()
	if err != nil {
		return err
	}
	for _, r := range all {
		if err := ctx.Err(); err != nil {
			return err
		}
		r.Memo = slices.Clone(r.Memo)
		if err := visit(r); err != nil {
			return err
		}
	}
	return nil
}

// Forget implements [cache.Store].
func (s *Store) Forget(ctx context.Context, ids []cache.ID) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable(ctx); err != nil {
		return err
	}
	for _, id := range ids {
		delete(s.records, id)
		delete(s.bodies, id)
	}
	return nil
}

// Latest implements [cache.Store].
func (s *Store) Latest(ctx context.Context) (time.Time, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if err := s.usable(ctx); err != nil {
		return time.Time{}, err
	}
	return s.latest, nil
}

// Close implements [cache.Store].
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return nil
}

// copied is a body that shares nothing with the original.
func copied(b cache.Body) cache.Body {
	c := cache.Body{Version: b.Version, Coded: make(map[string][]byte, len(b.Coded))}
	for coding, bytes := range b.Coded {
		c.Coded[coding] = slices.Clone(bytes)
	}
	return c
}

func (s *Store) saw(now time.Time) {
	if now = ceil(now); now.After(s.latest) {
		s.latest = now
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
