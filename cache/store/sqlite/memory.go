// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"time"

	"go.uber.org/zap"

	"github.com/feedpollard/pollard/cache/store"
)

// NewMemory returns an empty store in memory, for simulations and tests. It has no
// goroutines. now returns the time; nil: time.Now.
func NewMemory(now func() time.Time) *Store {
	if now == nil {
		now = time.Now
	}
	began := now()
	d := &database{log: zap.NewNop(), lost: store.Never, scale: newScale(func() Reading {
		at := now()
		return Reading{Wall: at, Since: at.Sub(began)}
	})}
	c, err := connect("")
	if err != nil {
		panic(err) // memory is exhausted
	}
	if d.writer, d.kept = c, c; d.makeTables() != nil {
		panic("sqlite: the tables cannot be made")
	}
	return d.inMemory()
}

func (d *database) inMemory() *Store {
	d.closing = make(chan struct{})
	return &Store{store.NewDatabase(d), d}
}

// Reopen returns an open store with what this one in memory holds, as a restart finds it.
// The store itself is closed.
func (s *Store) Reopen() *Store {
	s.Close() //nolint:errcheck // one in memory never fails
	old := s.database
	d := &database{log: old.log, scale: old.scale, lost: old.lost, writer: old.kept, kept: old.kept}
	return d.inMemory()
}
