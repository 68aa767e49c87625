// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/feedpollard/pollard/cache/store"
)

// steps returns the statements that make the tables, by version, but for that of the process.
func (d *database) steps() [][]string { return store.Steps("integer primary key", "blob") }

// inspect reports whether the file is new, and fails if it is not ours.
func (d *database) inspect() (fresh bool, err error) {
	c := d.writer
	id, err := c.number("pragma application_id")
	if err != nil {
		return false, err
	}
	version, err := c.number("pragma user_version")
	if err != nil {
		return false, err
	}
	tables, err := c.number("select count(*) from sqlite_master")
	switch {
	case err != nil:
		return false, err
	case tables == 0 && id == 0 && version == 0:
		return true, nil
	case id != application:
		return false, fmt.Errorf("%s belongs to another program: name another directory with `store sqlite <directory>`", fileName)
	case version > int64(store.Version):
		return false, fmt.Errorf("its tables have version %d, and this Pollard knows version %d: install a newer Pollard, or name another directory",
			version, store.Version)
	case version < 1:
		return false, fmt.Errorf("its tables have version %d, which no Pollard made: name another directory", version)
	}
	return false, nil
}

// makeTables makes the tables of a new file in one transaction.
func (d *database) makeTables() error {
	statements := []string{processTable, "insert into process default values", fmt.Sprintf("pragma application_id = %d", application)}
	return d.inOrder(append(statements, slices.Concat(d.steps()...)...), func() error { return d.stamp(d.writer, true) })
}

// bringUp brings tables of an earlier version up to this one, in one transaction.
func (d *database) bringUp() error {
	version, err := d.writer.number("pragma user_version")
	if err != nil || version >= int64(store.Version) {
		return err
	}
	began := time.Now()
	d.log.Info("the tables of the store are brought up to the present version: do not stop Pollard",
		zap.String("file", d.path), zap.Int64("from", version), zap.Int("to", store.Version))
	if err := d.inOrder(slices.Concat(d.steps()[version:]...), func() error { return nil }); err != nil {
		return fmt.Errorf("bringing its tables from version %d to %d: %w: the file is as it was; see that its disk has room for a fifth of its size, "+
			"or install the Pollard that wrote it", version, store.Version, err)
	}
	d.log.Info("the tables of the store are brought up", zap.Duration("took", time.Since(began)))
	return nil
}

// inOrder runs statements, and then sets the version, in one transaction.
func (d *database) inOrder(statements []string, last func() error) (err error) {
	c := d.writer
	if err := c.exec("begin immediate"); err != nil {
		return err
	}
	for _, s := range append(statements, fmt.Sprintf("pragma user_version = %d", store.Version)) {
		if err = c.exec(s); err != nil {
			break
		}
	}
	if err == nil {
		err = last()
	}
	if err == nil {
		err = c.exec("commit")
	}
	if err != nil {
		c.exec("rollback") //nolint:errcheck // there may be no transaction any more
	}
	return err
}

// processTable has one row: what the process knew when it wrote last.
const processTable = `create table process (
	token bigint not null default 0,  -- unused
	scale bigint not null default 0,  -- the time by the store's clock
	wall  bigint not null default 0,  -- and by the machine's
	since bigint not null default 0,  -- the machine was booted
	boot  text not null default '',   -- names that life of the machine
	open  bigint not null default 1,  -- 0: it has been closed
	sum   bigint not null default 0   -- XXH64 of all this: a wrong time would have all feeds polled at once
)`
