// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/feedpollard/pollard/cache/store"
)

// keyVersion is the key in meta of the version of the tables.
const keyVersion = "version"

// ownSchema is what only a database with many writers needs, or what is said otherwise in
// other databases.
const ownSchema = `
alter table body alter column data set storage external; -- it is compressed already
alter table feed set (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05); -- as each poll writes a row twice
alter table host set (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05);
create index feed_changed on feed (changed);

create sequence tokens increment by %d;

create table server (                -- one row
	one   boolean primary key default true check (one),
	name  text not null,             -- of the server that last granted a claim
	era   bigint not null default 1, -- the upper part of its tokens
	since bigint,                    -- grants from before may be lost with another server; null: none
	scale bigint not null,           -- the time by the clock of the tables
	wall  timestamptz not null,      -- and by that of the server, when these two were written
	sum   bigint not null            -- of era, since, scale and wall: a wrong time would have all feeds polled at once
)`

// makeTables makes the tables, unless they are there. If several nodes start at the same
// time, one does so and the others wait.
func makeTables(ctx context.Context, conn *pgx.Conn) error {
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock(hashtext('pollard.migrations'))`); err != nil {
			return err
		}
		there, err := inspectTables(ctx, tx)
		if err != nil || there {
			return err
		}
		statements := append([]string{`create schema if not exists pollard`}, store.Schema("bigint generated always as identity primary key", "bytea")...)
		for _, sql := range append(statements, fmt.Sprintf(ownSchema, tokensAtOnce)) {
			if _, err := tx.Exec(ctx, sql, pgx.QueryExecModeSimpleProtocol); err != nil {
				return fmt.Errorf("making the tables: %w", err)
			}
		}
		_, err = tx.Exec(ctx, `insert into meta (key, value) values ($1, $2)`, keyVersion, strconv.Itoa(store.SchemaVersion))
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `insert into server (name, scale, wall, sum) values (`+serverName+`, $1, now(), `+
			sumOfServer("1", "null", "$1::bigint", "now()")+`)`, time.Now().UnixNano())
		return err
	})
}

// inspectTables reports whether the schema has tables, and fails if they cannot be used.
func inspectTables(ctx context.Context, tx pgx.Tx) (exist bool, err error) {
	var (
		major        int
		tables       int
		ours, second bool
	)
	err = tx.QueryRow(ctx, `select current_setting('server_version_num')::int / 10000,
		(select count(*) from pg_class where relnamespace = to_regnamespace('pollard')),
		to_regclass('pollard.meta') is not null and to_regclass('pollard.server') is not null,
		to_regclass('pollard.epoch') is not null and to_regclass('pollard.memos') is not null`).Scan(&major, &tables, &ours, &second)
	switch {
	case err != nil:
		return false, err
	case major < 13:
		return false, refusal(fmt.Sprintf("the server is PostgreSQL %d: 13 or later is needed", major))
	case second:
		return false, refusal(`its schema "pollard" is of an earlier edition: write its feeds with "feeds export" of that edition, ` +
			`drop the schema, and read them with "feeds import"; or name an empty database`)
	case tables > 0 && !ours:
		return false, refusal(`its schema "pollard" belongs to another program: give Pollard a database of its own`)
	case !ours:
		return false, nil
	}
	var text string
	if err := tx.QueryRow(ctx, `select value from meta where key = $1`, keyVersion).Scan(&text); err != nil {
		return false, fmt.Errorf("reading the version of the tables: %w", err)
	}
	if version, err := strconv.Atoi(text); err != nil || version > store.SchemaVersion {
		return false, refusal(fmt.Sprintf("its tables have version %s, and this Pollard knows version %d: upgrade this node", text, store.SchemaVersion))
	}
	return true, nil
}
