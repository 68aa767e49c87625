// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"
	lib "modernc.org/sqlite/lib"

	"modernc.org/sqlite"

	"github.com/feedpollard/pollard/cache/store"
)

const (
	// maxJobs and maxBytes bound what shares a transaction, so that no caller waits long.
	maxJobs  = 64
	maxBytes = 1 << 20
)

// database implements [store.Driver].
type database struct {
	path    string // of the file; empty: in memory
	log     *zap.Logger
	scale   *scale
	space   func(dir string) (free, all uint64)
	changes changes

	jobs    chan *job
	readers chan *connection
	closing chan struct{} // closed by Close
	written chan struct{} // closed when the writer has ended

	left       *leftover // nil: not looked for yet
	checked    bool      // for damage, when it was opened after a crash
	background sync.WaitGroup
	stop       context.CancelFunc // ends what runs in the background
	closeOnce  sync.Once
	closed     error

	mu      sync.Mutex // guards all below; the writer holds it while it writes
	writer  *connection
	stamped process     // what the table of that name has; zero: not known
	lost    store.Time  // when records were lost with a damaged file; [store.Never] if none were
	kept    *connection // of a database in memory, after Close too
	unlock  func() error
}

// job is a call that waits for the writer.
type job struct {
	store.Work
	done    chan error
	changes []store.Change
}

