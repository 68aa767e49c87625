// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

// Package sqlite keeps feeds in an SQLite database, which one process uses at a time:
//
//	feeds.sqlite        the tables, as README.md of package store describes them
//	feeds.sqlite-wal    what has not been written back to it yet
//	feeds.sqlite.lock   locked by the process that uses them
//	feeds.sqlite.open   is there while a process has them open, and after a crash
//	feeds.sqlite.room   is removed to open them on a disk that is full
//
// One goroutine writes. It puts all calls that wait into one transaction, and answers
// when that is on the disk. Four connections read beside it. The sqlite3 tool can read
// the file while it is in use.
package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/cespare/xxhash/v2"
	"go.uber.org/zap"

	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/internal/disk"
)

const (
	fileName = "feeds.sqlite"

	// application is the number by which a file of ours is known: "Poll".
	application = 0x506f6c6c

	readers = 4

	// pageSize is that of a new file. A claim or a commit changes a few bytes of each of six pages, so
	// small ones halve what is written; a record fits into one.
	pageSize = 2048

	// lockWait is how long Open waits for another process to let go: a process may be
	// replaced by its successor.
	lockWait = time.Second
)

// Options are what Open can do without.
type Options struct {
	// Log gets what is wrong with the store. Nil: nothing is logged.
	Log *zap.Logger
	// Clocks reads the clocks of the machine. Nil: those of the system.
	Clocks func() Reading
	// Space returns the free space and the size of the file system of a directory. Nil: as the system says.
	Space func(dir string) (free, all uint64)
}

// Store is a [store.Store] in an SQLite database.
type Store struct {
	*store.Database
	database *database
}

// Open opens the store in a directory, and makes it if there is none. The error wraps
// [store.ErrLocked] if another process has it open. Files of other programs are left as
// they are.
//
// All that a store holds can be fetched again. Therefore a file whose records are damaged is
// set aside, renamed, and the store starts empty. It then takes all feeds as polled at that
// moment. Records are checked after a crash. Damage of a body costs that body only.
func Open(dir string, o Options) (*Store, error) {
	if o.Log == nil {
		o.Log = zap.NewNop()
	}
	if o.Space == nil {
		o.Space = disk.Space
	}
	d := &database{path: filepath.Join(dir, fileName), log: o.Log, scale: newScale(o.Clocks), space: o.Space, lost: store.Never}
	if err := d.open(); err != nil {
		return nil, fmt.Errorf("store sqlite %s: %w", dir, remedy(dir, err))
	}
	return &Store{store.NewDatabase(d), d}, nil
}

// remedy adds what to do to an error of opening that does not say it.
func remedy(dir string, err error) error {
	if noRoom(err) || errors.Is(err, syscall.ENOSPC) {
		return fmt.Errorf("%w: the disk is full: make room on it", err)
	}
	if errors.Is(err, syscall.EROFS) {
		return fmt.Errorf("%w: mount it so that it can be written, or name another directory with `store sqlite <directory>`", err)
	}
	failed, ok := errors.AsType[*fs.PathError](err)
	if ok && errors.Is(err, fs.ErrPermission) && (disk.Owns(failed.Path) || !exists(failed.Path) && disk.Owns(dir)) {
		return fmt.Errorf("%w: the directory and its files have to be writable: `chmod -R u+rwX %s`, or name another directory with `store sqlite <directory>`", err, dir)
	}
	if user := os.Geteuid(); errors.Is(err, fs.ErrPermission) && user >= 0 { // Windows has no such number
		return fmt.Errorf("%w: the directory and its files have to belong to the user who runs Pollard, and a run as root leaves files that do not: "+
			"`sudo chown -R %d %s`, or name another directory with `store sqlite <directory>`", err, user, dir)
	}
	if ok {
		return fmt.Errorf("%w: it has to be a directory that the user who runs Pollard may write to: change its owner, or name another one with `store sqlite <directory>`", err)
	}
	return err
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

// Exists reports whether a directory has a store, or may have one that this user cannot see.
func Exists(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, fileName))
	return err == nil || errors.Is(err, fs.ErrPermission)
}

func (d *database) open() (err error) {
	if err := os.MkdirAll(d.dir(), 0o700); err != nil {
		return err
	}
	if err := Refuse(d.dir()); err != nil {
		return err
	}
	// SQLite itself would let two processes in, whose clocks and memories differ.
	if d.unlock, err = disk.Lock(d.path+".lock", lockWait); errors.Is(err, disk.ErrLocked) {
		return errLocked
	} else if err != nil {
		return err
	}
	err = d.openFile()
	if noRoom(err) && os.Remove(d.room()) == nil {
		err = d.openFile()
	}
	if errors.Is(err, errDamaged) {
		reason := err
		var aside string
		if aside, err = d.setAside(); err == nil {
			d.log.Error("the file of the store is damaged and has been set aside: the store is empty, and no feed is polled before its min_interval has passed",
				zap.String("file", aside), zap.Error(reason))
			if err = d.openFile(); err == nil {
				err = d.recordLoss()
			}
		}
	}
	if err != nil {
		return errors.Join(err, d.unlock())
	}
	d.start()
	if info, err := os.Stat(d.room()); err == nil && info.Size() == roomSize {
		return nil
	}
	if err := os.WriteFile(d.room(), make([]byte, roomSize), 0o600); err != nil {
		d.log.Warn("the disk of the store is full: polls stop until there is room", zap.Error(err))
	}
	return nil
}

