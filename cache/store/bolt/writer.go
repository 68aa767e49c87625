// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package bolt

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"go.etcd.io/bbolt"
	"go.uber.org/zap"

	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/cache/store/internal/schedule"
)

const (
	// maxShared is how many calls share a transaction at most. One of 512 small
	// records is still a matter of milliseconds.
	maxShared = 512
	// soon is how long what need not be durable waits for a transaction that it can
	// share. After a failure the next attempt is not made sooner either.
	soon = 100 * time.Millisecond
	// tidyEvery is how often the writer looks after itself, and after the wall clock.
	tidyEvery = 10 * time.Second
	// lateEvery and maxLate are how long, and how many, feeds wait of which a reader has
	// asked, or a poll brought nothing that a crash may not cost: the more of them, the
	// more share a page.
	lateEvery = 10 * time.Minute
	maxLate   = 1 << 14
	// cleanAfter and cleanEvery say when files are looked for that no record names.
	cleanAfter = 10 * time.Minute
	cleanEvery = 24 * time.Hour
)

// call is one caller's part of a transaction.
type call struct {
	// do decides. It reports whether its changes have to be durable before the caller
	// is answered. After an error there are none.
	do   func(now schedule.Time) (durable bool, err error)
	err  error
	done chan struct{}
}

// run has the writer carry out a call. When ctx is done before the writer has taken
// it nothing happens; after that, run waits for its end and tells the truth.
func (s *Store) run(ctx context.Context, do func(now schedule.Time) (durable bool, err error)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	c := &call{do: do, done: make(chan struct{})}
	select {
	case s.calls <- c:
		<-c.done
		return c.err
	case <-ctx.Done():
		return ctx.Err()
	case <-s.closing:
		return s.errClosed()
	}
}

// writer carries out calls until the store is closed: all that wait, in one
// transaction, while the next ones gather.
func (s *Store) writer() {
	defer close(s.written)
	tidy, late, clean := time.NewTicker(tidyEvery), time.NewTicker(lateEvery), time.NewTimer(cleanAfter)
	defer tidy.Stop()
	defer late.Stop()
	defer clean.Stop()
	for {
		if s.failed == nil {
			s.saveLateIfMany()
		}
		var more chan struct{} // is ready while there is something late to write
		if len(s.late) > 0 {
			more = always
		}
		select {
		case c := <-s.calls:
			s.transact(s.gather(c))
		case <-s.flush.C:
			s.save()
		case <-more:
			s.saveLate()
		case <-tidy.C:
			if err := s.plan.Tidy(s.clock.now()); err != nil {
				s.log.Warn("the schedule could not be read anew", zap.Error(err))
			}
			if s.clock.stepped(s.stamped) {
				s.save()
			}
			s.saveLateIfMany()
		case <-late.C:
			s.beginLate()
		case <-clean.C:
			s.background.Go(s.clean)
			clean.Reset(cleanEvery)
		case <-s.closing:
			return
		}
	}
}

// always is ready.
var always = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// gather returns the calls that wait, of which first is one.
func (s *Store) gather(first *call) []*call {
	calls := []*call{first}
	for len(calls) < maxShared {
		select {
		case c := <-s.calls:
			calls = append(calls, c)
		default:
			return calls
		}
	}
	return calls
}

// transact carries out calls and answers them.
func (s *Store) transact(calls []*call) {
	now := s.clock.now()
	begin := s.plan.Mark()
	durable := false
	var changing []*call
	for _, c := range calls {
		before := s.plan.Mark()
		must, err := c.do(now)
		if err != nil {
			s.plan.Undo(before)
		}
		if c.err = err; err != nil || s.plan.Mark() == before {
			close(c.done) // it need not wait for the disk, which may hang
			continue
		}
		changing = append(changing, c)
		durable = durable || must
	}
	// While the disk takes nothing, nothing is promised.
	var err error
	if durable || len(changing) > 0 && s.failed != nil {
		err = s.write()
	} else if len(changing) > 0 {
		s.flushSoon()
	}
	if err != nil {
		s.plan.Undo(begin)
	}
	s.plan.Confirm()
	for _, c := range changing {
		c.err = err
		close(c.done)
	}
}

