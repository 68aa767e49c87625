// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package poller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"syscall"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"go.uber.org/zap"

	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/cache/store/postgres"
	"github.com/feedpollard/pollard/cache/store/sqlite"
	"github.com/feedpollard/pollard/caddymodule/config"
)

func init() {
	caddy.RegisterModule(SQLite{})
	caddy.RegisterModule(Postgres{})
}

// Store is a module of the namespace pollard.stores. Modules may be provisioned while
// another configuration runs, so they use neither files nor the network before Open.
type Store interface {
	// Key identifies the stored data. Configurations with the same key share one engine.
	// It is not shown, because it may contain a password.
	Key() string
	// String describes the store in logs and responses.
	String() string
	// Open opens the store.
	Open(ctx context.Context, log *zap.Logger) (Database, error)
}

// Database is a store that is open.
type Database interface {
	store.Store
	store.Counters
	// Lost returns how long ago records were lost with a damaged file; -1 if none were.
	Lost(context.Context) (ago time.Duration, err error)
	io.Closer
}

// loadStore loads the configured store, or SQLite.
func (a *App) loadStore(ctx caddy.Context) error {
	if len(a.StoreRaw) == 0 {
		a.StoreRaw = json.RawMessage(`{"engine":"sqlite"}`)
	}
	loaded, err := ctx.LoadModule(a, "StoreRaw")
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	store, ok := loaded.(Store)
	if !ok {
		return fmt.Errorf("store: module %T is none", loaded)
	}
	a.store = store
	return nil
}

// SQLite stores feeds in a directory that one process uses.
type SQLite struct {
	// The directory. It is created if it does not exist. Placeholders such as
	// `{env.STATE_DIRECTORY}` are replaced. Default: the directory `pollard` in Caddy's
	// data directory.
	Directory string `json:"directory,omitempty"`

	resolved string
}

// CaddyModule returns the Caddy module information.
func (SQLite) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "pollard.stores.sqlite",
		New: func() caddy.Module { return new(SQLite) },
	}
}

// Provision resolves the directory.
func (s *SQLite) Provision(caddy.Context) (err error) {
	s.resolved = filepath.Join(caddy.AppDataDir(), "pollard")
	if s.Directory != "" {
		if s.resolved, err = config.Replace(caddy.NewReplacer(), s.Directory); err != nil {
			return err
		}
	}
	// All spellings of a directory have one key, before and after it is created.
	if s.resolved, err = filepath.Abs(s.resolved); err != nil {
		return fmt.Errorf("finding the directory: %w", err)
	}
	s.resolved = withoutLinks(s.resolved)
	return nil
}

// withoutLinks resolves the symbolic links in a path. Its last elements need not exist.
func withoutLinks(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	parent := filepath.Dir(path)
	if parent == path {
		return path
	}
	return filepath.Join(withoutLinks(parent), filepath.Base(path))
}

// UnmarshalCaddyfile reads the rest of the line store sqlite. Syntax:
//
//	sqlite [<directory>]
func (s *SQLite) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // the name
	args, err := config.SomeArgs(d, 0, 1, "a directory")
	if len(args) > 0 {
		s.Directory = args[0]
	}
	return err
}

func (s *SQLite) Key() string { return "sqlite:" + s.resolved }

// Path returns the directory after Provision, without placeholders and symbolic links.
func (s *SQLite) Path() string { return s.resolved }

func (s *SQLite) String() string { return "sqlite " + s.resolved }

func (s *SQLite) Open(_ context.Context, log *zap.Logger) (Database, error) {
	opened, err := sqlite.Open(s.resolved, sqlite.Options{Log: log})
	if errors.Is(err, syscall.EROFS) { // systemd's ProtectSystem=strict
		return nil, fmt.Errorf("%w: the service may write only where its unit allows it: `systemctl edit pollard`, and in [Service] ReadWritePaths=%s", err, s.resolved)
	}
	if err != nil {
		return nil, err
	}
	return opened, nil
}

// Postgres stores feeds in a PostgreSQL database, which several nodes may share
// (see docs/postgres.md).
type Postgres struct {
	// The URL of the database, such as
	// `postgres://pollard:{file./run/secrets/db}@db.example.net/pollard?sslmode=verify-full`.
	// Placeholders such as `{env.DB_PASSWORD}` are replaced; their values must be
	// percent-encoded. Required.
	URL string `json:"url"`

	resolved string
	place    string // host:port/database
}

// CaddyModule returns the Caddy module information.
func (Postgres) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "pollard.stores.postgres",
		New: func() caddy.Module { return new(Postgres) },
	}
}

// Provision resolves the URL. It does not connect.
func (p *Postgres) Provision(caddy.Context) (err error) {
	if p.URL == "" {
		return fmt.Errorf("postgres: the URL of the database is missing, such as postgres://user:password@host/database?sslmode=verify-full")
	}
	if p.resolved, err = config.Replace(caddy.NewReplacer(), p.URL); err != nil {
		return fmt.Errorf("postgres: %w", err)
	}
	p.place, err = postgres.Place(p.resolved)
	return err
}

// UnmarshalCaddyfile reads the rest of the line store postgres. Syntax:
//
//	postgres <url>
func (p *Postgres) UnmarshalCaddyfile(d *caddyfile.Dispenser) (err error) {
	d.Next() // the name
	if p.URL, err = config.OneArg(d, "the URL of a database such as postgres://user:password@host/database?sslmode=verify-full"); err != nil || config.HasPlaceholder(p.URL) {
		return err
	}
	if _, err = postgres.Place(p.URL); err != nil {
		return d.WrapErr(err)
	}
	return nil
}

func (p *Postgres) Key() string { return "postgres:" + p.place }

func (p *Postgres) String() string { return "postgres " + p.place }

func (p *Postgres) Open(ctx context.Context, log *zap.Logger) (Database, error) {
	return postgres.Open(ctx, postgres.Options{URL: p.resolved, Log: log})
}

// Interface guards.
var (
	_ caddy.Provisioner     = (*SQLite)(nil)
	_ caddyfile.Unmarshaler = (*SQLite)(nil)
	_ Store                 = (*SQLite)(nil)
	_ caddy.Provisioner     = (*Postgres)(nil)
	_ caddyfile.Unmarshaler = (*Postgres)(nil)
	_ Store                 = (*Postgres)(nil)
)
