// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

// Package bolt is the embedded [cache.Store]: one directory that one process owns.
//
//	feeds.db                  the records, a bbolt file (open.go, keeper.go, record.go)
//	bodies/7f/<feed>.<file>   a file for each body, which its record names (body.go)
//
// One goroutine makes all changes (writer.go). It lets the schedule decide what calls
// ask for, writes what has to be durable in one transaction for all that wait, and
// answers. What need not be durable is answered at once, kept in memory, and written
// with the next transaction.
//
// A body is durable in a new file before the transaction that names it begins, and
// the file that it replaces is removed after that, so that a crash leaves the old
// version or the new one, and at worst a file that no record names. Bodies are kept
// out of the bbolt file because large values make its free list, and with it every
// single update, grow without bound.
package bolt

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"go.etcd.io/bbolt"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/cache/store/internal/schedule"
)

// Store is an open directory of feeds.
type Store struct {
	dir    string
	log    *zap.Logger
	db     *bbolt.DB
	bodies bodies
	clock  *clock
	keeper *keeper

	calls   chan *call
	closing chan struct{} // closed by Close
	written chan struct{} // closed when the writer has ended

	condemnOnce sync.Once
	closeOnce   sync.Once
	closed      error // by closing the file
	background  sync.WaitGroup

	// What follows is the writer's.
	plan     *schedule.Schedule
	flush    *time.Timer
	flushing bool       // the timer runs
	late     []store.ID // of the keeper's late feeds, those that it is time to write
	failed   error      // of the last write
	stamped  stamp      // by the last write
}

var _ store.Store = (*Store)(nil)

// Claim implements [cache.Store].
func (s *Store) Claim(ctx context.Context, claims []store.Claim) ([]store.Lease, error) {
	leases := make([]store.Lease, len(claims))
	err := s.run(ctx, func(now schedule.Time) (granted bool, err error) {
		for i, c := range claims {
			if leases[i], err = s.plan.Claim(now, c); err != nil {
				return false, err
			}
			granted = granted || leases[i].Denied == ""
		}
		return granted, nil
	})
	if err != nil {
		return nil, fmt.Errorf("claiming polls: %w", err)
	}
	return leases, nil
}

// ClaimDue implements [cache.Store].
func (s *Store) ClaimDue(ctx context.Context, q store.DueQuery) (leases []store.Lease, wait time.Duration, err error) {
	err = s.run(ctx, func(now schedule.Time) (granted bool, err error) {
		leases, wait, err = s.plan.ClaimDue(now, q)
		return len(leases) > 0, err
	})
	if err != nil {
		return nil, 0, fmt.Errorf("claiming polls that are due: %w", err)
	}
	return leases, wait, nil
}

// Hop implements [cache.Store].
func (s *Store) Hop(ctx context.Context, hop store.Hop) (p store.Passage, err error) {
	err = s.run(ctx, func(now schedule.Time) (granted bool, err error) {
		p, err = s.plan.Hop(now, hop)
		return p.Denied == "", err
	})
	if err != nil {
		return store.Passage{}, fmt.Errorf("claiming a redirect to feed %s: %w", name(hop.ID), err)
	}
	return p, nil
}

// Commit implements [cache.Store].
func (s *Store) Commit(ctx context.Context, o store.Outcome) error {
	if err := s.commit(ctx, o); err != nil {
		return fmt.Errorf("committing a poll of feed %s: %w", name(o.ID), err)
	}
	return nil
}

func (s *Store) commit(ctx context.Context, o store.Outcome) error {
	if err := s.usable(ctx); err != nil {
		return err
	}
	var file uint64
	if o.Body != nil {
		// Nothing need be written for a lease that is not valid any more.
		f, err := s.keeper.Get(o.ID)
		if err != nil {
			return err
		}
		if f == nil || f.Token != o.Token {
			return store.ErrFenced
		}
		if file, err = s.bodies.write(o.ID, *o.Body); err != nil {
			return err
		}
		defer s.bodies.named(file)
	}
	durable := o.Body != nil || o.Withdraw || len(o.Pauses) > 0
	unneeded := file
	err := s.run(ctx, func(now schedule.Time) (bool, error) {
		s.keeper.lazy = !durable && !o.Returned && s.keeper.foresees(o.ID, now.Add(o.In))
		defer func() { s.keeper.lazy = false }()
		old, err := s.plan.Commit(now, o, file)
		if err == nil {
			unneeded = old
		}
		return durable, err
	})
	if err != nil {
		unneeded = file
	}
	s.discard(o.ID, unneeded)
	return err
}