// flushSoon has what is pending written, if no transaction does so before.
func (s *Store) flushSoon() {
	if len(s.keeper.pending) > 0 && !s.flushing {
		s.flush.Reset(soon)
		s.flushing = true
	}
}

// save writes what is pending, on nobody's behalf.
func (s *Store) save() {
	s.flushing = false
	if err := s.write(); err != nil {
		s.flushSoon()
	}
}

// saveLateIfMany has what is late written before its time.
func (s *Store) saveLateIfMany() {
	if len(s.late) == 0 && max(len(s.keeper.late), len(s.keeper.spent)) > maxLate {
		s.beginLate()
	}
}

// beginLate has what is late written, and spent grants removed with the last of it.
func (s *Store) beginLate() {
	if s.late = sorted(s.keeper.late); len(s.late) == 0 && len(s.keeper.spent) > 0 {
		s.saveLate()
	}
}

// saveLate writes some of what is late. What cannot be written waits for the next time.
func (s *Store) saveLate() {
	n := min(chunk, len(s.late))
	ids := slices.DeleteFunc(s.late[:n:n], func(id store.ID) bool { return s.keeper.late[id] == nil })
	s.late = s.late[n:]
	if s.writeSome(s.keeper.late, ids, len(s.late) == 0) != nil {
		s.late = nil
	}
}

// write makes what is pending durable, and the moment.
func (s *Store) write() error {
	ids := sorted(s.keeper.pending)
	for {
		n := min(chunk, len(ids))
		if err := s.writeSome(s.keeper.pending, ids[:n], false); err != nil {
			return err
		}
		if ids = ids[n:]; len(ids) == 0 {
			break
		}
	}
	if s.flushing {
		s.flush.Stop()
		s.flushing = false
	}
	return nil
}

// writeSome makes some feeds durable, in one transaction, which may tidy up as well.
func (s *Store) writeSome(feeds map[store.ID]*schedule.Feed, ids []store.ID, tidy bool) error {
	at := s.clock.stamp()
	err := updateDB(s.db, func(tx *bbolt.Tx) error {
		return s.keeper.write(tx, feeds, ids, at, s.plan.Token(), tidy)
	})
	if err != nil {
		err = unwritable(s.db.Path(), err)
		if s.failed == nil {
			s.log.Error("the store cannot be written", zap.Error(err))
		}
		if errors.Is(err, errDamaged) {
			s.condemn()
		}
		s.failed = err
		return err
	}
	s.keeper.written(feeds, ids, tidy)
	s.stamped = at
	if s.failed != nil {
		s.log.Info("the store can be written again")
	}
	s.failed = nil
	return nil
}

// writeAll writes what there is, for the last time.
func (s *Store) writeAll() error {
	err := s.write()
	for s.late = sorted(s.keeper.late); len(s.late) > 0 && err == nil; err = s.failed {
		s.saveLate()
	}
	return err
}

// unwritable says what a failed write means to the operator.
func unwritable(path string, err error) error {
	return fmt.Errorf("writing %s: %w (polls stop until there is room and it can be written)", path, err)
}

// condemned is the name of a file that has the next Open set the records aside:
// damage that Open did not find.
const condemned = "condemned"

func (s *Store) condemn() {
	s.condemnOnce.Do(func() {
		if err := os.WriteFile(filepath.Join(s.dir, condemned), nil, 0o600); err == nil {
			s.log.Error("the store is damaged: after a restart it will be set aside, and begin empty", zap.String("directory", s.dir))
		}
	})
}

// clean removes body files that no record names.
func (s *Store) clean() {
	removed, err := s.bodies.clean(func(id store.ID, file uint64) (bool, error) {
		select {
		case <-s.closing:
			return false, s.errClosed()
		default:
		}
		f, err := s.keeper.Get(id)
		return f != nil && f.File == file, err
	})
	if err != nil && !errors.Is(err, os.ErrClosed) {
		s.log.Warn("files without a record could not be removed", zap.String("directory", s.bodies.dir), zap.Error(err))
	}
	if removed > 0 {
		s.log.Info("removed files without a record", zap.Int("files", removed), zap.String("directory", s.bodies.dir))
	}
}
