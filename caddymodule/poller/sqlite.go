// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package poller

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"go.uber.org/zap"

	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/cache/store/sqlite"
	"github.com/feedpollard/pollard/caddymodule/config"
)

func init() {
	caddy.RegisterModule(SQLite{})
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
		if s.resolved, err = caddy.NewReplacer().ReplaceOrErr(s.Directory, true, true); err != nil {
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

// Key implements [poller.Store].
func (s *SQLite) Key() string { return "sqlite:" + s.resolved }

// Path returns the directory after Provision, without placeholders and symbolic links.
func (s *SQLite) Path() string { return s.resolved }

// String implements [poller.Store].
func (s *SQLite) String() string { return "sqlite " + s.resolved }

// Open implements [poller.Store].
func (s *SQLite) Open(_ context.Context, log *zap.Logger) (store.Store, error) {
	return sqlite.Open(s.resolved, sqlite.Options{Log: log})
}

// Interface guards.
var (
	_ caddy.Provisioner     = (*SQLite)(nil)
	_ caddyfile.Unmarshaler = (*SQLite)(nil)
	_ Store                 = (*SQLite)(nil)
)
