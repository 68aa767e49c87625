// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package poller

import (
	"errors"
	"os"
	"path/filepath"
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
