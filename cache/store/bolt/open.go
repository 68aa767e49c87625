// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package bolt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"go.etcd.io/bbolt"
	bbolterrors "go.etcd.io/bbolt/errors"
	"go.uber.org/zap"

	"github.com/feedpollard/pollard/cache"
	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/cache/store/internal/schedule"
)

const (
	fileName = "feeds.db"

	// storeLayout is the value of keyLayout. It starts with a name, so that
	// another program's bbolt file is not taken for ours.
	storeLayout = "pollard feeds 2"

	// firstLayout is that of the first edition, in which bodies were stored in several
	// codings and each node's clock was the schedule's.
	firstLayout = "pollard feeds 1"

	// lockWait is how long Open waits for another owner to let go, for a process
	// that is being replaced by its successor.
	lockWait = time.Second
)

// Options are what Open can do without.
type Options struct {
	// Log gets what is wrong with the store. Nil: nobody is told.
	Log *zap.Logger
	// Now is the wall clock, with a monotonic reading. Nil: time.Now.
	Now func() time.Time
	// Suspended is how long the machine has been suspended since some moment. Nil:
	// [cache.Suspended], or never where there is a clock of its own.
	Suspended func() time.Duration
	// Booted is the life of the machine. Nil: as the system says, or not known where
	// there is a clock of its own.
	Booted func() Boot
}

// Open opens the store in dir and makes it if there is none. The error wraps
// [cache.ErrLocked] where another process, or another handle in this one, has it
// open. Files of other programs are left as they are.
//
// The store holds nothing that cannot be fetched again, so damage keeps nobody from
// starting: a record that cannot be read is replaced by one of a feed that has been
// polled just now, and a file of records that cannot be read, or is of the first
// edition, is set aside, renamed. The store is empty then. Each feed is polled when
// somebody asks for it, one at a time of each host; there is no storm to be feared that
// would need more than that.
func Open(dir string, o Options) (*Store, error) {
	if o.Suspended == nil {
		if o.Suspended = cache.Suspended; o.Now != nil {
			o.Suspended = func() time.Duration { return 0 }
		}
	}
	if o.Now == nil {
		// A bubble's clock, which has no monotonic reading, is one of its own.
		if o.Now = time.Now; o.Booted == nil && o.Now() != o.Now().Round(0) {
			o.Booted = systemBoot
		}
	}
	if o.Log == nil {
		o.Log = zap.NewNop()
	}
	return open(dir, newClock(o.Now, o.Suspended, o.Booted), o.Log)
}

func open(dir string, c *clock, log *zap.Logger) (*Store, error) {
	if err := makeDirectory(dir); err != nil {
		return nil, fmt.Errorf("opening store %s: %w", dir, err)
	}
	path := filepath.Join(dir, fileName)
	s, err := openFile(dir, path, c, log)
	if errors.Is(err, errDamaged) || errors.Is(err, errOld) {
		reason := err
		var aside string
		if aside, err = setAside(path, c.wall(), reason); err == nil {
			log.Error("the records of the store cannot be used and have been set aside: it is empty now",
				zap.String("file", aside), zap.Error(reason))
			s, err = openFile(dir, path, c, log)
		}
	}
	switch {
	case errors.Is(err, bbolterrors.ErrTimeout):
		return nil, fmt.Errorf("%w: %s belongs to another running Pollard or Caddy: "+
			"stop that one, or give this one its own directory with `store bolt <directory>`", store.ErrLocked, dir)
	case err != nil:
		return nil, fmt.Errorf("opening store %s: %w", path, err)
	}
	go s.writer()
	return s, nil
}

// errOld reports records of the first edition.
var errOld = errors.New("written by an earlier edition")

