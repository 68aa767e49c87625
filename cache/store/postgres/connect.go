// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// configure reads the URL of a database. Its error names no password.
func configure(url string) (*pgxpool.Config, error) {
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		// The text of the error itself may quote the URL.
		for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(err) {
			err = inner
		}
		return nil, fmt.Errorf("store postgres: the URL cannot be read (%s): it looks like postgres://user:password@host:5432/database?sslmode=verify-full", oneLine(err))
	}
	c := cfg.ConnConfig
	if c.Database == "" {
		c.Database = c.User // as the server does, but known to people
	}
	if !strings.Contains(url, "connect_timeout") {
		// A call that meets hosts that are silent has time for the last one.
		c.ConnectTimeout = callTimeout / time.Duration(1+strings.Count(place(c), ","))
	}
	if c.RuntimeParams["application_name"] == "" {
		c.RuntimeParams["application_name"] = "pollard"
	}
	cfg.AfterConnect = settle
	if c.ValidateConnect == nil {
		// A standby cannot grant anything. Of several hosts, the primary is wanted.
		c.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	return cfg, nil
}

// settle sets what the statements of a session need. Not all proxies take these settings
// at the start of a session.
func settle(ctx context.Context, conn *pgx.Conn) error {
	_, err := conn.Exec(ctx, settings, pgx.QueryExecModeSimpleProtocol)
	return err
}

// Nothing that others put into other schemas is used in place of what is meant. Each
// statement has an index: as plans are kept, one that was made while a table was small
// would read all of it when it has grown. Without table scans, the costs mean nothing to
// the compiler. A session that hangs must not hold locks. Whatever the defaults of the server are,
// statements see what was committed before them, and what was granted has to be on disk.
var settings = fmt.Sprintf(`
	set search_path = pollard, pg_catalog, pg_temp;
	set enable_seqscan = off;
	set jit = off;
	set default_transaction_isolation = 'read committed';
	set statement_timeout = %[1]d;
	set idle_in_transaction_session_timeout = %[1]d;
	select set_config('synchronous_commit', 'on', false) where current_setting('synchronous_commit') = 'off'`, callTimeout.Milliseconds())

// place names a database for people: its hosts and its name.
func place(c *pgx.ConnConfig) string {
	var hosts []string
	add := func(host string, port uint16) {
		if h := net.JoinHostPort(host, strconv.Itoa(int(port))); len(hosts) == 0 || hosts[len(hosts)-1] != h {
			hosts = append(hosts, h)
		}
	}
	add(c.Host, c.Port)
	for _, f := range c.Fallbacks { // other hosts, or the same without TLS
		add(f.Host, f.Port)
	}
	return strings.Join(hosts, ",") + "/" + c.Database
}

// inspect says what of the server's settings puts the promise at risk that no feed is
// polled twice.
func inspect(ctx context.Context, conn *pgx.Conn) (warnings []string, err error) {
	var fsync, fullPages, async bool
	err = conn.QueryRow(ctx, `select current_setting('fsync') = 'off', current_setting('full_page_writes') = 'off',
		(select reset_val from pg_settings where name = 'synchronous_commit') = 'off'`).Scan(&fsync, &fullPages, &async)
	if err != nil {
		return nil, err
	}
	if fsync {
		warnings = append(warnings, "the database runs with fsync = off: if its machine crashes, feeds are polled twice or all is lost; set fsync = on")
	}
	if fullPages {
		warnings = append(warnings, "the database runs with full_page_writes = off: if its machine crashes, tables may be damaged; set full_page_writes = on")
	}
	if async {
		warnings = append(warnings, "the database runs with synchronous_commit = off: Pollard turns it on for what must not be lost")
	}
	if remoteInTheClear(conn.PgConn()) {
		warnings = append(warnings, "the connection to the database is not encrypted: add sslmode=verify-full to the store's URL")
	}
	return warnings, nil
}

// remoteInTheClear reports whether others may read what goes over a connection.
func remoteInTheClear(conn *pgconn.PgConn) bool {
	if _, ok := conn.Conn().(*tls.Conn); ok {
		return false
	}
	addr, ok := conn.Conn().RemoteAddr().(*net.TCPAddr)
	return ok && !addr.IP.IsLoopback()
}
