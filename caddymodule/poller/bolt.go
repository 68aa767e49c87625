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
	"github.com/feedpollard/pollard/cache/store/bolt"
	"github.com/feedpollard/pollard/caddymodule/config"
)

func init() {
	caddy.RegisterModule(Bolt{})
}

// Bolt stores feeds in a directory that one process uses.
type Bolt struct {
	// The directory. It is created if it does not exist. Placeholders such as
	// `{env.STATE_DIRECTORY}` are replaced. Default: the directory `pollard` in Caddy's
	// data directory.
	Directory string `json:"directory,omitempty"`

	resolved string
}

// CaddyModule returns the Caddy module information.
func (Bolt) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "pollard.stores.bolt",
		New: func() caddy.Module { return new(Bolt) },
	}
}

// Provision resolves the directory.
func (b *Bolt) Provision(caddy.Context) (err error) {
	b.resolved = filepath.Join(caddy.AppDataDir(), "pollard")
	if b.Directory != "" {
		if b.resolved, err = caddy.NewReplacer().ReplaceOrErr(b.Directory, true, true); err != nil {
			return err
		}
	}
	// One directory has one key, however it is written, and keeps it when it has been made.
	if b.resolved, err = filepath.Abs(b.resolved); err != nil {
		return fmt.Errorf("finding the directory: %w", err)
	}
	b.resolved = withoutLinks(b.resolved)
	return nil
}

// withoutLinks resolves the symbolic links in a path, of which the end need not exist.
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

// UnmarshalCaddyfile reads the rest of the line store bolt. Syntax:
//
//	bolt [<directory>]
func (b *Bolt) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // the name
	args, err := config.SomeArgs(d, 0, 1, "a directory")
	if len(args) > 0 {
		b.Directory = args[0]
	}
	return err
}

// Key implements [poller.Store].
func (b *Bolt) Key() string { return "bolt:" + b.resolved }

// String implements [poller.Store].
func (b *Bolt) String() string { return "bolt " + b.resolved }

// Open implements [poller.Store].
func (b *Bolt) Open(_ context.Context, log *zap.Logger) (store.Store, error) {
	return bolt.Open(b.resolved, bolt.Options{Log: log})
}

// Remote implements [poller.Store].
func (b *Bolt) Remote() bool { return false }

// Interface guards.
var (
	_ caddy.Provisioner     = (*Bolt)(nil)
	_ caddyfile.Unmarshaler = (*Bolt)(nil)
	_ Store                 = (*Bolt)(nil)
)
