// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package poller

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"

	"github.com/feedpollard/pollard/cache/store"
)

func provisioned(t *testing.T, directory string) *SQLite {
	t.Helper()
	b := &SQLite{Directory: directory}
	if err := b.Provision(caddy.Context{}); err != nil {
		t.Fatal(err)
	}
	return b
}

// One directory is one store, however it is written, and provisioning does not touch it.
func TestSQLiteDirectory(t *testing.T) {
	real, root := t.TempDir(), t.TempDir()
	if err := os.Symlink(real, filepath.Join(root, "link")); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(real, "a", "store")
	t.Setenv("POLLARD_TEST_STORE", dir)
	spellings := []string{dir, dir + "/", real + "/./a/store", root + "/link/a/store", "{env.POLLARD_TEST_STORE}"}
	key := provisioned(t, dir).Key()
	check := func(when string) {
		t.Helper()
		for _, spelling := range spellings {
			if got := provisioned(t, spelling).Key(); got != key {
				t.Errorf("%s, %s has the key %s, want %s", when, spelling, got, key)
			}
		}
	}
	check("before it is made")
	if _, err := os.Stat(filepath.Dir(dir)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the directory: %v", err)
	}
	db, err := provisioned(t, dir).Open(t.Context(), zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	check("when it is made")
	if _, err := provisioned(t, dir).Open(t.Context(), zap.NewNop()); !errors.Is(err, store.ErrLocked) {
		t.Errorf("opening it twice: %v", err)
	}
}

// A database has one key for all users and passwords, and provisioning does not connect.
func TestPostgresKey(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("s%2Fcret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("POLLARD_TEST_PASSWORD", "s%2Fcret")
	for _, url := range []string{
		"postgres://one:s%2Fcret@db.invalid/feeds?sslmode=disable",
		"postgres://two:{env.POLLARD_TEST_PASSWORD}@db.invalid:5432/feeds?sslmode=require",
		"postgres://two:{file." + secret + "}@db.invalid/feeds",
	} {
		p := &Postgres{URL: url}
		if err := p.Provision(caddy.Context{}); err != nil {
			t.Errorf("%s: %v", url, err)
			continue
		}
		if p.Key() != "postgres:db.invalid:5432/feeds" || p.String() != "postgres db.invalid:5432/feeds" {
			t.Errorf("%s is %s, by the key %s", url, p, p.Key())
		}
		if !strings.Contains(p.resolved, "s%2Fcret@") {
			t.Errorf("%s: the placeholder became %s", url, p.resolved)
		}
	}
}

func TestPostgresURLThatCannotBeMeant(t *testing.T) {
	for _, tt := range []struct{ url, want string }{
		{"", "the URL of the database is missing"},
		{"postgres://u:{env.POLLARD_TEST_UNSET}@db.invalid/feeds", "{env.POLLARD_TEST_UNSET}"},
		{"postgres://u:pass/word@db.invalid/feeds", "the URL cannot be read"},
	} {
		err := (&Postgres{URL: tt.url}).Provision(caddy.Context{})
		if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "word") && !strings.Contains(err.Error(), "password@host") {
			t.Errorf("%s: got %v, want %s", tt.url, err, tt.want)
		}
	}
}

// Without a line, the store is SQLite in Caddy's data directory.
func TestStoreWithoutLine(t *testing.T) {
	t.Setenv("XDG_DATA_HOME", t.TempDir())
	ctx, cancel := caddy.NewContext(caddy.Context{Context: t.Context()})
	defer cancel()
	var a App
	if err := a.loadStore(ctx); err != nil {
		t.Fatal(err)
	}
	if b, ok := a.store.(*SQLite); !ok || b.resolved != withoutLinks(filepath.Join(caddy.AppDataDir(), "pollard")) {
		t.Errorf("the store is %T, %v", a.store, a.store)
	}
}
