// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"go.uber.org/zap"

	"github.com/feedpollard/pollard/cache/store"
)

const (
	// watchEvery is how often the log of changes is read if nothing is notified: so much
	// later a node learns of a change whose notification was lost.
	watchEvery = time.Second

	// watchLimit is how many changes are read at once.
	watchLimit = 1000
)

// emptySnapshot is one of no transactions.
const emptySnapshot = "1:1:"

// position is a place in the log of changes. Changes become visible in the order in which
// their transactions are committed, and no number that they carry has that order: it is taken
// earlier. A snapshot of the database, however, says which transactions had been committed.
type position struct {
	log string // its name
	// The changes in seen have been read, and those in reading up to the number last.
	seen, reading string
	last          int64
}

func (p position) cursor() store.Cursor {
	return store.Cursor(strings.Join([]string{p.log, p.seen, p.reading, strconv.FormatInt(p.last, 10)}, " "))
}

// parseCursor reads a cursor. One that this store has not made is too old.
func parseCursor(c store.Cursor) (position, bool) {
	parts := strings.Split(string(c), " ")
	if len(parts) != 4 {
		return position{}, false
	}
	last, err := strconv.ParseInt(parts[3], 10, 64)
	return position{parts[0], parts[1], parts[2], last}, err == nil
}

// Watch calls see for each change from a cursor on. While the database is away it
// waits.
func (s *Store) Watch(ctx context.Context, from store.Cursor, see func(store.Change) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(s.closed, func() { cancel(fmt.Errorf("store postgres %s: %w", s.place, os.ErrClosed)) })()

	wake := make(chan struct{}, 1)
	listening := make(chan struct{})
	go func() {
		defer close(listening)
		s.listen(ctx, wake)
	}()
	defer func() {
		cancel(nil)
		<-listening
	}()

	var at position
	lost, away := false, false
	if from != "" {
		var ok bool
		at, ok = parseCursor(from)
		lost = !ok
	}
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		changes, next, more, err := s.changes(ctx, at)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if strings.HasPrefix(sqlState(err), classData) {
			// The database cannot read the cursor, so it is none of its own.
			at, lost = position{}, true
			continue
		}
		if (err != nil) != away {
			if away = err != nil; away {
				s.log.Warn("changes of other nodes are not seen until the database is back", zap.Error(err))
			} else {
				s.log.Info("changes of other nodes are seen again", zap.String("store", s.place))
			}
		}
		if err == nil {
			if lost = lost || next.lost; lost {
				if err := see(store.Change{At: next.cursor(), Lost: true}); err != nil {
					return err
				}
				lost = false
			}
			for _, c := range changes {
				if err := see(c); err != nil {
					return err
				}
			}
			at = next.position
			if more {
				continue
			}
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-wake:
		case <-tick.C:
		}
	}
}

// reached is the place behind the changes that have been read.
type reached struct {
	position
	lost bool // changes before that
}

// changes reads the log from a place on, the zero one being its end.
func (s *Store) changes(ctx context.Context, at position) (changes []store.Change, next reached, more bool, err error) {
	var (
		log, snapshot string
		lost          bool
		seq, version  pgtype.Int8
		id            pgtype.UUID
		forgotten     pgtype.Bool
		start         = at.log == ""
	)
	if start {
		at = position{seen: emptySnapshot, reading: emptySnapshot}
	}
	err = s.call(ctx, func(ctx context.Context) error {
		changes, next = nil, reached{}
		// One statement, so that the snapshot is that by which the changes are read.
		rows, err := s.pool.Query(ctx, `select l.name, pg_current_snapshot()::text, e.pruned >= pg_snapshot_xmin($1::pg_snapshot),
				c.seq, c.id, c.version, c.forgotten
			from pollard.epoch e cross join pollard.log_name() as l (name) left join lateral (
				select * from pollard.changes
				where xid >= pg_snapshot_xmin($1::pg_snapshot) and not pg_visible_in_snapshot(xid, $1::pg_snapshot)
					and not (seq <= $3 and pg_visible_in_snapshot(xid, $2::pg_snapshot))
					and l.name = $4
				order by seq limit $5) c on true
			order by c.seq`, at.seen, at.reading, at.last, at.log, watchLimit)
		if err != nil {
			return err
		}
		_, err = pgx.ForEachRow(rows, []any{&log, &snapshot, &lost, &seq, &id, &version, &forgotten}, func() error {
			if seq.Valid {
				p := position{log: log, seen: at.seen, reading: snapshot, last: seq.Int64}
				changes = append(changes, store.Change{At: p.cursor(), ID: id.Bytes, Version: uint64(version.Int64), Forgotten: forgotten.Bool})
			}
			return nil
		})
		return err
	})
	if err != nil {
		return nil, reached{}, false, err
	}
	next.position = position{log: log, seen: snapshot, reading: snapshot}
	switch {
	case start:
	case log != at.log || lost:
		next.lost, changes = true, nil
	case len(changes) == watchLimit:
		next.position = position{log: log, seen: at.seen, reading: snapshot, last: seq.Int64}
		more = true
	case len(changes) > 0:
		changes[len(changes)-1].At = next.cursor()
	}
	return changes, next, more, nil
}
