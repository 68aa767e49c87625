// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package stores

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"go.uber.org/zap"

	"github.com/feedpollard/pollard/cache"
	"github.com/feedpollard/pollard/cache/postgres"
	"github.com/feedpollard/pollard/caddymodule/config"
	"github.com/feedpollard/pollard/caddymodule/poller"
)

func init() {
	caddy.RegisterModule(Postgres{})
}

// Postgres keeps feeds in a PostgreSQL database, which several nodes may share: then
// each origin sees one polite poller.
type Postgres struct {
	// The database, as `postgres://user:password@host:port/database?sslmode=verify-full`.
	// Write `{env.NAME}` or `{file./path}` rather than a password: it stays out of the
	// stored configuration then.
	URL string `json:"url"`

	resolved string
}

// CaddyModule returns the Caddy module information.
func (Postgres) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "pollard.stores.postgres",
		New: func() caddy.Module { return new(Postgres) },
	}
}

// Provision resolves the URL.
func (p *Postgres) Provision(caddy.Context) error {
	text, err := caddy.NewReplacer().ReplaceOrErr(p.URL, true, true)
	if err != nil {
		return err
	}
	p.resolved = strings.TrimSpace(text) // a file's last line end
	return checkPostgresURL(p.resolved)
}

// checkPostgresURL reports what is no URL of a database. It does not repeat it, as
// there may be a password in it.
func checkPostgresURL(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" || u.Host == "" {
		return errors.New("expected the URL of a database such as postgres://user:password@host/database")
	}
	return nil
}

// UnmarshalCaddyfile reads the rest of the line store postgres. Syntax:
//
//	postgres <url>
func (p *Postgres) UnmarshalCaddyfile(d *caddyfile.Dispenser) (err error) {
	d.Next() // the name
	if p.URL, err = config.OneArg(d, "the URL of a database such as postgres://user:password@host/database"); err != nil {
		return err
	}
	if config.HasPlaceholder(p.URL) {
		return nil
	}
	if err := checkPostgresURL(p.URL); err != nil {
		return d.Errf("postgres: %v", err)
	}
	return nil
}

// Key implements [poller.Store].
func (p *Postgres) Key() string { return "postgres:" + p.resolved }

// String implements [poller.Store].
func (p *Postgres) String() string {
	u, err := url.Parse(p.resolved)
	if err != nil {
		return "postgres"
	}
	return "postgres " + u.Host + u.Path
}

// Open implements [poller.Store].
func (p *Postgres) Open(ctx context.Context, log *zap.Logger) (cache.Store, error) {
	return postgres.Open(ctx, postgres.Options{URL: p.resolved, Log: log, Used: usedDatabase, Use: useDatabase})
}

// marker is the file in which this node keeps which database it has found at a place.
func marker(place string) string {
	sum := sha256.Sum256([]byte(place))
	return filepath.Join(caddy.AppDataDir(), "pollard", "postgres-"+hex.EncodeToString(sum[:8]))
}

func usedDatabase(place string) string {
	text, err := os.ReadFile(marker(place))
	if err != nil {
		return "" // this node has not been there
	}
	return strings.TrimSpace(string(text))
}

func useDatabase(place, database string) error {
	file := marker(place)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return fmt.Errorf("keeping which database is used: %w", err)
	}
	if err := os.WriteFile(file, []byte(database+"\n"), 0o600); err != nil {
		return fmt.Errorf("keeping which database is used: %w", err)
	}
	return nil
}

// Interface guards.
var (
	_ caddy.Provisioner     = (*Postgres)(nil)
	_ caddyfile.Unmarshaler = (*Postgres)(nil)
	_ poller.Store          = (*Postgres)(nil)
)
