// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/zap"

	"github.com/feedpollard/pollard/cache/store"
)

const (
	// tickEvery is how often a node writes the time.
	tickEvery = 10 * time.Second

	// maxBehind is how far the server's clock counts beyond what was written last, for a
	// node that has not read the time before.
	maxBehind = 30 * time.Second

	// maxAway is the longest time without any node for which the server's clock is believed.
	// It is as long as the longest pause that an origin can ask for.
	maxAway = 7 * 24 * time.Hour
)

// databaseClock is the time by which the nodes of a database plan polls. Only the server's
// clock is the same for all of them, and people and programs set it. So the time is
// that clock's plus a difference, which the nodes correct: to a node, it advances no
// faster than the time since its machine was booted.
type databaseClock struct {
	sinceBoot func() time.Duration

	mu   sync.Mutex // guards all below
	read bool       // once at least
	last store.Time // that the server's clock was believed
	at   time.Duration
}

// reading is what a statement reads.
type reading struct {
	scale store.Time // what was written last
	wall  time.Time  // the server's clock at that moment
	clock time.Time  // the server's clock now
}

// shown is the time by the server's clock alone.
func (r reading) shown() store.Time { return r.scale.Add(max(0, r.clock.Sub(r.wall))) }

// sumOfServer returns the sum of a row of the table server that has these values.
func sumOfServer(era, since, scale, wall string) string {
	return fmt.Sprintf(`hashtextextended(concat_ws(' ', %s, %s, %s, date_part('epoch', %s)::bigint), 0)`, era, since, scale, wall)
}

// whole is the condition that the row of the table server is as it was written.
var whole = `sum = ` + sumOfServer("era", "since", "scale", "wall")

// errTime reports that the time in the database is damaged.
var errTime = errors.New("the time in the database is damaged")

var readClock = `select scale, wall, clock_timestamp() from server where ` + whole

// now returns the time of a reading that this node asked for at a moment since boot.
func (c *databaseClock) now(r reading, asked time.Duration) (now store.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	shown := r.shown()
	limit := r.scale.Add(maxBehind)
	if c.read {
		// The time that another node has written is believed.
		limit = max(r.scale, c.last.Add(max(0, c.sinceBoot()-c.at)))
	}
	now = min(shown, limit)
	if now == shown || now == r.scale { // or it would be longer than it takes to ask
		if !c.read || asked >= c.at {
			c.read, c.last, c.at = true, now, asked
		}
	}
	return now
}

// tick writes the time now and then, so that a clock that is set is corrected.
func (d *database) tick() {
	ticker := time.NewTicker(tickEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-d.closed.Done():
			return
		}
		err := d.withConn(d.closed, func(ctx context.Context, conn *pgx.Conn) error { return d.writeTime(ctx, conn) })
		if err != nil && d.closed.Err() == nil {
			d.log.Debug("the time could not be written", zap.Error(err))
		}
	}
}

// writeTime writes the time, unless another node has just done so.
func (d *database) writeTime(ctx context.Context, conn *pgx.Conn) error {
	r, asked, err := d.readTime(ctx, conn)
	if err != nil {
		return err
	}
	now := d.clock.now(r, asked)
	ahead := r.shown().Sub(now)
	if since := r.clock.Sub(r.wall); ahead == 0 && since >= 0 && since < tickEvery/2 {
		return nil
	}
	if ahead > time.Second {
		d.log.Warn("the clock of the database was set forward, which has no effect on polls", zap.Duration("by", ahead))
	}
	return setTime(ctx, conn, r, now)
}

// setTime writes the time of a reading, unless another node has written it since.
func setTime(ctx context.Context, conn *pgx.Conn, r reading, now store.Time) error {
	_, err := conn.Exec(ctx, `update server set scale = $1, wall = $2, sum = `+sumOfServer("era", "since", "$1::bigint", "$2::timestamptz")+`
		where scale = $3 and wall = $4`,
		int64(now), r.clock, int64(r.scale), r.wall)
	return err
}

func (d *database) readTime(ctx context.Context, conn *pgx.Conn) (r reading, asked time.Duration, err error) {
	for range 2 {
		asked = d.clock.sinceBoot()
		err = conn.QueryRow(ctx, readClock).Scan(&r.scale, &r.wall, &r.clock)
		if !errors.Is(err, pgx.ErrNoRows) {
			break
		}
		if err := d.mendTime(ctx, conn); err != nil {
			return r, asked, err
		}
	}
	return r, asked, err
}

// mendTime writes the row of the table server again if it is damaged: the time is that of the
// server's clock, or that of the last change if that is later. A feed may be polled once more.
func (d *database) mendTime(ctx context.Context, conn *pgx.Conn) error {
	const scale = `greatest((date_part('epoch', now()) * 1e9)::bigint, (select max(changed) from feed))`
	tag, err := conn.Exec(ctx, `update server set era = 1, since = null, scale = `+scale+`, wall = now(),
		sum = `+sumOfServer("1", "null", scale, "now()")+` where not (`+whole+`)`)
	if err == nil && tag.RowsAffected() > 0 {
		d.log.Error("the time in the database is damaged: it is now that of the server's clock", zap.String("store", d.place))
	}
	return err
}

// resumeClock makes sure that the time was written recently. If it was not, there was no
// node, and the server's clock is believed. If there is one, which began earlier, that clock
// was set, and the other node corrects it.
func (d *database) resumeClock(ctx context.Context, conn *pgx.Conn) error {
	for deadline := time.Now().Add(tickEvery + 2*time.Second); ; time.Sleep(time.Second) {
		r, asked, err := d.readTime(ctx, conn)
		if err != nil {
			return err
		}
		away := r.clock.Sub(r.wall)
		if away >= 0 && away <= maxBehind {
			d.clock.now(r, asked)
			return nil
		}
		var others bool
		err = conn.QueryRow(ctx, `select exists (select from pg_stat_activity a join pg_stat_activity own
			on own.pid = pg_backend_pid() and a.backend_start < own.backend_start and a.datname = own.datname
			and a.usename = own.usename and a.application_name = own.application_name)`).Scan(&others)
		if err != nil {
			return err
		}
		if !others || time.Now().After(deadline) {
			return setTime(ctx, conn, r, r.scale.Add(min(max(0, away), maxAway)))
		}
	}
}
