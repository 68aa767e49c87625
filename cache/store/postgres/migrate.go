// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

// migrations are all that this version knows, in their order.
var migrations = readMigrations(migrationFiles)

// migration is a step from one version of the tables to the next.
type migration struct {
	version int
	// minCompatible is the oldest version whose programs can go on with the tables.
	minCompatible int
	sql           string
}

// readMigrations reads the files NNN_name.sql, each of which says "-- compatible: N".
func readMigrations(files fs.FS) (steps []migration) {
	names, err := fs.Glob(files, "migrations/*.sql")
	if err != nil {
		panic(err)
	}
	for i, name := range names {
		sql, err := fs.ReadFile(files, name)
		if err != nil {
			panic(err)
		}
		_, after, _ := strings.Cut(string(sql), "-- compatible: ")
		line, _, _ := strings.Cut(after, "\n")
		m := migration{version: i + 1, sql: string(sql)}
		if m.minCompatible, err = strconv.Atoi(line); err != nil || !strings.HasPrefix(name, fmt.Sprintf("migrations/%03d_", m.version)) {
			panic("postgres: " + name + " has a wrong number or does not say with what it is compatible")
		}
		steps = append(steps, m)
	}
	return steps
}

// migrate applies the steps that a database lacks. Of several nodes that start at the
// same time, one does it and the others wait.
func migrate(ctx context.Context, conn *pgx.Conn, steps []migration) error {
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		// A large table may take longer than a call is allowed to.
		if _, err := tx.Exec(ctx, `set local statement_timeout = 0`); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock(hashtext('pollard.migrations'))`); err != nil {
			return err
		}
		at, err := currentVersion(ctx, tx, len(steps))
		if err != nil {
			return err
		}
		for _, m := range steps[min(at, len(steps)):] {
			// Without arguments, a text may hold several statements.
			if _, err := tx.Conn().PgConn().Exec(ctx, m.sql).ReadAll(); err != nil {
				return fmt.Errorf("migration %d: %w", m.version, err)
			}
			if _, err := tx.Exec(ctx, `insert into pollard.migrations (version, min_compatible) values ($1, $2)`, m.version, m.minCompatible); err != nil {
				return err
			}
		}
		return nil
	})
}

// currentVersion returns the version of the tables, 0 if there are none, and makes sure
// that they are ours and that a program that knows them up to version known can use them.
func currentVersion(ctx context.Context, tx pgx.Tx, known int) (int, error) {
	var (
		major   int
		schema  bool
		tables  int
		columns int
	)
	err := tx.QueryRow(ctx, `select current_setting('server_version_num')::int / 10000,
		to_regnamespace('pollard') is not null,
		(select count(*) from pg_class where relnamespace = to_regnamespace('pollard')),
		(select count(*) from pg_attribute where attrelid = to_regclass('pollard.migrations')
			and attname in ('version', 'min_compatible', 'applied'))`).Scan(&major, &schema, &tables, &columns)
	switch {
	case err != nil:
		return 0, err
	case major < 13:
		return 0, refusal(fmt.Sprintf("the server is PostgreSQL %d: 13 or later is needed", major))
	case columns != 3 && tables > 0:
		return 0, refusal(`its schema "pollard" belongs to another program: give Pollard a database of its own`)
	case !schema:
		_, err := tx.Exec(ctx, `create schema pollard`)
		return 0, err
	case columns != 3:
		return 0, nil
	}
	var version, minCompatible int
	err = tx.QueryRow(ctx, `select coalesce(max(version), 0), coalesce(max(min_compatible), 0) from pollard.migrations`).
		Scan(&version, &minCompatible)
	if err == nil && minCompatible > known {
		err = refusal(fmt.Sprintf("its tables have version %d, which needs a Pollard that knows version %d; this one knows %d: upgrade this node",
			version, minCompatible, known))
	}
	return version, err
}
