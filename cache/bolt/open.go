// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package bolt

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/bbolt"
	bbolterrors "go.etcd.io/bbolt/errors"

	"github.com/feedpollard/pollard/cache"
)

const (
	fileName = "feeds.db"

	// storeLayout is the value of keyLayout. It starts with a name, so that
	// another program's bbolt file is not taken for ours.
	storeLayout = "pollard feeds 1"

	// lockWait is how long Open waits for another owner to let go, for a process
	// that is being replaced by its successor.
	lockWait = time.Second
)

// Open opens the store in dir and makes it if there is none. The error wraps
// [cache.ErrLocked] where another process, or another handle in this one, has it
// open. Files that this package did not write are never overwritten.
func Open(dir string) (*Store, error) {
	if err := makeDirectory(dir); err != nil {
		return nil, fmt.Errorf("opening store %s: %w", dir, err)
	}
	path := filepath.Join(dir, fileName)
	db, err := openFile(path)
	if errors.Is(err, bbolterrors.ErrTimeout) {
		return nil, fmt.Errorf("%w: %s belongs to another running Pollard or Caddy: "+
			"stop that one, or give this one its own directory with `store bolt <directory>`", cache.ErrLocked, dir)
	}
	if err != nil {
		return nil, fmt.Errorf("opening store %s: %w", path, err)
	}
	s, err := prepare(dir, db)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("opening store %s: %w", path, err), db.Close())
	}
	return s, nil
}

// makeDirectory makes dir, readable to its owner alone: the memos hold the URLs
// of private feeds.
func makeDirectory(dir string) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return syncDirectory(filepath.Dir(dir))
}

// openFile opens and locks the bbolt file.
func openFile(path string) (*bbolt.DB, error) {
	var (
		db   *bbolt.DB
		file *os.File
	)
	err := guard(func() (err error) {
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
		// bbolt gave up half-way, with the file open and locked.
		return nil, errors.Join(unusable(err), abandon(file))
	case errors.Is(err, bbolterrors.ErrInvalid), errors.Is(err, bbolterrors.ErrChecksum),
		errors.Is(err, bbolterrors.ErrVersionMismatch):
		return nil, unusable(err)
	}
	return db, err
}

// unusable says what to do about a file that is damaged or somebody else's.
func unusable(err error) error {
	return fmt.Errorf("not a store of Pollard's, or damaged: %w "+
		"(it was left as it is: move it away to start anew, or name another directory)", err)
}

// prepare checks what is in the file, or fills a new one, and clears what a
// crash has left behind.
func prepare(dir string, db *bbolt.DB) (*Store, error) {
	fresh, err := inspect(db)
	if err != nil {
		return nil, err
	}
	if fresh {
		if err := fill(db); err != nil {
			return nil, unwritable(db.Path(), err)
		}
	}
	bodies := slots{dir: filepath.Join(dir, "bodies")}
	if err := bodies.prepare(); err != nil {
		return nil, err
	}
	if err := syncDirectory(dir); err != nil {
		return nil, err
	}
	return &Store{dir: dir, db: db, records: newWriter(db), bodies: bodies}, nil
}

// inspect tells whether the file is new, and fails where it is not ours.
func inspect(db *bbolt.DB) (fresh bool, err error) {
	err = guard(func() error {
		return db.View(func(tx *bbolt.Tx) error {
			info, err := os.Stat(db.Path())
			if err != nil {
				return err
			}
			if info.Size() < tx.Size() {
				return unusable(fmt.Errorf("%w: %d bytes of %d", errDamaged, info.Size(), tx.Size()))
			}
			if first, _ := tx.Cursor().First(); first == nil {
				fresh = true // a crash came between making the file and filling it, at the latest
				return nil
			}
			store := tx.Bucket([]byte(bucketStore))
			if store == nil {
				return unusable(errors.New("it belongs to another program"))
			}
			switch layout := string(store.Get([]byte(keyLayout))); layout {
			case storeLayout:
				_, err := openBuckets(tx)
				return err
			case "":
				return unusable(errors.New("it belongs to another program"))
			default:
				return fmt.Errorf("its layout is %q and this version reads %q only: "+
					"use the version of Pollard that wrote it, or another directory", layout, storeLayout)
			}
		})
	})
	return fresh, err
}

// fill makes the buckets of a new store.
func fill(db *bbolt.DB) error {
	return guard(func() error {
		return db.Update(func(tx *bbolt.Tx) error {
			for _, bucket := range []string{bucketPoll, bucketMeta, bucketStore} {
				if _, err := tx.CreateBucket([]byte(bucket)); err != nil {
					return err
				}
			}
			return tx.Bucket([]byte(bucketStore)).Put([]byte(keyLayout), []byte(storeLayout))
		})
	})
}
