// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package command

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// An import by root must leave files that the service can open.
func TestFilesBelongToTheOwnerOfTheDirectory(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root makes files for others")
	}
	const service = 12345
	home := t.TempDir()
	if err := os.Chown(home, service, service); err != nil {
		t.Fatal(err)
	}
	foreign := filepath.Join(home, "other")
	if err := os.WriteFile(foreign, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{home, filepath.Join(home, "a", "b")} {
		if _, said, code := runWithErrors(t, importCommand(), `{"url": "https://feeds.test/1"}`, "--store", "sqlite:"+dir); code != exitDone {
			t.Fatalf("exit code %d: %s", code, said)
		}
		for path := dir; path != filepath.Dir(home); path = filepath.Dir(path) {
			belongsTo(t, path, service)
		}
		files, _ := filepath.Glob(filepath.Join(dir, "feeds.sqlite*"))
		if len(files) == 0 {
			t.Errorf("%s has no store", dir)
		}
		for _, path := range files {
			belongsTo(t, path, service)
		}
	}
	belongsTo(t, foreign, 0)
}

func belongsTo(t *testing.T, path string, want uint32) {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := info.Sys().(*syscall.Stat_t).Uid; got != want {
		t.Errorf("%s belongs to %d, want %d", path, got, want)
	}
}
