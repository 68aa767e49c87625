// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

// Package bolt is the embedded [cache.Store]: one directory that one process owns.
//
//	feeds.db              the records, a bbolt file (open.go, record.go)
//	bodies/7f/7f3a….a|.b  two slots per feed for its body, the record names one (slots.go, body.go)
//	bodies/tmp/           bodies that are being written
//
// Records are written in transactions that concurrent callers share (writer.go).
// A body is durable in the slot that the record does not name before the
// transaction that names it begins, so that a crash leaves the old version or
// the new one, and never a record without its body. Bodies are kept out of the
// bbolt file because large values make its free list, and with it every single
// update, grow without bound.
//
// The package starts no goroutine and keeps no clock. It is not for several
// processes: a second one is refused with [cache.ErrLocked].
package bolt

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"go.etcd.io/bbolt"

	"github.com/feedpollard/pollard/cache"
)

// Store is an open directory of feeds.
type Store struct {
	dir     string
	db      *bbolt.DB
	records *writer
	bodies  slots
	feeds   holds // feeds whose body files are being changed

	mu      sync.Mutex
	running int           // operations between enter and leave
	closed  bool          // no further operation may enter
	idle    chan struct{} // closed when Close may go on; nil while nobody waits for that
}

var _ cache.Store = (*Store)(nil)

// Load reads one record.
func (s *Store) Load(ctx context.Context, id cache.ID) (cache.Record, error) {
	var found cache.Record
	err := s.view(ctx, func(b buckets) error {
		p, ok, err := b.loadPoll(id)
		if err != nil {
			return err
		}
		if !ok {
			return cache.ErrNoRecord
		}
		found, err = join(id, p, b.meta.Get(id[:]))
		return err
	})
	if err != nil {
		return cache.Record{}, fmt.Errorf("loading feed %s: %w", name(id), err)
	}
	return found, nil
}

// Body reads the body that the record names.
func (s *Store) Body(ctx context.Context, id cache.ID) (cache.Body, error) {
	if err := s.enter(ctx); err != nil {
		return cache.Body{}, err
	}
	defer s.leave()

	named, _, err := s.poll(id)
	if err != nil {
		return cache.Body{}, fmt.Errorf("reading the body of feed %s: %w", name(id), err)
	}
	return s.bodyNamed(id, named)
}

// bodyNamed reads the body that named names, or the one that the record names
// by now: two commits later another version is in the same slot.
func (s *Store) bodyNamed(id cache.ID, named poll) (cache.Body, error) {
	for {
		if named.version == 0 {
			return cache.Body{}, fmt.Errorf("feed %s has none: %w", name(id), cache.ErrNoBody)
		}
		body, err := s.bodies.read(id, named.slot, named.version)
		if err == nil {
			return body, nil
		}
		now, _, failed := s.poll(id)
		if failed != nil {
			return cache.Body{}, fmt.Errorf("reading the body of feed %s: %w", name(id), failed)
		}
		if now.version == named.version && now.slot == named.slot {
			return cache.Body{}, err
		}
		named = now
	}
}

// Scan visits every record in one read transaction: it sees the store as it was
// when the scan began. The visitor must not call the store.
func (s *Store) Scan(ctx context.Context, visit func(cache.Record) error) error {
	var stopped error // by the visitor, whose errors go out as they are
	err := s.view(ctx, func(b buckets) error {
		return b.each(func(r cache.Record) error {
			if stopped = ctx.Err(); stopped == nil {
				stopped = visit(r)
			}
			return stopped
		})
	})
	if stopped != nil {
		return stopped
	}
	if err != nil {
		return fmt.Errorf("scanning feeds: %w", err)
	}
	return nil
}

// Latest is the latest wall time that any Reserve or Commit has written.
func (s *Store) Latest(ctx context.Context) (time.Time, error) {
	var latest time.Time
	err := s.view(ctx, func(b buckets) (err error) {
		latest, err = b.latest()
		return err
	})
	if err != nil {
		return time.Time{}, fmt.Errorf("reading the latest time: %w", err)
	}
	return latest, nil
}

// Close waits for the operations under way and releases the directory. Nothing
// is left to be written: each operation was durable when it returned. A second
// Close does nothing.
func (s *Store) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	idle := make(chan struct{})
	if s.running == 0 {
		close(idle)
	} else {
		s.idle = idle
	}
	s.mu.Unlock()

	// A body file written after the lock on the directory is gone could replace
	// one of the next owner.
	<-idle
	if err := s.db.Close(); err != nil {
		return fmt.Errorf("closing store %s: %w", s.dir, err)
	}
	return nil
}

// enter begins an operation, unless the store is closed or ctx is done.
func (s *Store) enter(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return fmt.Errorf("store %s: %w", s.dir, os.ErrClosed)
	}
	s.running++
	return nil
}

// leave ends an operation.
func (s *Store) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running--
	if s.running == 0 && s.idle != nil {
		close(s.idle)
		s.idle = nil
	}
}

// view runs read in a read transaction.
func (s *Store) view(ctx context.Context, read func(buckets) error) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.leave()
	return viewBuckets(s.db, read)
}

// poll reads the poll record of a feed; ok is false where there is none.
func (s *Store) poll(id cache.ID) (p poll, ok bool, err error) {
	err = viewBuckets(s.db, func(b buckets) (err error) {
		p, ok, err = b.loadPoll(id)
		return err
	})
	return p, ok, err
}

// name is how files and messages name a feed.
func name(id cache.ID) string { return hex.EncodeToString(id[:]) }

// unwritable says what a failed write means to the operator.
func unwritable(path string, err error) error {
	return fmt.Errorf("writing %s: %w (polls stop until there is room and it can be written)", path, err)
}

// errDamaged marks data that this package cannot have written as it stands.
var errDamaged = errors.New("damaged")
