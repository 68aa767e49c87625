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

	"github.com/feedpollard/pollard/internal/early"
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

// A start that has taken long, and said so, is a start. The error of a start that has failed is passed on alone.
func TestServiceManagerHearsOfLongStarts(t *testing.T) {
	for name, tt := range map[string]struct{ said, heard []string }{
		"long": {
			[]string{"RELOADING=1", "STATUS=opening the store\nEXTEND_TIMEOUT_USEC=60000000", "READY=1"},
			[]string{"RELOADING=1", "STATUS=opening the store\nEXTEND_TIMEOUT_USEC=60000000", "READY=1"},
		},
		"long, and fails": {
			[]string{"STATUS=opening the store\nEXTEND_TIMEOUT_USEC=60000000", "STATUS=no such host", "READY=1", "STOPPING=1"},
			[]string{"STATUS=opening the store\nEXTEND_TIMEOUT_USEC=60000000", "STATUS=no such host", "STOPPING=1"},
		},
		"a reload fails later": {
			[]string{"READY=1", "RELOADING=1", "STATUS=no such host", "READY=1"},
			[]string{"READY=1", "RELOADING=1", "STATUS=no such host", "READY=1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			socket := filepath.Join(t.TempDir(), "s")
			manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
			if err != nil {
				t.Fatal(err)
			}
			defer manager.Close()
			early.ServiceManager, early.Own = socket, socket+"o"
			defer func() { early.ServiceManager, early.Own = "", "" }()
			if err := relayNotifications(); err != nil {
				t.Fatal(err)
			}
			caddy, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: early.Own, Net: "unixgram"})
			if err != nil {
				t.Fatal(err)
			}
			defer caddy.Close()
			for _, message := range tt.said {
				if _, err := caddy.Write([]byte(message)); err != nil {
					t.Fatal(err)
				}
			}
			_, _ = caddy.Write([]byte("END"))
			message := make([]byte, 4096)
			for _, want := range append(tt.heard, "END") {
				if n, err := manager.Read(message); err != nil || string(message[:n]) != want {
					t.Fatalf("the service manager heard %q, %v; want %q", message[:n], err, want)
				}
			}
		})
	}
}
