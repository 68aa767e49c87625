// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"maps"
	"time"

	"go.uber.org/zap"

	"github.com/feedpollard/pollard/cache/store"
)

const (
	// lookEvery is how often changes are read: so much later a node sees those of others.
	lookEvery = time.Second

	// lookBack is how long a transaction may take from its reading of the time to its
	// commit: the server ends statements after callTimeout, and sessions that wait as long
	// within a transaction.
	lookBack = 2 * callTimeout

	// lookFor is how far back changes are known: forgotten feeds are deleted some time later.
	lookFor = 10 * time.Minute
)

// watcher is a call of Watch.
type watcher struct {
	d      *database
	server string                  // that was read last
	last   store.Time              // then
	looked time.Duration           // the same by the clock of this node, which counts its sleep
	seen   map[store.ID]store.Time // when feeds changed that have been seen, for some time
}

// Watch implements [store.Driver]. While the database is away it waits.
//
// All changes are read from the rows of feeds, those of the last lookBack again and again: a change
// becomes visible some time after the moment that its row says.
func (d *database) Watch(ctx context.Context, see func(store.Change) error) error {
	if err := d.ended(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(d.closed, func() { cancel(d.errClosed()) })()

	w := &watcher{d: d, seen: make(map[store.ID]store.Time)}
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for away := false; ; {
		changes, err := w.look(ctx)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if (err != nil) != away {
			if away = err != nil; away {
				d.log.Warn("changes of other nodes are not seen until the database is back", zap.Error(err))
			} else {
				d.log.Info("changes of other nodes are seen again", zap.String("store", d.place))
			}
		}
		for _, c := range changes {
			if err := see(c); err != nil {
				return err
			}
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// serverName is an expression that names the server and its history: it changes when a
// standby is promoted, and when the tables come from a dump.
const serverName = `(select system_identifier from pg_control_system()) || '/' || left(pg_walfile_name(pg_current_wal_lsn()), 8)
	|| '/' || 'feed'::regclass::oid`

const readChanges = `select id, version * news, outcome, url is null, changed from feed where changed > ?1 order by changed`

// look reads what has changed since it looked last.
func (w *watcher) look(ctx context.Context) (unseen []store.Change, err error) {
	var (
		server string
		now    store.Time
		lost   bool
	)
	began, seen := w.d.clock.sinceBoot(), make(map[store.ID]store.Time)
	err = w.d.Read(ctx, func(tx store.Tx) error {
		unseen = nil
		err := tx.Query(`select `+serverName, [][]any{nil}, func(_ int, row store.Row) error { return row.Scan(&server) })
		if err != nil {
			return err
		}
		now = tx.Now()
		from := w.last
		if lost = server != w.server || began-w.looked > lookFor; lost {
			from = now
			unseen = append(unseen, store.Change{Lost: true})
		}
		return tx.Query(readChanges, [][]any{{int64(from.Add(-lookBack))}}, func(_ int, row store.Row) error {
			var c store.Change
			var id []byte
			var at store.Time
			err := row.Scan(&id, &c.Version, &c.Token, &c.Forgotten, &at)
			copy(c.ID[:], id)
			if before, ok := w.seen[c.ID]; !lost && (!ok || before != at) {
				unseen = append(unseen, c)
			}
			seen[c.ID] = at
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	w.server, w.last, w.looked = server, now, began
	maps.Copy(w.seen, seen)
	maps.DeleteFunc(w.seen, func(_ store.ID, at store.Time) bool { return now.Sub(at) > 2*lookBack })
	return unseen, nil
}
