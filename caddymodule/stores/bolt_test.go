// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package stores

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"

	"github.com/feedpollard/pollard/cache"
)

func provisioned(t *testing.T, directory string) *Bolt {
	t.Helper()
	b := &Bolt{Directory: directory}
	if err := b.Provision(caddy.Context{}); err != nil {
		t.Fatal(err)
	}
	return b
}

// One directory is one store, however it is written, and provisioning does not touch it.
func TestBoltDirectory(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "store")
	one := provisioned(t, dir)
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the directory: %v", err)
	}
	store, err := one.Open(t.Context(), zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if err := os.Symlink(dir, filepath.Join(root, "link")); err != nil {
		t.Fatal(err)
	}
	t.Setenv("POLLARD_TEST_STORE", dir)
	for _, spelling := range []string{dir + "/", root + "/./store", root + "/link", "{env.POLLARD_TEST_STORE}"} {
		if other := provisioned(t, spelling); other.Key() != one.Key() {
			t.Errorf("%s has the key %s, want %s", spelling, other.Key(), one.Key())
		}
	}
	if _, err := provisioned(t, dir).Open(t.Context(), zap.NewNop()); !errors.Is(err, cache.ErrLocked) {
		t.Errorf("opening it twice: %v", err)
	}
}

// The password of a database is in its key alone.
func TestPostgresURL(t *testing.T) {
	t.Setenv("POLLARD_TEST_DATABASE", "postgres://pollard:hunter22@db.example/feeds?sslmode=verify-full\n")
	p := &Postgres{URL: "{env.POLLARD_TEST_DATABASE}"}
	if err := p.Provision(caddy.Context{}); err != nil {
		t.Fatal(err)
	}
	if got := p.String(); got != "postgres db.example/feeds" {
		t.Errorf("it is shown as %q", got)
	}
	for _, text := range []string{"", "db.example/feeds", "mysql://db.example/hunter22", "postgres:hunter22", "postgres://pollard:hunter22%zz@db/x"} {
		err := (&Postgres{URL: text}).Provision(caddy.Context{})
		if err == nil || strings.Contains(err.Error(), "hunter22") {
			t.Errorf("%s: %v", text, err)
		}
	}
}
