// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"strings"

	"modernc.org/sqlite"
)

// connection is one connection to a database, with the statements that it has prepared.
// It is used without database/sql, whose goroutines outlive a call, and whose one
// connection would make readers wait for the writer.
type connection struct {
	conn       driver.Conn
	statements map[string]driver.Stmt
}

// connect opens a connection. Path is empty for a database in memory.
func connect(path string, pragmas ...string) (*connection, error) {
	name := ":memory:"
	if path != "" {
		name = (&url.URL{Scheme: "file", OmitHost: true, Path: filepath.ToSlash(path)}).String()
	}
	conn, err := new(sqlite.Driver).Open(name)
	if err != nil {
		return nil, err
	}
	c := &connection{conn: conn, statements: make(map[string]driver.Stmt)}
	for _, p := range pragmas {
		if err := c.exec("pragma " + p); err != nil {
			return nil, errors.Join(fmt.Errorf("setting %s: %w", p, err), c.close())
		}
	}
	return c, nil
}

func (c *connection) close() error {
	for _, s := range c.statements {
		s.Close()
	}
	return c.conn.Close()
}

func (c *connection) prepare(text string) (driver.Stmt, error) {
	if s, ok := c.statements[text]; ok {
		return s, nil
	}
	// Only databases with many writers need locks.
	s, err := c.conn.Prepare(strings.NewReplacer(" for update skip locked", "", " for update", "", "n = default", "n = (select max(n) + 1 from feed)").Replace(text))
	if err == nil {
		c.statements[text] = s
	}
	return s, err
}

// named returns arguments as the driver takes them.
func named(args []any) []driver.NamedValue {
	values := make([]driver.NamedValue, len(args))
	for i, a := range args {
		if n, ok := a.(int); ok {
			a = int64(n)
		}
		values[i] = driver.NamedValue{Ordinal: i + 1, Value: a}
	}
	return values
}

// exec runs a statement that returns nothing of interest.
func (c *connection) exec(text string, args ...any) error {
	s, err := c.prepare(text)
	if err == nil {
		_, err = s.(driver.StmtExecContext).ExecContext(context.Background(), named(args))
	}
	return err
}

// query runs a statement and calls scan for each row.
func (c *connection) query(ctx context.Context, text string, args []any, scan func(row) error) (err error) {
	s, err := c.prepare(text)
	if err != nil {
		return err
	}
	rows, err := s.(driver.StmtQueryContext).QueryContext(ctx, named(args))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	values := make(row, len(rows.Columns()))
	for {
		switch err := rows.Next(values); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		if err := scan(values); err != nil {
			return err
		}
	}
}

// value returns the only column of the only row.
func (c *connection) value(text string) (v driver.Value, err error) {
	err = c.query(context.Background(), text, nil, func(r row) error {
		v = r[0]
		return nil
	})
	return v, err
}

// number returns the only column of the only row, which is a number.
func (c *connection) number(text string) (int64, error) {
	v, err := c.value(text)
	n, _ := v.(int64)
	return n, err
}

// row is a row of a result.
type row []driver.Value

// Scan implements [store.Row].
func (r row) Scan(into ...any) error {
	for i, to := range into {
		switch to := to.(type) {
		case *int64:
			*to, _ = r[i].(int64)
		case *int:
			n, _ := r[i].(int64)
			*to = int(n)
		case *string:
			*to, _ = r[i].(string)
		case *[]byte:
			*to, _ = r[i].([]byte)
		case *sql.NullInt64:
			to.Int64, to.Valid = r[i].(int64)
		case *sql.NullString:
			to.String, to.Valid = r[i].(string)
		case *any:
			*to = r[i]
		}
	}
	return nil
}
