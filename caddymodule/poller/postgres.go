// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package poller

import (
	"context"
	"fmt"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"go.uber.org/zap"

	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/cache/store/postgres"
	"github.com/feedpollard/pollard/caddymodule/config"
)

func init() {
	caddy.RegisterModule(Postgres{})
}

// Postgres stores feeds in a PostgreSQL database, which several nodes may share. A poll
// by one node serves all of them.
type Postgres struct {
	// The URL of the database, such as
	// `postgres://pollard:{file./run/secrets/db}@db.example.net/pollard?sslmode=verify-full`.
	// If the URL names several hosts, the primary is used. Placeholders such as
	// `{env.DB_PASSWORD}` are replaced; their values must be percent-encoded. Required.
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
	if p.resolved, err = caddy.NewReplacer().ReplaceOrErr(p.URL, true, true); err != nil {
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
	p.URL, err = config.OneArg(d, "the URL of a database such as postgres://user:password@host/database?sslmode=verify-full")
	return err
}

// Key implements [poller.Store].
func (p *Postgres) Key() string { return "postgres:" + p.place }

// String implements [poller.Store].
func (p *Postgres) String() string { return "postgres " + p.place }

// Open implements [poller.Store].
func (p *Postgres) Open(ctx context.Context, log *zap.Logger) (store.Store, error) {
	return p.open(ctx, log, knownFile())
}

func (p *Postgres) open(ctx context.Context, log *zap.Logger, file string) (store.Store, error) {
	known := knownDatabases{file: file, log: log}
	return postgres.Open(ctx, postgres.Options{URL: p.resolved, Log: log, Used: known.used, Use: known.use})
}

// Interface guards.
var (
	_ caddy.Provisioner     = (*Postgres)(nil)
	_ caddyfile.Unmarshaler = (*Postgres)(nil)
	_ Store                 = (*Postgres)(nil)
)
