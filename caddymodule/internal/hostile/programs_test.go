// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/feedpollard/pollard/caddymodule/internal/stage"
)

// run starts a program, and waits until it listens.
func run(t *testing.T, address string, command ...string) {
	t.Helper()
	path, err := exec.LookPath(command[0])
	if err != nil {
		t.Skipf("%s is not installed", command[0])
	}
	var output strings.Builder
	c, ended := exec.Command(path, command[1:]...), make(chan struct{})
	c.Stdout, c.Stderr = &output, &output
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { _ = c.Wait(); close(ended) }()
	t.Cleanup(func() { _ = c.Process.Signal(os.Interrupt); <-ended })
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if conn, err := net.Dial("tcp", address); err == nil {
			conn.Close()
			return
		}
		select {
		case <-ended:
			t.Fatalf("%s ended by itself: %s", command[0], output.String())
		default:
		}
	}
	t.Fatalf("%s does not listen", command[0])
}

// runNginx starts nginx with this in its http block, in which one server is at the address. Servers may
// listen with proxy_protocol.
func runNginx(t *testing.T, address, http string) {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "nginx.conf")
	stage.WriteFile(t, file, strings.NewReplacer("DIR", dir, "HTTP", http).Replace(`
daemon off; master_process off; pid DIR/pid; error_log DIR/error;
events { worker_connections 64; }
http {
	access_log off; client_body_temp_path DIR/b; proxy_temp_path DIR/p; fastcgi_temp_path DIR/f; uwsgi_temp_path DIR/u; scgi_temp_path DIR/s;
	set_real_ip_from 127.0.0.1; real_ip_header proxy_protocol;
	HTTP
}
`))
	run(t, address, "nginx", "-c", file, "-e", filepath.Join(dir, "error"))
}

// runHAProxy starts HAProxy with this configuration, in which one frontend is at the address.
func runHAProxy(t *testing.T, address, configuration string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "haproxy.cfg")
	stage.WriteFile(t, file, configuration)
	run(t, address, "haproxy", "-db", "-f", file)
}
