// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/zap"

	"github.com/feedpollard/pollard/cache/store"
)

// serverName is an expression that names the server and its history: it changes when a
// standby is promoted, and when the tables come from a dump.
const serverName = `(select system_identifier from pg_control_system()) || '/' || left(pg_walfile_name(pg_current_wal_lsn()), 8)
	|| '/' || 'feed'::regclass::oid`

// epoch is since when a server grants claims.
type epoch struct {
	tokens store.Token // from here on none has been given
	since  store.Time  // earlier grants may be lost; Never: none can be
	here   bool        // the server is the one of the epoch
	tables string      // their version
}

// sumOfServer returns the sum of a row of the table server that has these values.
func sumOfServer(era, since, scale, wall string) string {
	return fmt.Sprintf(`hashtextextended(concat_ws(' ', %s, %s, %s, date_part('epoch', %s)::bigint), 0)`, era, since, scale, wall)
}

// whole is the condition that the row of the table server is as it was written.
var whole = `sum = ` + sumOfServer("era", "since", "scale", "wall")

// tokensAtOnce is how many tokens a transaction takes from their sequence: no fewer than any gives.
const tokensAtOnce = 1000

// readEpoch also takes tokens. Their upper part is the era.
var readEpoch = `select (era << 40) + nextval('tokens'), since, name = ` + serverName + ` and ` + whole + `, (select value from meta where key = 'version') from server`

func (e *epoch) scan(row pgx.Row) error {
	var since sql.NullInt64
	err := row.Scan(&e.tokens, &since, &e.here, &e.tables)
	if e.since = store.Never; since.Valid {
		e.since = store.Time(since.Int64)
	}
	return err
}

// errEpoch reports that another server has taken over.
var errEpoch = errors.New("another server has taken over")

// assumePolls begins an epoch if the server is another one: grants up to now may have been lost. Two
// seconds are added for clocks that differ. The timeline grows with each promotion, so no
// two servers give the same tokens.
func (d *database) assumePolls(ctx context.Context, conn *pgx.Conn) error {
	r, asked, err := d.readTime(ctx, conn)
	if err != nil {
		return err
	}
	since := d.clock.now(r, asked).Add(2 * time.Second)
	const era = `greatest(era + 1, ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::bigint)`
	_, err = conn.Exec(ctx, `update server set name = `+serverName+`, since = $1, era = `+era+`,
		sum = `+sumOfServer(era, "$1::bigint", "scale", "wall")+` where name <> `+serverName, int64(since))
	return err
}

// mendServer writes the row of the table server again if it is damaged: the time is that of the
// server's clock, and claims up to now are taken as lost. The era is later than any before.
func (d *database) mendServer(ctx context.Context, conn *pgx.Conn) error {
	const era, scale = `(date_part('epoch', now()) / 600)::bigint`, `(date_part('epoch', now()) * 1e9)::bigint`
	tag, err := conn.Exec(ctx, `update server set name = '', since = null, era = `+era+`, scale = `+scale+`, wall = now(),
		sum = `+sumOfServer(era, "null", scale, "now()")+` where not (`+whole+`)`)
	if err == nil && tag.RowsAffected() > 0 {
		d.log.Error("the time in the database is damaged: feeds that are due wait for an interval", zap.String("store", d.place))
	}
	return err
}
