// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"go.uber.org/zap"

	"github.com/feedpollard/pollard/cache/store"
)

// keyVersion is the key in meta of the version of the tables.
const keyVersion = "version"

// ours is the version that this program knows.
var ours = strconv.Itoa(store.Version)

// readVersion reads the version of the tables.
const readVersion = `select value from meta where key = 'version'`

// ownSchema is what only a database with many writers needs, or what is said otherwise in
// other databases.
const ownSchema = `
alter table body alter column data set storage external; -- it is compressed already
alter table feed set (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05); -- as each poll writes a row twice
alter table host set (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05);
create index feed_changed on feed (changed);

create table server (                -- one row
	one   boolean primary key default true check (one),
	name  text not null,             -- unused, as era and since
	era   bigint not null default 1,
	since bigint,
	scale bigint not null,           -- the time by the clock of the tables
	wall  timestamptz not null,      -- and by that of the server, when these two were written
	sum   bigint not null            -- of era, since, scale and wall: a wrong time would have all feeds polled at once
)`

// bringUp makes the tables, or brings those of an earlier version up to this one. While another
// session holds a lock that it needs, such as a backup, it tries again and again, and lets claims of other
// nodes through in between.
func (d *database) bringUp(ctx context.Context, conn *pgx.Conn) error {
	const pause = time.Second
	for waiting := false; ; {
		err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error { return d.runSteps(ctx, tx) })
		switch sqlState(err) {
		case codeLocked, codeDeadlock:
		case "":
			return err
		default:
			server, _ := errors.AsType[*pgconn.PgError](err)
			return refusal(fmt.Sprintf("bringing its tables up to version %d: %s: nothing was changed", store.Version, explainServer(server)))
		}
		if !waiting {
			waiting = true
			d.log.Warn("another session holds locks on the tables, perhaps a backup: they are brought up when it ends", zap.String("store", d.place))
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return err
		}
	}
}

// runSteps runs the statements of the versions that the tables lack. If several nodes start at the same
// time, one does so and the others wait.
func (d *database) runSteps(ctx context.Context, tx pgx.Tx) error {
	run := func(statements ...string) error {
		for _, sql := range statements {
			if _, err := tx.Exec(ctx, sql, pgx.QueryExecModeSimpleProtocol); err != nil {
				return err
			}
		}
		return nil
	}
	lockTimeout := fmt.Sprintf(`set local lock_timeout = %d`, callTimeout.Milliseconds())
	if err := run(lockTimeout, `set local statement_timeout = 0`, `select pg_advisory_xact_lock(hashtext('pollard.migrations'))`); err != nil {
		return err
	}
	version, err := inspectTables(ctx, tx)
	if err != nil || version == store.Version {
		return err
	}
	steps := store.Steps("bigint generated always as identity primary key", "bytea")
	if version == 0 {
		err = run(slices.Concat([]string{`create schema if not exists pollard`}, steps[0], []string{ownSchema})...)
		if err == nil {
			_, err = tx.Exec(ctx, `insert into server (name, scale, wall, sum) values ('', $1, now(), `+
				sumOfServer("1", "null", "$1::bigint", "now()")+`)`, time.Now().UnixNano())
		}
		if err != nil {
			return err
		}
		version = 1
	} else {
		began := time.Now()
		d.log.Info("the tables are brought up to the present version: do not stop Pollard",
			zap.String("store", d.place), zap.Int("from", version), zap.Int("to", store.Version))
		defer func() {
			if err == nil {
				d.log.Info("the tables are brought up", zap.Duration("took", time.Since(began)))
			}
		}()
	}
	if err = run(slices.Concat(steps[version:]...)...); err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `insert into meta (key, value) values ($1, $2) on conflict (key) do update set value = excluded.value`, keyVersion, ours)
	return err
}

// inspectTables returns the version of the tables, 0 if there are none, and fails if they cannot be used.
func inspectTables(ctx context.Context, tx pgx.Tx) (version int, err error) {
	var (
		major  int
		tables int
		ours   bool
	)
	err = tx.QueryRow(ctx, `select current_setting('server_version_num')::int / 10000,
		(select count(*) from pg_class where relnamespace = to_regnamespace('pollard')),
		to_regclass('pollard.meta') is not null and to_regclass('pollard.server') is not null`).Scan(&major, &tables, &ours)
	switch {
	case err != nil:
		return 0, err
	case major < 13:
		return 0, refusal(fmt.Sprintf("the server is PostgreSQL %d: 13 or later is needed", major))
	case tables > 0 && !ours:
		return 0, refusal(`its schema "pollard" belongs to another program: give Pollard a database of its own`)
	case !ours:
		return 0, nil
	}
	var text string
	if err := tx.QueryRow(ctx, `select value from meta where key = $1`, keyVersion).Scan(&text); err != nil {
		return 0, fmt.Errorf("reading the version of the tables: %w", err)
	}
	if version, err = strconv.Atoi(text); err != nil || version < 1 || version > store.Version {
		return 0, otherVersion(text)
	}
	return version, nil
}

// otherVersion says that the tables have a version that this program does not know.
func otherVersion(text string) error {
	return refusal(fmt.Sprintf("its tables have version %s, and this Pollard knows version %d: upgrade this node", text, store.Version))
}
