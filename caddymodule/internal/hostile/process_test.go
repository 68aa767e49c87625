// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
)

// childConfig is the environment variable that makes a test binary a server.
const childConfig = "POLLARD_TEST_CADDYFILE"

// childArgs is the environment variable that makes a test binary a command: its arguments, each on a line.
const childArgs = "POLLARD_TEST_ARGUMENTS"

// runOrServe runs the tests, or a Caddy if this process is one that a test has started. That ends with
// the other end of its input, which the test holds. Or it runs a command of Pollard.
func runOrServe(m *testing.M) {
	if file := os.Getenv(childConfig); file != "" {
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin)
			os.Exit(1)
		}()
		os.Args = []string{"pollard", "run", "--config", file}
		caddycmd.Main()
	}
	if args := os.Getenv(childArgs); args != "" {
		os.Args = append([]string{"pollard"}, strings.Split(args, "\n")...)
		caddycmd.Main() // returns if the command succeeds
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// feeds runs a command below `pollard feeds`, and returns what it prints.
func (c *child) feeds(args ...string) string {
	c.t.Helper()
	command := exec.Command(os.Args[0])
	command.Env = append(os.Environ(), childArgs+"=feeds\n"+strings.Join(args, "\n"), "HOME="+filepath.Dir(c.file))
	command.Env = append(command.Env, c.env...)
	out, _ := command.CombinedOutput() // what it prints says whether it failed
	return string(out)
}

// start starts the process, and waits until all its sites accept connections. It is killed when the test ends, if not
// before.
func (c *child) start() {
	c.t.Helper()
	var output bytes.Buffer
	home := filepath.Dir(c.file)
	c.command, c.ended = exec.Command(os.Args[0]), make(chan struct{})
	c.command.Env = append(append(os.Environ(), childConfig+"="+c.file, "HOME="+home, "XDG_DATA_HOME="+home, "XDG_CONFIG_HOME="+home), c.env...)
	c.command.Stdout, c.command.Stderr = &output, &output
	if _, err := c.command.StdinPipe(); err != nil { // nothing is ever written: see runOrServe
		c.t.Fatal(err)
	}
	if err := c.command.Start(); err != nil {
		c.t.Fatal(err)
	}
	go func(command *exec.Cmd, ended chan struct{}) { _ = command.Wait(); close(ended) }(c.command, c.ended)
	c.t.Cleanup(func() { c.end(syscall.SIGKILL) })
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); {
		if conn, err := net.DialTimeout("tcp", c.address, time.Second); err == nil {
			conn.Close()
			c.awaitSites()
			return
		}
		select {
		case <-c.ended:
			c.t.Fatalf("the server ended by itself: %s", output.String())
		case <-time.After(10 * time.Millisecond):
		}
	}
	c.end(syscall.SIGKILL)
	c.t.Fatalf("the server does not come up: %s", output.String())
}

// awaitSites waits until all sites of the configuration are started: Caddy shows the configuration then.
func (c *child) awaitSites() {
	c.t.Helper()
	answer, err := http.Get("http://" + c.admin + "/config/")
	if err != nil {
		c.t.Fatal(err)
	}
	answer.Body.Close()
}

func (c *child) pid() int { return c.command.Process.Pid }

// end ends the process by a signal, and waits for its end, which it gives 30 seconds
// before it kills it. It returns how long that took.
func (c *child) end(signal os.Signal) time.Duration {
	began := time.Now()
	_ = c.command.Process.Signal(signal) // it may have ended
	select {
	case <-c.ended:
	case <-time.After(30 * time.Second):
		_ = c.command.Process.Kill()
		<-c.ended
	}
	return time.Since(began)
}