// Write implements [store.Driver]. A caller that gives up leaves its work: a claim that is
// not used is a pause and no more.
func (d *database) Write(ctx context.Context, work store.Work) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	j := &job{Work: work, done: make(chan error, 1)}
	if d.path == "" {
		d.write([]*job{j})
		return <-j.done
	}
	select {
	case <-d.closing: // or it might be taken while the writer ends
		return d.errClosed()
	default:
	}
	select {
	case d.jobs <- j:
	case <-ctx.Done():
		return ctx.Err()
	case <-d.closing:
		return d.errClosed()
	}
	select {
	case err := <-j.done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// runWriter makes all changes of a file. Calls that come while it writes share the next
// transaction.
func (d *database) runWriter() {
	defer close(d.written)
	for {
		var batch []*job
		select {
		case j := <-d.jobs:
			batch = append(batch, j)
		case <-d.closing:
			return
		}
		bytes := batch[0].Bytes
	more:
		for len(batch) < maxJobs && bytes < maxBytes {
			select {
			case j := <-d.jobs:
				batch = append(batch, j)
				bytes += j.Bytes
			default:
				break more
			}
		}
		d.write(batch)
	}
}

// write runs jobs in one transaction. If it fails, each has a transaction of its own: the
// error of one must not be that of its neighbours.
func (d *database) write(batch []*job) {
	err := d.inTx(batch)
	switch {
	case errors.Is(err, errBodies) && d.replaceBodies(err) == nil,
		fullCode(err) == lib.SQLITE_CORRUPT_INDEX && d.outside(context.Background(), func(*connection) error { return d.reindex(err) }) == nil:
		err = d.inTx(batch)
	}
	if err != nil && len(batch) > 1 {
		for _, j := range batch {
			d.write([]*job{j})
		}
		return
	}
	for _, j := range batch {
		if err == nil {
			d.changes.add(j.changes)
		}
		j.done <- d.explain(err)
	}
}

func (d *database) inTx(batch []*job) (err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.writer == nil {
		return d.errClosed()
	}
	c := d.writer
	if err := c.exec("begin immediate"); err != nil {
		return err
	}
	for _, j := range batch {
		if j.changes, err = d.do(c, j.Do); err != nil {
			break
		}
	}
	if err == nil {
		err = d.stamp(c, true)
	}
	if err == nil {
		err = c.exec("commit")
	}
	if err != nil {
		c.exec("rollback") //nolint:errcheck // there may be no transaction any more
		d.stamped = process{}
	}
	return err
}

// replaceBodies replaces the table of bodies, as none can be added to it. All versions are
// fetched again; the records of their feeds stay.
func (d *database) replaceBodies(reason error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.writer == nil {
		return d.errClosed()
	}
	old := fmt.Sprintf("damaged_%d", d.scale.now())
	statements := []string{"begin immediate", "alter table body rename to " + old}
	for _, s := range slices.Concat(d.steps()...) {
		if strings.HasPrefix(strings.TrimSpace(s), "create table body ") {
			statements = append(statements, s)
		}
	}
	for _, s := range append(statements, "commit") {
		if err := d.writer.exec(s); err != nil {
			d.writer.exec("rollback") //nolint:errcheck // there may be no transaction any more
			return d.explain(err)
		}
	}
	d.log.Error("the table of bodies is damaged and has been replaced: each version is fetched again", zap.Error(reason))
	_ = d.writer.exec("drop table " + old) // as much as can be: its pages are lost otherwise
	return nil
}

// stamp writes the time, so that the wall clock may be set between any two
// transactions. A row that was written less than a minute ago will do if the clocks have advanced alike.
func (d *database) stamp(c *connection, open bool) error {
	p := process{at: d.scale.stamp()}
	if open {
		p.open = 1
	}
	last := d.stamped
	since := p.at.Since - last.at.Since
	if p.open == last.open && since < time.Minute && (p.at.Wall.Sub(last.at.Wall)-since).Abs() < time.Second {
		return nil
	}
	return d.writeStamp(c, p)
}

func (d *database) writeStamp(c *connection, p process) error {
	d.stamped = p
	return c.exec(`update process set token = ?1, scale = ?2, wall = ?3, since = ?4, boot = ?5, open = ?6, sum = ?7`,
		p.token, int64(p.at.scale), p.at.Wall.UnixNano(), int64(p.at.Since), p.at.Boot, p.open, p.sum())
}

// Read implements [store.Driver]. If a disk hangs, callers wait no longer than their ctx.
func (d *database) Read(ctx context.Context, do func(store.Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if d.path == "" {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.writer == nil {
			return d.errClosed()
		}
		_, err := d.do(d.writer, do)
		return d.explain(err)
	}
	var c *connection
	select {
	case c = <-d.readers:
	case <-ctx.Done():
		return ctx.Err()
	case <-d.closing:
		return d.errClosed()
	}
	done := make(chan error, 1)
	go func() {
		_, err := d.do(c, do)
		done <- err
		d.readers <- c
	}()
	select {
	case err := <-done:
		return d.explain(err)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Tidy implements [store.Driver]. It gives free pages back to the disk if they are more
// than a quarter of the file, some at a time.
func (d *database) Tidy(ctx context.Context) error {
	const (
		some     = 2000 // pages, which the writer needs some 60 ms for
		alarming = 256 << 20
	)
	if d.path == "" {
		return nil
	}
	if log, err := os.Stat(d.path + "-wal"); err == nil && log.Size() > alarming {
		d.log.Warn("the write-ahead log of the store has grown, because another program keeps a transaction open: end it",
			zap.String("file", d.path+"-wal"), zap.Int64("bytes", log.Size()))
	}
	for {
		enough := true
		err := d.outside(ctx, func(c *connection) error {
			free, err := c.number("pragma freelist_count")
			if err != nil {
				return err
			}
			all, err := c.number("pragma page_count")
			if err != nil || free < some || free*4 <= all {
				return err
			}
			enough = false
			return c.exec(fmt.Sprintf("pragma incremental_vacuum(%d)", some))
		})
		if err != nil || enough {
			return err
		}
		time.Sleep(100 * time.Millisecond) // for calls that wait for the writer
	}
}

// Used implements [store.Driver]. Pages that are free do not count.
func (d *database) Used(tx store.Tx) (int64, error) {
	var n [3]int64
	for i, text := range []string{"pragma page_count", "pragma freelist_count", "pragma page_size"} {
		if err := tx.Query(text, [][]any{nil}, func(_ int, row store.Row) error { return row.Scan(&n[i]) }); err != nil {
			return 0, err
		}
	}
	return (n[0] - n[1]) * n[2], nil
}

// Left implements [store.Driver].
func (d *database) Left() int64 {
	if d.path != "" {
		if free, all := d.space(d.dir()); free < leastFree && free < all/leastFreePart {
			return int64(free)
		}
	}
	return store.Unlimited
}

// A disk is short of space if less is left of it: both in bytes, and as 1/n of the disk.
const (
	leastFree     = 1 << 30
	leastFreePart = 20
)

// outside runs f on the writer's connection, outside of a transaction.
func (d *database) outside(ctx context.Context, f func(*connection) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.writer == nil {
		return d.errClosed()
	}
	return d.explain(f(d.writer))
}

// IsDamage implements [store.Driver].
func (d *database) IsDamage(err error) bool { return isDamage(err) }

func isDamage(err error) bool {
	switch code(err) {
	case lib.SQLITE_CORRUPT, lib.SQLITE_NOTADB:
		return true
	}
	return false
}

// code returns the primary result code of an error of SQLite, 0 of others.
func code(err error) int { return fullCode(err) & 0xff }

// noRoom reports whether an error of SQLite says that the disk is full. SQLite has a code of
// its own for the file that it maps into memory.
func noRoom(err error) bool {
	return code(err) == lib.SQLITE_FULL || fullCode(err) == lib.SQLITE_IOERR_SHMSIZE
}

// fullCode returns the extended result code.
func fullCode(err error) int {
	if failed, ok := errors.AsType[*sqlite.Error](err); ok {
		return failed.Code()
	}
	return 0
}

// explain adds to an error of SQLite the file and the remedy.
func (d *database) explain(err error) error {
	switch code(err) {
	case 0:
		return err
	case lib.SQLITE_FULL:
		return fmt.Errorf("writing %s: %w: polls stop until there is room", d.dir(), err)
	case lib.SQLITE_IOERR, lib.SQLITE_READONLY, lib.SQLITE_CANTOPEN:
		return fmt.Errorf("store %s: %w: polls stop until the disk works again", d.path, err)
	case lib.SQLITE_BUSY:
		return fmt.Errorf("store %s: %w: another program keeps it locked", d.path, err)
	case lib.SQLITE_CORRUPT, lib.SQLITE_NOTADB:
		if errors.Is(err, errBodies) {
			return fmt.Errorf("store %s: %w", d.path, err)
		}
		d.condemn(err)
		return fmt.Errorf("store %s: %w: it is damaged, and is set aside when Pollard is started again", d.path, err)
	}
	return fmt.Errorf("store %s: %w", d.path, err)
}

func (d *database) dir() string { return filepath.Dir(d.path) }

func (d *database) errClosed() error { return fmt.Errorf("store sqlite: %w", os.ErrClosed) }

// Close implements [store.Driver].
func (d *database) Close() error {
	d.closeOnce.Do(func() { d.closed = d.end(true) })
	return d.closed
}

// end closes the database, as a crash does unless cleanly.
func (d *database) end(cleanly bool) (err error) {
	close(d.closing)
	if d.path == "" {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.writer = nil
		return nil
	}
	d.stop()
	<-d.written
	d.background.Wait()
	for range cap(d.readers) {
		err = errors.Join(err, (<-d.readers).close())
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if cleanly {
		err = errors.Join(err, d.explain(d.stamp(d.writer, false)))
	}
	err = errors.Join(err, d.explain(d.writer.close()))
	err = errors.Join(err, d.removeMark(cleanly && err == nil), d.unlock())
	d.writer = nil
	return err
}