// discard removes a file that no record names. What remains is found by the next walk.
func (s *Store) discard(id store.ID, file uint64) {
	if err := s.bodies.remove(id, file); err != nil {
		s.log.Warn("a body that is not needed any more could not be removed",
			zap.String("file", s.bodies.path(id, file)), zap.Error(err))
	}
}

func (s *Store) discardAll(r schedule.Removed) {
	for i, id := range r.IDs {
		s.discard(id, r.Files[i])
	}
}

// Lookup implements [cache.Store].
func (s *Store) Lookup(ctx context.Context, ids []store.ID) ([]store.Record, error) {
	if err := s.usable(ctx); err != nil {
		return nil, err
	}
	var found []store.Record
	err := s.keeper.view(func(b buckets) error {
		found = found[:0]
		now := s.clock.now()
		for _, id := range ids {
			f, err := s.keeper.feed(b, id)
			if err != nil {
				return err
			}
			if f != nil {
				found = append(found, f.Record(id, s.keeper.text(b.texts.Get, id), now))
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("looking up %d feeds: %w", len(ids), err)
	}
	return found, nil
}

// Body implements [cache.Store]: it reads the present version, whichever is asked for.
func (s *Store) Body(ctx context.Context, id store.ID, _ uint64) (store.Body, error) {
	body, err := s.body(ctx, id)
	if err != nil {
		return store.Body{}, fmt.Errorf("reading the body of feed %s: %w", name(id), err)
	}
	return body, nil
}

func (s *Store) body(ctx context.Context, id store.ID) (store.Body, error) {
	var tried uint64
	for failed := error(store.ErrNoBody); ; {
		if err := s.usable(ctx); err != nil {
			return store.Body{}, err
		}
		f, err := s.keeper.Get(id)
		if err != nil {
			return store.Body{}, err
		}
		if f == nil || f.File == 0 || f.File == tried {
			return store.Body{}, failed
		}
		body, err := s.bodies.read(id, f.File, f.Version)
		if !errors.Is(err, store.ErrNoBody) {
			return body, err
		}
		// Another version may have taken its place meanwhile.
		tried, failed = f.File, err
	}
}

// Records implements [cache.Store].
func (s *Store) Records(ctx context.Context, after store.ID, limit int) ([]store.Record, error) {
	if err := s.usable(ctx); err != nil {
		return nil, err
	}
	page, err := s.keeper.page(nil, after[:], limit, true)
	if err != nil {
		return nil, fmt.Errorf("reading feeds: %w", err)
	}
	now := s.clock.now()
	records := make([]store.Record, len(page))
	for i := range page {
		e := &page[i]
		if e.damaged {
			e.feed = *presumed(now)
		}
		records[i] = e.feed.Given(e.id, e.text, now)
	}
	return records, nil
}

// Touch implements [cache.Store].
func (s *Store) Touch(ctx context.Context, asked map[store.ID]time.Duration) error {
	return s.run(ctx, func(now schedule.Time) (bool, error) {
		s.keeper.lazy = true
		defer func() { s.keeper.lazy = false }()
		return false, s.plan.Touch(now, asked)
	})
}

// Forget implements [cache.Store].
func (s *Store) Forget(ctx context.Context, id store.ID) error {
	_, err := s.remove(ctx, func(now schedule.Time) (schedule.Removed, error) { return s.plan.Forget(now, id) })
	if err != nil {
		return fmt.Errorf("forgetting feed %s: %w", name(id), err)
	}
	return nil
}

// Sweep implements [cache.Store].
func (s *Store) Sweep(ctx context.Context, q store.SweepQuery) ([]store.ID, error) {
	if err := s.usable(ctx); err != nil {
		return nil, err
	}
	unwanted, err := schedule.Unwanted(s.clock.now(), q, s.keeper.Each)
	if err != nil {
		return nil, err
	}
	return s.removeAll(ctx, unwanted, s.plan.Sweep)
}

// Trim implements [cache.Store].
func (s *Store) Trim(ctx context.Context, budget int64) ([]store.ID, error) {
	if totals, err := s.Totals(ctx); err != nil || totals.Bytes <= budget {
		return nil, err
	}
	excess, err := schedule.Excess(budget, s.keeper.Each)
	if err != nil {
		return nil, err
	}
	return s.removeAll(ctx, excess, s.plan.Trim)
}

// removedAtOnce is how many feeds or bodies one transaction removes. What is to be
// written meanwhile waits for it.
const removedAtOnce = 500

// removeAll has the schedule remove candidates. They are few at a time, but were found
// in one walk over all feeds.
func (s *Store) removeAll(ctx context.Context, all []schedule.Candidate, do func(schedule.Time, []schedule.Candidate) (schedule.Removed, error)) ([]store.ID, error) {
	var gone []store.ID
	for some := range slices.Chunk(all, removedAtOnce) {
		ids, err := s.remove(ctx, func(now schedule.Time) (schedule.Removed, error) { return do(now, some) })
		gone = append(gone, ids...)
		if err != nil {
			return gone, err
		}
	}
	return gone, nil
}

// remove has the schedule remove something, and then removes the files.
func (s *Store) remove(ctx context.Context, do func(now schedule.Time) (schedule.Removed, error)) ([]store.ID, error) {
	var removed schedule.Removed
	err := s.run(ctx, func(now schedule.Time) (durable bool, err error) {
		removed, err = do(now)
		return true, err
	})
	if err != nil {
		return nil, err
	}
	s.discardAll(removed)
	return removed.IDs, nil
}

// Restore implements [cache.Store].
func (s *Store) Restore(ctx context.Context, saved []store.Saved) error {
	if err := s.usable(ctx); err != nil {
		return err
	}
	files, err := s.writeBodies(saved)
	unneeded := schedule.Removed{Files: files}
	for i, r := range saved {
		unneeded.IDs = append(unneeded.IDs, r.ID)
		defer s.bodies.named(files[i])
	}
	if err == nil {
		old := make([]uint64, len(saved))
		err = s.run(ctx, func(now schedule.Time) (durable bool, err error) {
			for i, r := range saved {
				if old[i], err = s.plan.Restore(now, r, files[i]); err != nil {
					return false, err
				}
			}
			return true, nil
		})
		if err == nil {
			unneeded.Files = old
		}
	}
	s.discardAll(unneeded)
	if err != nil {
		return fmt.Errorf("restoring %d feeds: %w", len(saved), err)
	}
	return nil
}

// writeBodies makes the bodies of an import durable, several at a time, as a disk is
// quicker with many than with one after the other.
func (s *Store) writeBodies(saved []store.Saved) (files []uint64, err error) {
	const atOnce = 16
	files = make([]uint64, len(saved))
	var all errgroup.Group
	all.SetLimit(atOnce)
	for i, r := range saved {
		if r.Body != nil {
			all.Go(func() (err error) {
				files[i], err = s.bodies.write(r.ID, *r.Body)
				return err
			})
		}
	}
	return files, all.Wait()
}

// Pauses implements [cache.Store].
func (s *Store) Pauses(ctx context.Context) (pauses []store.Pause, err error) {
	err = s.run(ctx, func(now schedule.Time) (bool, error) {
		pauses = s.plan.Pauses(now)
		return false, nil
	})
	return slices.Clip(pauses), err
}

// Watch implements [cache.Store].
func (s *Store) Watch(ctx context.Context, from store.Cursor, see func(store.Change) error) error {
	return s.plan.Log.Watch(ctx, from, see)
}

// Totals implements [cache.Store].
func (s *Store) Totals(ctx context.Context) (t store.Totals, err error) {
	err = s.run(ctx, func(now schedule.Time) (bool, error) {
		t = s.plan.Totals(now)
		return false, nil
	})
	return t, err
}

// closePatience is how long Close waits for a disk that takes nothing.
const closePatience = 5 * time.Second

// awaitDisk returns what done says, unless nothing is written any more: a slow disk gets
// the time that it takes.
func (s *Store) awaitDisk(done <-chan error) error {
	for before := s.keeper.generation(); ; {
		select {
		case err := <-done:
			return err
		case <-time.After(closePatience):
		}
		now := s.keeper.generation()
		if now == before {
			return fmt.Errorf("the disk has not answered for %v", closePatience)
		}
		before = now
	}
}

// Close writes what is pending and releases the directory. A second Close does nothing.
// A disk that hangs is left to itself: what it has not taken, nobody relies on.
func (s *Store) Close() error {
	s.closeOnce.Do(func() {
		close(s.closing)
		done := make(chan error, 1)
		go func() {
			<-s.written
			s.background.Wait()
			s.plan.Log.Close()
			done <- errors.Join(s.writeAll(), s.db.Close())
		}()
		s.closed = s.awaitDisk(done)
		if s.closed != nil {
			s.closed = fmt.Errorf("closing store %s: %w", s.dir, s.closed)
		}
	})
	return s.closed
}

// usable reports why an operation may not begin.
func (s *Store) usable(ctx context.Context) error {
	select {
	case <-s.closing:
		return s.errClosed()
	default:
		return ctx.Err()
	}
}

func (s *Store) errClosed() error { return fmt.Errorf("store %s: %w", s.dir, os.ErrClosed) }
