// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/zap"

	"github.com/feedpollard/pollard/cache/store"
)

const (
	// lookEvery is how often changes are read: so much later a node sees a change of which
	// it was not notified.
	lookEvery = 2 * time.Second

	// lookBack is how long a transaction may take from its reading of the time to its
	// commit: the server ends statements after callTimeout, and sessions that wait as long
	// within a transaction.
	lookBack = 2 * callTimeout

	// lookFor is how far back changes are known: forgotten feeds are deleted some time later.
	lookFor = 10 * time.Minute
)

// change is a change and the time of its transaction, which is feed.changed.
type change struct {
	store.Change
	at store.Time
}

// watcher is a call of Watch.
type watcher struct {
	d      *database
	server string                  // that was read last
	last   store.Time              // then
	looked time.Time               // the same by the clock of this node
	seen   map[store.ID]store.Time // the last changes that have been seen, for some time
}

// Watch implements [store.Driver]. While the database is away it waits.
//
// Versions and forgotten feeds are notified. All changes are read from the rows of feeds
// now and then, those of the last lookBack again and again: a change becomes visible some
// time after the moment that its row says.
func (d *database) Watch(ctx context.Context, see func(store.Change) error) error {
	if err := d.ended(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(d.closed, func() { cancel(d.errClosed()) })()

	notices := make(chan string, 100)
	var listening sync.WaitGroup
	listening.Go(func() { d.listen(ctx, notices) })
	defer func() { cancel(nil); listening.Wait() }()

	w := &watcher{d: d, seen: make(map[store.ID]store.Time)}
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for away := false; ; {
		var changes []store.Change
		var err error
		select {
		case text := <-notices:
			changes, err = w.notified(ctx, text)
		case <-ticker.C:
			changes, err = w.look(ctx)
		case <-ctx.Done():
		}
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
	}
}

const readChanges = `select id, version * news, outcome, url is null, changed from feed where changed > ?1 order by changed`

// look reads what has changed since it looked last.
func (w *watcher) look(ctx context.Context) (unseen []store.Change, err error) {
	var (
		server  string
		now     store.Time
		lost    bool
		changes []change
	)
	began := time.Now()
	err = w.d.Read(ctx, func(tx store.Tx) error {
		changes = nil
		err := tx.Query(`select `+serverName, [][]any{nil}, func(_ int, row store.Row) error { return row.Scan(&server) })
		if err != nil {
			return err
		}
		now = tx.Now()
		from := w.last
		if lost = server != w.server || began.Sub(w.looked) > lookFor; lost {
			from = now
		}
		return tx.Query(readChanges, [][]any{{int64(from.Add(-lookBack))}}, func(_ int, row store.Row) error {
			var c change
			var id []byte
			err := row.Scan(&id, &c.Version, &c.Token, &c.Forgotten, &c.at)
			copy(c.ID[:], id)
			changes = append(changes, c)
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	w.server, w.last, w.looked = server, now, began
	if lost {
		unseen = append(unseen, store.Change{Lost: true})
	}
	for _, c := range changes {
		if w.unseen(c) && !lost {
			unseen = append(unseen, c.Change)
		}
	}
	maps.DeleteFunc(w.seen, func(_ store.ID, at store.Time) bool { return now.Sub(at) > 2*lookBack })
	return unseen, nil
}

// unseen reports whether a change has not been seen, and records it.
func (w *watcher) unseen(c change) bool {
	at, ok := w.seen[c.ID]
	w.seen[c.ID] = c.at
	return !ok || at != c.at
}

const (
	noticeFormat = "%x %d %d %t %d\n"

	// maxNotice is the largest size of a notification, in bytes. The server takes 7999.
	maxNotice = 7000
)

// notify notifies other nodes of versions and of feeds that are forgotten. Transactions that
// notify wait for each other in the server, so other changes are read later.
func notify(tx *transaction) {
	var text strings.Builder
	for _, c := range tx.changes {
		if c.Version != 0 || c.Forgotten {
			fmt.Fprintf(&text, noticeFormat, c.ID[:], c.Version, c.Token, c.Forgotten, c.at)
		}
	}
	if size := text.Len(); size > maxNotice {
		tx.queue(`notify pollard`)
	} else if size > 0 {
		tx.queue(`select pg_notify('pollard', $1)`, text.String())
	}
}

// notified returns the changes of a notification. An empty one asks to look.
func (w *watcher) notified(ctx context.Context, text string) (changes []store.Change, err error) {
	if text == "" || w.server == "" {
		return w.look(ctx)
	}
	for line := range strings.Lines(text) {
		var c change
		var id []byte
		if _, err := fmt.Sscanf(line, noticeFormat, &id, &c.Version, &c.Token, &c.Forgotten, &c.at); err != nil {
			return w.look(ctx)
		}
		copy(c.ID[:], id)
		if w.unseen(c) {
			changes = append(changes, c.Change)
		}
	}
	return changes, nil
}

// listen receives notifications until ctx ends, on a connection of its own. That may be
// lost at any time, and notifications with it: they only save some waiting.
func (d *database) listen(ctx context.Context, notices chan<- string) {
	const pause = 5 * time.Second
	for ctx.Err() == nil {
		d.listenOnce(ctx, notices)
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// listenOnce listens as long as a connection lasts.
func (d *database) listenOnce(ctx context.Context, notices chan<- string) {
	conn, err := pgx.ConnectConfig(ctx, d.pool.Config().ConnConfig)
	if err != nil {
		return
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		conn.Close(ctx)
	}()
	if _, err := conn.Exec(ctx, `listen pollard`); err != nil {
		return
	}
	for text := ""; ; { // the first asks for what was notified before
		select {
		case notices <- text:
		case <-ctx.Done():
			return
		}
		n, err := conn.WaitForNotification(ctx)
		if err != nil {
			return
		}
		text = n.Payload
	}
}
