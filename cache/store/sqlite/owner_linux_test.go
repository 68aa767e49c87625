// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// TestFilesOfRoot opens a store whose directory is the service's, and whose files a first run as root has made.
func TestFilesOfRoot(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can make files of another user")
	}
	const service = 65534
	dir := t.TempDir()
	storeOf(t, dir, 1)
	mustDo(t, os.Chown(dir, service, service))
	runtime.LockOSThread() // become the service in the eyes of the file system, on this thread
	defer runtime.UnlockOSThread()
	mustDo(t, syscall.Setfsuid(service))
	defer syscall.Setfsuid(0) //nolint:errcheck // it is root's thread
	if _, err := Open(dir, Options{}); err == nil || !strings.Contains(err.Error(), "`sudo chown -R 0 "+dir+"`") {
		t.Errorf("Open: %v", err)
	}
}
