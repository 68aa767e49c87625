// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/spf13/cobra"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/cache/store/sqlite"
	"github.com/feedpollard/pollard/caddymodule/poller"
	"github.com/feedpollard/pollard/internal/disk"
)

// installedConfig is the configuration of the service that packages install. Tests change
// it.
var installedConfig = "/etc/pollard/Caddyfile"

// storeFlags name a store on the command line. Without --store it is the store of a
// configuration file; without that, of the installed service.
type storeFlags struct{ store, config string }

func (f *storeFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.store, "store", "", "sqlite:<directory>, or postgres:<URL>; placeholders such as {env.DB_PASSWORD} and {file.<path>} are replaced")
	cmd.Flags().StringVar(&f.config, "config", "", "a Caddyfile (or Caddy's JSON) that has the store; without --store, default "+installedConfig)
}

func (f storeFlags) module() (poller.Store, error) {
	if f.store != "" {
		if f.config != "" {
			return nil, wrongUsage("--store and --config both name a store: leave one out")
		}
		return storeNamed(f.store)
	}
	if f.config == "" {
		if _, err := os.Stat(installedConfig); err != nil {
			return nil, wrongUsage("no store is named: expected --store sqlite:<directory>, --store postgres:<URL>, or --config with a Caddyfile (%s does not exist)", installedConfig)
		}
		f.config = installedConfig
	}
	return storeConfigured(f.config)
}

func storeNamed(name string) (poller.Store, error) {
	kind, rest, _ := strings.Cut(name, ":")
	switch {
	case rest == "":
		return nil, wrongUsage("--store %q: expected sqlite:<directory> or postgres:<URL>", name)
	case kind == "sqlite":
		return provisioned(&poller.SQLite{Directory: rest})
	case strings.HasPrefix(rest, "//") && (kind == "postgres" || kind == "postgresql"):
		return provisioned(&poller.Postgres{URL: name})
	case kind == "postgres":
		return provisioned(&poller.Postgres{URL: rest})
	}
	return nil, wrongUsage("--store: a store %q is not known: expected sqlite:<directory> or postgres:<URL>", kind)
}

// storeConfigured returns the store of a configuration file. Nothing else of the file is
// provisioned, so it does not matter which other placeholders have no value here.
func storeConfigured(file string) (poller.Store, error) {
	text, err := adapted(file)
	if err != nil {
		return nil, err
	}
	var config struct {
		Apps struct {
			Pollard struct {
				Store json.RawMessage `json:"store"`
			} `json:"pollard"`
		} `json:"apps"`
	}
	err = json.Unmarshal(text, &config)
	raw := cmp.Or(string(config.Apps.Pollard.Store), `{"engine":"sqlite"}`)
	var named struct {
		Engine string `json:"engine"`
	}
	if err = errors.Join(err, json.Unmarshal([]byte(raw), &named)); err != nil {
		return nil, fmt.Errorf("reading %s: %w", file, err)
	}
	info, err := caddy.GetModule("pollard.stores." + named.Engine)
	if err != nil {
		return nil, fmt.Errorf("%s: store: %w", file, err)
	}
	module, ok := info.New().(storeModule)
	if !ok {
		return nil, fmt.Errorf("%s has a store %q, which this command cannot open", file, named.Engine)
	}
	if err := json.Unmarshal([]byte(raw), module); err != nil {
		return nil, fmt.Errorf("reading %s: store: %w", file, err)
	}
	s, err := provisioned(module)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return s, nil
}

// storeModule is what each module of a store is.
type storeModule interface {
	poller.Store
	caddy.Provisioner
}

func provisioned(module storeModule) (poller.Store, error) {
	if err := module.Provision(caddy.Context{}); err != nil {
		return nil, &usage{fmt.Errorf("store: %w", err)}
	}
	return module, nil
}

// openStore opens a store. It creates a directory of SQLite only if create is set. Close
// gives files that root has made in such a directory to the owner of the directory:
// otherwise the service could not open them.
func openStore(ctx context.Context, module poller.Store, create bool, stderr io.Writer) (poller.Database, error) {
	directory, local := module.(*poller.SQLite)
	if local && !create {
		if err := exists(directory.Path()); err != nil {
			return nil, err
		}
	}
	owner := func() error { return nil }
	if local {
		owner = disk.KeepOwner(directory.Path(), "feeds.sqlite*")
	}
	db, err := module.Open(ctx, warnings(stderr))
	switch {
	case errors.Is(err, store.ErrLocked):
		err = fmt.Errorf("%s is in use by another process: stop that one before (%w)", module, err)
	case errors.Is(err, fs.ErrPermission):
		err = fmt.Errorf("this user may not open %s: if it is another's, run this with sudo (%w)", module, err)
	}
	if err != nil {
		return nil, err
	}
	return owned{db, owner}, owner() // at once too, if the command is interrupted
}

// owned is a store whose files get an owner.
type owned struct {
	poller.Database
	own func() error
}

func (o owned) Close() error { return errors.Join(o.Database.Close(), o.own()) }

// exists returns an error if a directory has no store. It names one below it that has.
func exists(dir string) error {
	if sqlite.Exists(dir) || sqlite.Refuse(dir) != nil { // opening it says why not
		return nil
	}
	for _, below := range []string{"pollard", "caddy/pollard"} {
		if near := filepath.Join(dir, below); sqlite.Exists(near) {
			return fmt.Errorf("there is no store in %s: did you mean sqlite:%s?", dir, near)
		}
	}
	return fmt.Errorf("there is no store in %s: name the directory of feeds.sqlite", dir)
}

// warnings is a log of what is wrong with a store, for people.
func warnings(stderr io.Writer) *zap.Logger {
	form := zapcore.EncoderConfig{MessageKey: "msg", LevelKey: "level", EncodeLevel: zapcore.LowercaseLevelEncoder}
	return zap.New(zapcore.NewCore(zapcore.NewConsoleEncoder(form), zapcore.AddSync(stderr), zap.WarnLevel))
}
