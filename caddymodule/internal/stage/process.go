// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
)

// processConfig is the environment variable that makes a test binary a server.
const processConfig = "POLLARD_TEST_CADDYFILE"

// Main is the TestMain of a package whose tests start their own binary as a server,
// by [StartProcess].
func Main(m *testing.M) {
	if file := os.Getenv(processConfig); file != "" {
		go endWithParent()
		fmt.Fprintln(os.Stderr, beServer(file))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// endWithParent ends the process when the other end of its input has gone, as it does with
// the test that started it, however that ends.
func endWithParent() {
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(1)
}

// beServer runs a Caddyfile until the process is ended.
func beServer(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	config, _, err := caddyconfig.GetAdapter("caddyfile").Adapt(text, nil)
	if err == nil {
		err = caddy.Load(config, true)
	}
	if err != nil {
		return err
	}
	caddy.TrapSignals()
	select {}
}

// Process is a Caddy in a process of its own.
type Process struct {
	command *exec.Cmd
	output  bytes.Buffer
	ended   chan struct{}
}

// StartProcess starts a Caddy with a Caddyfile, and waits until it accepts connections
// at an address. Its home is a directory, and there may be more in its environment. It
// is killed when the test ends, if not before. If it does not come up, the error has its
// output.
func StartProcess(t *testing.T, file, home, address string, env ...string) (*Process, error) {
	p := &Process{command: exec.Command(os.Args[0]), ended: make(chan struct{})}
	p.command.Env = append(os.Environ(), processConfig+"="+file, "HOME="+home, "XDG_DATA_HOME="+home, "XDG_CONFIG_HOME="+home)
	p.command.Env = append(p.command.Env, env...)
	p.command.Stdout, p.command.Stderr = &p.output, &p.output
	if _, err := p.command.StdinPipe(); err != nil { // nothing is ever written: see endWithParent
		return nil, err
	}
	if err := p.command.Start(); err != nil {
		return nil, err
	}
	go func() { _ = p.command.Wait(); close(p.ended) }()
	t.Cleanup(func() { p.End(syscall.SIGKILL) })
	for deadline := time.Now().Add(2 * time.Minute); ; {
		conn, err := net.DialTimeout("tcp", address, time.Second)
		if err == nil {
			conn.Close()
			return p, nil
		}
		select {
		case <-p.ended:
			return nil, fmt.Errorf("the server ended by itself: %s", p.output.String())
		case <-time.After(10 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			p.End(syscall.SIGKILL)
			return nil, fmt.Errorf("the server does not come up: %w: %s", err, p.output.String())
		}
	}
}

// ID is the process's.
func (p *Process) ID() int { return p.command.Process.Pid }

// End ends the process by a signal, and waits for its end, which it gives 30 seconds
// before it kills it. It returns how long that took.
func (p *Process) End(signal os.Signal) time.Duration {
	began := time.Now()
	_ = p.command.Process.Signal(signal) // it may have ended
	select {
	case <-p.ended:
	case <-time.After(30 * time.Second):
		_ = p.command.Process.Kill()
		<-p.ended
	}
	return time.Since(began)
}