// setAside renames a file that is of no use. Of several such files only the last is kept.
func setAside(path string, now time.Time, reason error) (aside string, err error) {
	before, err := filepath.Glob(path + ".aside-*")
	if err != nil {
		return "", err
	}
	for _, old := range before {
		if err := os.Remove(old); err != nil {
			return "", err
		}
	}
	aside = path + ".aside-" + now.UTC().Format("20060102T150405Z")
	if err := os.Rename(path, aside); err != nil {
		return "", fmt.Errorf("%w, and could not be set aside: %w", reason, err)
	}
	if err := os.Remove(filepath.Join(filepath.Dir(path), condemned)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	return aside, syncDirectory(filepath.Dir(path))
}

// openFile opens the file of records and reads what is needed of it. The error wraps
// errDamaged where the file is of no use.
func openFile(dir, path string, c *clock, log *zap.Logger) (*Store, error) {
	db, err := openDB(path)
	if err != nil {
		return nil, err
	}
	s := &Store{
		dir: dir, log: log, db: db, bodies: bodies{dir: filepath.Join(dir, "bodies")}, clock: c,
		keeper: newKeeper(db),
		calls:  make(chan *call), closing: make(chan struct{}), written: make(chan struct{}),
		flush: time.NewTimer(time.Hour),
	}
	s.flush.Stop()
	if err := s.load(); err != nil {
		return nil, errors.Join(err, guard(db.Close))
	}
	s.keeper.ruined = s.condemn
	return s, nil
}

func openDB(path string) (db *bbolt.DB, err error) {
	var file *os.File
	err = guard(func() (err error) {
		db, err = bbolt.Open(path, 0o600, &bbolt.Options{
			Timeout:      lockWait,
			FreelistType: bbolt.FreelistMapType,
			NoStatistics: true,
			OpenFile: func(name string, flag int, mode os.FileMode) (*os.File, error) {
				var err error
				file, err = os.OpenFile(name, flag, mode)
				return file, err
			},
		})
		return err
	})
	switch {
	case errors.Is(err, errDamaged):
		// bbolt gave up half-way, with the file open.
		return nil, errors.Join(err, file.Close())
	case errors.Is(err, bbolterrors.ErrTimeout):
		return nil, err
	case errors.Is(err, bbolterrors.ErrInvalid), errors.Is(err, bbolterrors.ErrChecksum),
		errors.Is(err, bbolterrors.ErrVersionMismatch):
		return nil, fmt.Errorf("%w: %w", errDamaged, err)
	case err != nil:
		if info, failed := os.Stat(path); failed == nil && info.Mode().IsRegular() && info.Size() < int64(4*os.Getpagesize()) {
			err = fmt.Errorf("%w: %w", errDamaged, err) // shorter than any file of bbolt's
		}
		return nil, err
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(path), condemned)); err == nil {
		return nil, errors.Join(fmt.Errorf("%w: as was found when it was last written", errDamaged), db.Close())
	}
	if err := checkPages(file, db.Info().PageSize); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// load brings the file up to date and reads the schedule.
func (s *Store) load() error {
	fresh, err := s.inspect()
	if err != nil {
		return err
	}
	if fresh {
		if err := s.fill(); err != nil {
			return unwritable(s.db.Path(), err)
		}
	}
	if err := makeDirectory(s.bodies.dir); err != nil {
		return err
	}
	if err := syncDirectory(s.dir); err != nil {
		return err
	}

	var last store.Token
	notes := make(map[string][]byte)
	wentBack := false
	err = s.keeper.view(func(b buckets) error {
		at, ok := decodeStamp(get(b.store, keyClock, stampSize))
		if !ok {
			return fmt.Errorf("%w: nothing says when it was written", errDamaged)
		}
		if boot, ok := unseal([]byte(keyBoot), b.store.Get([]byte(keyBoot))); ok {
			at.decodeBoot(boot)
		}
		wentBack = s.clock.resume(at)
		s.stamped = at
		if v := get(b.store, keyToken, 8); v != nil {
			last = store.Token(binary.BigEndian.Uint64(v))
		}
		if err := s.keeper.recall(b, s.clock.now()); err != nil {
			return err
		}
		return b.notes.ForEach(func(key, value []byte) error {
			if note, ok := unseal(key, value); ok {
				notes[string(key)] = bytes.Clone(note)
			}
			return nil
		})
	})
	if err != nil {
		return err
	}
	now := s.clock.now()
	repaired := make(map[store.ID]*schedule.Feed)
	s.keeper.damaged = func(id store.ID) *schedule.Feed {
		s.log.Error("the record of a feed was damaged: it has no version now, and is polled in an hour", zap.String("feed", name(id)))
		repaired[id] = presumed(now)
		return repaired[id]
	}
	s.plan, err = schedule.New(now, s.keeper, notes, last)
	s.keeper.damaged = nil
	if err != nil {
		return err
	}
	for id, f := range repaired {
		s.keeper.Put(id, f, false)
	}
	if wentBack || len(repaired) > 0 {
		return s.write()
	}
	return nil
}

// inspect tells whether the file is new, and fails where it is not ours.
func (s *Store) inspect() (fresh bool, err error) {
	err = viewDB(s.db, func(tx *bbolt.Tx) error {
		info, err := os.Stat(s.db.Path())
		if err != nil {
			return err
		}
		if info.Size() < tx.Size() {
			return fmt.Errorf("%w: it has %d bytes of %d", errDamaged, info.Size(), tx.Size())
		}
		if first, _ := tx.Cursor().First(); first == nil {
			fresh = true // a crash came between making the file and filling it, at the latest
			return nil
		}
		var layout string
		if store := tx.Bucket([]byte(bucketStore)); store != nil {
			layout = string(store.Get([]byte(keyLayout)))
		}
		switch layout {
		case storeLayout:
			_, err := openBuckets(tx)
			return err
		case firstLayout:
			return fmt.Errorf("%w: %q", errOld, layout)
		case "":
			if isOurs(tx) {
				return fmt.Errorf("%w: nothing says what layout it has", errDamaged)
			}
			return errors.New("it belongs to another program: name another directory with `store bolt <directory>`")
		default:
			return fmt.Errorf("its layout is %q and this version reads %q only: "+
				"use the version of Pollard that wrote it, or another directory", layout, storeLayout)
		}
	})
	return fresh, err
}

var allBuckets = []string{bucketFeeds, bucketGranted, bucketTexts, bucketNotes, bucketStore}

// isOurs tells a damaged file of ours from another program's by its other buckets, or by
// a record that is whole.
func isOurs(tx *bbolt.Tx) bool {
	found := 0
	c := tx.Cursor()
	for bucket, _ := c.First(); bucket != nil; bucket, _ = c.Next() { // a search may miss what is there
		if !slices.Contains(allBuckets, string(bucket)) {
			continue
		}
		found++
		if b := tx.Bucket(bucket); b != nil && isSealed(b.Cursor().First()) {
			return true
		}
	}
	return found > len(allBuckets)/2
}

// fill makes the buckets of a new store.
func (s *Store) fill() error {
	return updateDB(s.db, func(tx *bbolt.Tx) error {
		for _, bucket := range allBuckets {
			if _, err := tx.CreateBucket([]byte(bucket)); err != nil {
				return err
			}
		}
		store := tx.Bucket([]byte(bucketStore))
		return errors.Join(
			store.Put([]byte(keyLayout), []byte(storeLayout)),
			put(store, []byte(keyClock), s.clock.stamp().encode()),
		)
	})
}
