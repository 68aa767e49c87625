// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package nodes_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/feedpollard/pollard/cache/store/postgres/postgrestest"
	"github.com/feedpollard/pollard/internal/loopback"
)

// node is a Pollard process, and its successors.
type node struct {
	name    string
	address string // of the gateway
	admin   string
	dir     string
	config  []byte
	proxy   *postgrestest.Proxy
	binary  string

	mu      sync.Mutex // guards what follows
	command *exec.Cmd
	done    chan struct{}
	output  bytes.Buffer
}

// Write keeps what the processes say.
func (n *node) Write(p []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.output.Write(p)
}

func (n *node) said() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.output.String()
}

// start starts a process and waits until it answers.
func (n *node) start(t *testing.T) {
	t.Helper()
	command := exec.Command(n.binary, "run", "--config", filepath.Join(n.dir, "Caddyfile"))
	command.Env = append(os.Environ(), "HOME="+n.dir, "XDG_DATA_HOME="+n.dir, "XDG_CONFIG_HOME="+n.dir)
	command.Stdout, command.Stderr = n, n
	endWithParent(command)
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { _ = command.Wait(); close(done) }()
	n.mu.Lock()
	n.command, n.done = command, done
	n.mu.Unlock()
	for deadline := time.Now().Add(patience); !n.runs(); time.Sleep(20 * time.Millisecond) {
		select {
		case <-done:
			t.Fatalf("node %s ended by itself:\n%s", n.name, tail(n.said()))
		default:
		}
		if time.Now().After(deadline) {
			t.Fatalf("node %s does not come up\n%s", n.name, tail(n.said()))
		}
	}
}

// runs reports whether the process has its configuration in force: its ports are open before
// it has reached the database, without which it ends.
func (n *node) runs() bool {
	resp, err := http.Get("http://" + n.admin + "/config/")
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	config, err := io.ReadAll(resp.Body)
	return err == nil && strings.TrimSpace(string(config)) != "null"
}

// signal sends a signal to the process.
func (n *node) signal(s syscall.Signal) { _ = n.command.Process.Signal(s) } // it may have ended

// kill ends the process as kill -9 does, and waits for its end.
func (n *node) kill() {
	n.signal(syscall.SIGKILL)
	<-n.done
}

// reload puts the same configuration in force once more.
func (n *node) reload() error {
	r, err := http.NewRequest("POST", "http://"+n.admin+"/load", bytes.NewReader(n.config))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "text/caddyfile")
	r.Header.Set("Cache-Control", "must-revalidate")
	resp, err := (&http.Client{Timeout: 30 * time.Second}).Do(r)
	if err != nil {
		return err
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d", resp.StatusCode)
	}
	return nil
}

// tail is the end of a long text.
func tail(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-15):], "\n")
}

// build makes the program that people run.
func build(t *testing.T) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "pollard")
	if out, err := exec.Command("go", "build", "-o", binary, "github.com/feedpollard/pollard/cmd/pollard").CombinedOutput(); err != nil {
		t.Fatalf("building: %v\n%s", err, out)
	}
	return binary
}

// newNode configures a node that reaches a database by a proxy.
func newNode(t *testing.T, name, binary, database string, p *postgrestest.Proxy, w *web) *node {
	t.Helper()
	n := &node{name: name, address: loopback.FreeAddress(t), admin: loopback.FreeAddress(t), dir: t.TempDir(), proxy: p, binary: binary}
	var feeds strings.Builder
	for _, f := range w.feeds {
		fmt.Fprintf(&feeds, "\t\tfeed %s %s%s", f.path, f.host.url, f.path)
		if f.floor != floor {
			fmt.Fprintf(&feeds, " {\n\t\t\tmin_interval %v\n\t\t\tdefault_interval %v\n\t\t\tunvalidated_interval %v\n\t\t}", f.floor, f.floor, f.floor)
		}
		feeds.WriteByte('\n')
	}
	n.config = fmt.Appendf(nil, `{
	admin %s
	persist_config off
	auto_https off
	log {
		level WARN
	}
	pollard {
		store postgres %s
		min_interval %v
		default_interval %v
		unvalidated_interval %v
		max_interval 10s
		jitter 0
		timeout 3s
		private_upstreams 127.0.0.0/8
		host 127.0.0.1 {
			spacing %v
		}
		prefetch
	}
}
http://%s {
	feed_gateway {
%s	}
}
`, n.admin, strings.ReplaceAll(database, "secret%2Fwith%3Asigns", "{env.POLLARD_TEST_PASSWORD}"), floor, floor, floor, spacing, n.address, feeds.String())
	if err := os.WriteFile(filepath.Join(n.dir, "Caddyfile"), n.config, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if n.command != nil {
			n.kill()
		}
	})
	return n
}
