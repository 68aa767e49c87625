// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package poller

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// While a store is opened, systemd is asked each 20 s to wait another minute, and then no more. Caddy reads the name of
// systemd's socket when the process starts, so that is another process.
func TestStartIsExtended(t *testing.T) {
	const child = "POLLARD_TEST_EXTEND_START"
	if os.Getenv(child) != "" {
		synctest.Test(t, func(*testing.T) {
			opened := make(chan struct{})
			go extendStart(opened)
			time.Sleep(50 * time.Second)
			close(opened)
			time.Sleep(time.Hour)
		})
		return
	}
	socket := filepath.Join(t.TempDir(), "notify")
	systemd, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer systemd.Close()
	c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestStartIsExtended$")
	c.Env = append(os.Environ(), "NOTIFY_SOCKET="+socket, child+"=1")
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	message := make([]byte, 1000)
	for range 2 {
		systemd.SetReadDeadline(time.Now().Add(time.Minute))
		n, err := systemd.Read(message)
		if err != nil || !strings.Contains(string(message[:n]), "\nEXTEND_TIMEOUT_USEC=60000000") {
			t.Errorf("systemd got %q, %v", message[:n], err)
		}
	}
	systemd.SetReadDeadline(time.Now().Add(time.Millisecond))
	if n, err := systemd.Read(message); err == nil {
		t.Errorf("after it was opened systemd got %q", message[:n])
	}
}