// room is a file that gives up its place on a disk that is full: SQLite needs some to
// open a file.
func (d *database) room() string { return d.path + ".room" }

const roomSize = 128 << 10

// Refuse returns an error that says what to do if a directory cannot have a store.
func Refuse(dir string) error {
	if kind := disk.NetworkKind(dir); kind != "" {
		return fmt.Errorf("the directory is on a network file system (%s), on which SQLite's files are damaged sooner or later: "+
			"name a directory on a local disk, or use `store postgres <url>`", kind)
	}
	return nil
}

// errLocked reports that another process uses the directory.
var errLocked = fmt.Errorf("%w: stop that one, or give this one a directory of its own with `store sqlite <directory>`", store.ErrLocked)

// errDamaged reports a file that is of no use.
var errDamaged = errors.New("damaged")

// openFile opens the file, makes its tables if it is new, and checks them.
func (d *database) openFile() (err error) {
	if _, err := os.Stat(d.damagedMark()); err == nil {
		return fmt.Errorf("%w, as was found when it was last used", errDamaged)
	}
	file, err := os.OpenFile(d.path, os.O_RDWR|os.O_CREATE, 0o600) // SQLite's own files get the same mode
	if err != nil {
		return err
	}
	if err := file.Close(); err != nil {
		return err
	}
	if d.left == nil { // an attempt without room may bring the log into the file
		dropped, err := walDamaged(d.path)
		if err != nil {
			return err
		}
		d.left = &leftover{open: exists(d.openMark())}
		d.left.damaged = dropped || d.left.open && !exists(d.path+"-wal")
	}
	d.writer, err = connect(d.path, "busy_timeout = 5000", fmt.Sprint("page_size = ", pageSize), "auto_vacuum = incremental",
		"journal_mode = wal", "synchronous = full", "wal_autocheckpoint = 2000", "journal_size_limit = 67108864")
	if err == nil {
		err = d.load()
	}
	if err == nil && (d.left.damaged || d.left.open && !d.checked) {
		d.log.Error("the write-ahead log of the store is damaged: what was stored last is lost, and no feed is polled before its min_interval has passed",
			zap.String("file", d.path+"-wal"))
		if err = d.recordLoss(); err == nil {
			*d.left = leftover{}
			err = d.writer.exec("pragma wal_checkpoint(truncate)") // what is behind the damage would be taken for that of another one
		}
	}
	if err != nil {
		if isDamage(err) {
			err = fmt.Errorf("%w: %w", errDamaged, err)
		}
		if d.writer != nil {
			err = errors.Join(err, d.writer.close())
			d.writer = nil
			if d.checked && !d.left.damaged {
				err = errors.Join(err, d.removeMark(false))
			}
		}
		return err
	}
	if d.stamp(d.writer, true) != nil || os.WriteFile(d.openMark(), nil, 0o600) != nil { // a full disk
		d.stamped = process{}
	}
	d.readers = make(chan *connection, readers)
	for range readers {
		c, err := connect(d.path, "busy_timeout = 5000", "query_only = 1")
		if err != nil {
			return err
		}
		d.readers <- c
	}
	return nil
}

// load reads what the last process left.
func (d *database) load() error {
	d.stamped, d.checked = process{}, false
	fresh, err := d.inspect()
	if err != nil {
		return err
	}
	if fresh {
		err = d.explain(d.makeTables())
	} else if err = d.resume(); err == nil {
		err = d.bringUp()
	}
	if err != nil {
		return err
	}
	return d.writer.query(context.Background(), `select cast(value as integer) from meta where key = 'lost'`, nil, func(r row) error {
		return r.Scan((*int64)(&d.lost))
	})
}

// process is the row of that table.
type process struct {
	token int64 // of versions 1 and 2 of the tables: the last that was given
	at    stamp
	open  int64
}

func (p *process) sum() int64 {
	return int64(xxhash.Sum64String(fmt.Sprint(p.token, p.at.scale, p.at.Wall.UnixNano(), p.at.Since, p.at.Boot, p.open)))
}

// resume continues what the last process left.
func (d *database) resume() error {
	var last process
	var wall, sum int64
	err := d.writer.query(context.Background(), `select token, scale, wall, since, boot, open, sum from process`, nil, func(r row) error {
		return r.Scan(&last.token, (*int64)(&last.at.scale), &wall, (*int64)(&last.at.Since), &last.at.Boot, &last.open, &sum)
	})
	last.at.Wall = time.Unix(0, wall)
	if err == nil && sum != last.sum() {
		err = fmt.Errorf("%w: when it was written is not known", errDamaged)
	}
	if err != nil {
		return err
	}
	d.scale.resume(last.at)
	if d.checked = last.open != 0; d.checked {
		return d.check()
	}
	return nil
}

// start starts the writer. After a clean stop it checks the index of feeds: a few may be polled as new
// ones before it has found that they are missing there, but to wait for that would take seconds with a
// million feeds.
func (d *database) start() {
	d.jobs = make(chan *job)
	d.closing, d.written = make(chan struct{}), make(chan struct{})
	var background context.Context
	background, d.stop = context.WithCancel(context.Background())
	d.background.Go(func() {
		if err := d.look(background); err != nil && background.Err() == nil {
			d.log.Error("the store could not be checked", zap.Error(err))
		}
	})
	d.background.Go(func() {
		if err := d.followClock(background); err != nil && background.Err() == nil {
			d.log.Error("the store does not follow the clock of the machine", zap.Error(err))
		}
	})
	go d.runWriter()
}
