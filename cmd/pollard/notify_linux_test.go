// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/feedpollard/pollard/internal/loopback"
)

// beMain is the environment variable that makes the test binary the program.
const beMain = "POLLARD_TEST_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(beMain) != "" {
		main()
	}
	os.Exit(m.Run())
}

// A service manager hears that the program is ready if it is, and not if its start fails.
func TestServiceManagerHearsOfStartsThatSucceed(t *testing.T) {
	dir := t.TempDir()
	busy, err := net.Listen("tcp", loopback.FreeAddress(t))
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	for _, tt := range []struct {
		name, address string
		starts        bool
	}{
		{"good", loopback.FreeAddress(t), true},
		{"the port is in use", busy.Addr().String(), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			socket, file := filepath.Join(dir, "s"+tt.address), filepath.Join(dir, "Caddyfile")
			manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
			if err != nil {
				t.Fatal(err)
			}
			defer manager.Close()
			text := "{\nadmin off\nauto_https off\npersist_config off\n}\nhttp://" + tt.address + " {\nbind 127.0.0.1\nfeed_gateway\n}\n"
			if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			program := exec.Command(os.Args[0], "run", "--config", file)
			program.Env = append(os.Environ(), beMain+"=1", "NOTIFY_SOCKET="+socket, "HOME="+dir, "XDG_DATA_HOME="+dir, "XDG_CONFIG_HOME="+dir)
			if err := program.Start(); err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() {
				ended <- program.Wait()
				if conn, err := net.Dial("unixgram", socket); err == nil {
					_, _ = conn.Write([]byte("END"))
					conn.Close()
				}
			}()
			var said string
			for message := make([]byte, 4096); !strings.Contains(said, "READY=1") && !strings.Contains(said, "END"); {
				n, err := manager.Read(message)
				if err != nil {
					t.Fatal(err)
				}
				said += string(message[:n]) + "\n"
			}
			if ready := strings.Contains(said, "READY=1"); ready != tt.starts {
				t.Errorf("the service manager heard %q", said)
			}
			_ = program.Process.Signal(os.Interrupt)
			if err := <-ended; (err == nil) != tt.starts {
				t.Errorf("it ended with %v", err)
			}
		})
	}
}
