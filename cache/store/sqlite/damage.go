// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"

	"go.uber.org/zap"
)

// A file may be damaged: by a card that dies, or by what others do to it. It is looked for after a crash, and while the store is
// used. What cannot be mended is set aside.

// check looks for damage in the tables of records, and in the index of feeds at the same time. That of bodies costs a
// body only.
func (d *database) check() error {
	var index sync.WaitGroup
	var lacking error
	index.Go(func() { lacking = d.missing(context.Background()) })
	err := d.checkTables()
	index.Wait()
	if err != nil {
		return err
	}
	if errors.Is(lacking, errMissing) {
		return d.reindex(lacking)
	}
	return lacking
}

// checkTables looks for damage in the tables of records. It does not look into indexes.
func (d *database) checkTables() error {
	for _, table := range []string{"sqlite_schema", "process", "host", "feed", "pause", "pending", "counters", "meta"} {
		found, err := d.writer.value("pragma quick_check('" + table + "')")
		if err != nil {
			return err
		}
		if found != "ok" {
			return fmt.Errorf("%w: table %s: %v", errDamaged, table, found)
		}
	}
	return nil
}

// errMissing reports that an index lacks feeds, which would be polled as new ones.
var errMissing = errors.New("an index lacks feeds")

// missing fails with [errMissing] if the index by ID lacks a feed.
func (d *database) missing(ctx context.Context) error {
	c, err := connect(d.path, "busy_timeout = 5000", "query_only = 1") // beside the writer
	if err != nil {
		return err
	}
	defer c.close()
	return c.query(ctx, `select f.n from feed f not indexed where not exists
		(select 1 from feed i indexed by sqlite_autoindex_feed_1 where i.id = f.id and i.n = f.n) limit 1`, nil,
		func(row) error { return errMissing })
}

// reindex makes the indexes of feeds again. A feed that it does not find is not known any more.
func (d *database) reindex(reason error) error {
	d.log.Error("an index of the store is damaged and is made again: feeds that are due wait for an interval", zap.Error(reason))
	if err := d.writer.exec("reindex feed"); err != nil {
		return err
	}
	return d.recordLoss()
}

// recordLoss records that records may have been lost up to now: a feed that is new to the
// store may just have been polled.
func (d *database) recordLoss() error {
	d.lost = d.scale.now()
	return d.explain(d.writer.exec(saveLoss, strconv.FormatInt(int64(d.lost), 10)))
}

const saveLoss = `insert into meta (key, value) values ('lost', ?1) on conflict (key) do update set value = excluded.value`

// look checks the index of feeds beside the writer.
func (d *database) look(ctx context.Context) error {
	if d.checked {
		return nil
	}
	err := d.missing(ctx)
	if errors.Is(err, errMissing) {
		return d.outside(ctx, func(*connection) error { return d.reindex(err) })
	}
	return err
}

// leftover is what an earlier process has left.
type leftover struct {
	open    bool // it did not close the store
	damaged bool // its write-ahead log is not whole
}

// openMark is a file that exists while a process has the store open and has written so into it. If the store does not know of that, or
// has no write-ahead log, the log has been lost.
func (d *database) openMark() string { return d.path + ".open" }

// removeMark removes that file, as the log is whole. With force, it is known to be; otherwise it is if none is left, as all of it is in
// the file of the store.
func (d *database) removeMark(force bool) error {
	if !force && exists(d.path+"-wal") {
		return nil
	}
	if err := os.Remove(d.openMark()); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func (d *database) damagedMark() string { return d.path + ".damaged" }

// condemn has the file set aside when it is opened next.
func (d *database) condemn(reason error) {
	if d.path == "" {
		return
	}
	if err := os.WriteFile(d.damagedMark(), []byte(reason.Error()+"\n"), 0o600); err != nil {
		d.log.Error("a damaged store could not be marked", zap.Error(err))
	}
}

// setAside renames the files of a store that is of no use. Only the last such files are kept.
func (d *database) setAside() (aside string, err error) {
	before, err := filepath.Glob(d.path + ".aside-*")
	if err != nil {
		return "", err
	}
	for _, old := range before {
		if err := os.Remove(old); err != nil {
			return "", err
		}
	}
	aside = d.path + ".aside-" + d.scale.stamp().Wall.UTC().Format("20060102T150405Z")
	for _, part := range []string{"", "-wal", "-shm"} {
		if err := os.Rename(d.path+part, aside+part); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
	}
	d.left = nil
	for _, mark := range []string{d.openMark(), d.damagedMark()} {
		if err := os.Remove(mark); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
	}
	return aside, nil
}
