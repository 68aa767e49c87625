// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// A user who may not look into the service's directory is not told that it has no store.
func TestExportWithoutPermission(t *testing.T) {
	dir := t.TempDir()
	if _, said, code := runWithErrors(t, importCommand(), `{"url": "https://feeds.test/1"}`, "--store", "sqlite:"+dir); code != exitDone {
		t.Fatalf("exit code %d: %s", code, said)
	}
	if err := os.Chmod(dir, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Chmod(dir, 0o700) })
	if os.Geteuid() == 0 { // become another user in the eyes of the file system, on this thread
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		if err := syscall.Setfsuid(65534); err != nil {
			t.Fatal(err)
		}
		defer syscall.Setfsuid(0)
	}
	_, said, code := runWithErrors(t, exportCommand(), "", "--store", "sqlite:"+dir)
	if code != exitFailed || !strings.Contains(said, "run this with sudo") || !strings.Contains(said, "permission denied") {
		t.Errorf("exit code %d: %s", code, said)
	}
}
