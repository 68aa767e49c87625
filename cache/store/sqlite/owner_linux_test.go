// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"fmt"
	"os"
	"path/filepath"
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

// TestOwnDirectoryThatMayNotBeWritten opens a store in a directory of one's own that has lost the right to be written, as another user than root.
func TestOwnDirectoryThatMayNotBeWritten(t *testing.T) {
	if dir := os.Getenv(childDirectory); dir != "" {
		_, err := Open(filepath.Join(dir, "own"), Options{})
		fmt.Println("Open:", err)
		return
	}
	if os.Geteuid() != 0 {
		t.Skip("only root can become another user")
	}
	const service = 65534
	dir := t.TempDir()
	own := filepath.Join(dir, "own")
	mustDo(t, os.Mkdir(own, 0o500), os.Chown(own, service, service), os.Chmod(dir, 0o755), os.Chmod(filepath.Dir(dir), 0o755))
	c := child(t, dir)
	c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: service, Gid: service}}
	program, err := os.ReadFile(c.Path) // its directory may not be open to others
	c.Path = filepath.Join(dir, "program")
	mustDo(t, err, os.WriteFile(c.Path, program, 0o755))
	out, err := c.CombinedOutput()
	if !strings.Contains(string(out), "`chmod -R u+rwX "+own+"`") {
		t.Errorf("%v: %s", err, out)
	}
}
