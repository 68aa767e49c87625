// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

// Package postgrestest runs PostgreSQL servers for tests, each in a directory of its own and on a
// port that the system picks.
package postgrestest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// timeout is how long a server may take to start or to stop. Nothing is asserted about it.
const timeout = time.Minute

// Cluster is a server.
type Cluster struct {
	dir  string // of the data, the log and the socket
	bin  string
	port int

	server *exec.Cmd
	stdin  io.WriteCloser // its end stops the server
	made   atomic.Int64
}

// Start starts a server for the length of a test, which is skipped if this machine does not have
// PostgreSQL, or with -short. settings are lines of postgresql.conf.
func Start(t testing.TB, settings ...string) *Cluster {
	t.Helper()
	if testing.Short() {
		t.Skip("a server takes seconds to start")
	}
	c := New(t, settings...)
	t.Cleanup(c.Remove)
	return c
}

// New is like Start, but the caller removes the server, and -short makes no difference.
func New(t testing.TB, settings ...string) *Cluster {
	t.Helper()
	c := prepare(t)
	passwords := filepath.Join(c.dir, "password")
	must(t, os.WriteFile(passwords, []byte(password), 0o644))
	c.run(t, "initdb", "--pgdata", c.data(), "--username", owner, "--pwfile", passwords, "--auth-local", "trust",
		"--auth-host", "scram-sha-256", "--encoding", "UTF8", "--no-locale", "--no-sync")
	conf, err := os.OpenFile(filepath.Join(c.data(), "postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0)
	must(t, err)
	defer conf.Close()
	settings = append([]string{"listen_addresses = '127.0.0.1'", "shared_buffers = 32MB", "max_connections = 50", "log_min_messages = warning"}, settings...)
	_, err = io.WriteString(conf, strings.Join(settings, "\n")+"\n")
	must(t, err)
	c.Start(t)
	return c
}

// Standby starts a server that follows this one, asynchronously, for the length of a test.
func (c *Cluster) Standby(t testing.TB) *Cluster {
	t.Helper()
	s := prepare(t)
	t.Cleanup(s.Remove)
	s.run(t, "pg_basebackup", "--pgdata", s.data(), "--host", c.dir, "--port", strconv.Itoa(c.port), "--username", owner,
		"--checkpoint", "fast", "--no-sync", "--write-recovery-conf")
	s.Start(t)
	return s
}

// prepare makes a directory for a server.
func prepare(t testing.TB) *Cluster {
	t.Helper()
	bin := programs()
	if bin == "" {
		t.Skip("no PostgreSQL server is installed: neither in PATH nor under /usr/lib/postgresql")
	}
	// The path of a socket may have about a hundred bytes, which that of a test's own
	// directory may exceed.
	dir, err := os.MkdirTemp("", "postgres")
	must(t, err)
	must(t, own(dir))
	// If another program takes the port first, the server does not start.
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	return &Cluster{dir: dir, bin: bin, port: l.Addr().(*net.TCPAddr).Port}
}

const (
	owner    = "pollard"
	password = "secret/with:signs"
)

func (c *Cluster) data() string { return filepath.Join(c.dir, "data") }

// Start starts a server that has been stopped.
func (c *Cluster) Start(t testing.TB) {
	t.Helper()
	log, err := os.OpenFile(c.logFile(), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	must(t, err)
	defer log.Close()
	// The shell stops the server when this process ends, however that happens: it holds
	// the other end of the pipe. It reads the signal to send.
	c.server = c.command("/bin/sh", "-c", `"$@" & server=$!
		read signal || signal=INT
		kill -s "$signal" $server
		wait $server`, "sh",
		filepath.Join(c.bin, "postgres"), "-D", c.data(), "-k", c.dir, "-p", strconv.Itoa(c.port))
	c.server.Stdout, c.server.Stderr = log, log
	c.stdin, err = c.server.StdinPipe()
	must(t, err)
	must(t, c.server.Start())
	for deadline := time.Now().Add(timeout); ; time.Sleep(20 * time.Millisecond) {
		err := c.admin("postgres", "select 1")
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("server does not start: %v\n%s", err, c.Log())
		}
	}
}

func (c *Cluster) logFile() string { return filepath.Join(c.dir, "log") }

// Log returns what the server has logged.
func (c *Cluster) Log() string {
	text, err := os.ReadFile(c.logFile())
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// Stop stops the server in order; sessions are ended.
func (c *Cluster) Stop() { c.stop("INT") }

// Crash stops the server without any preparation: it has to recover when it
// starts again.
func (c *Cluster) Crash() { c.stop("QUIT") }

func (c *Cluster) stop(signal string) {
	if c.server == nil {
		return
	}
	io.WriteString(c.stdin, signal+"\n")
	c.stdin.Close()
	c.server.Wait()
	c.server = nil
}

// Remove stops the server and removes its data.
func (c *Cluster) Remove() {
	c.Crash()
	os.RemoveAll(c.dir)
}

// Promote makes a standby take over.
func (c *Cluster) Promote(t testing.TB) {
	t.Helper()
	c.Exec(t, "postgres", "select pg_promote()")
}

// URL returns the address of a database, by TCP.
func (c *Cluster) URL(database string) string {
	return fmt.Sprintf("postgres://%s:%s@127.0.0.1:%d/%s?sslmode=disable", owner, "secret%2Fwith%3Asigns", c.port, database)
}

// Database makes an empty database and returns its address.
func (c *Cluster) Database(t testing.TB) string {
	t.Helper()
	name := fmt.Sprintf("feeds%d", c.made.Add(1))
	c.Exec(t, "postgres", "create database "+name)
	return c.URL(name)
}

// Copy makes a database from a dump of another one, and returns its address.
func (c *Cluster) Copy(t testing.TB, url string) string {
	t.Helper()
	to := c.Database(t)
	c.run(t, "psql", "--quiet", "--set", "ON_ERROR_STOP=1", "--file", c.Dump(t, url), to)
	return to
}

// Dump writes a dump of a database, and returns its file. Options are those of pg_dump.
func (c *Cluster) Dump(t testing.TB, url string, options ...string) (file string) {
	t.Helper()
	file = filepath.Join(c.dir, "dump.sql")
	c.run(t, "pg_dump", append(options, "--no-owner", "--file", file, url)...)
	return file
}

// WriteFile writes a file of the server, such as its pg_hba.conf, and has the server
// read its configuration again. The name may stand in settings.
func (c *Cluster) WriteFile(t testing.TB, name string, data []byte) {
	t.Helper()
	path := filepath.Join(c.data(), name)
	must(t, os.WriteFile(path, data, 0o600))
	must(t, own(path))
	c.Exec(t, "postgres", "select pg_reload_conf()")
}

// Blank overwrites a file of the data directory with zeros, while the server is stopped.
func (c *Cluster) Blank(t testing.TB, name string) {
	t.Helper()
	path := filepath.Join(c.data(), name)
	info, err := os.Stat(path)
	must(t, err)
	if info.Size() == 0 {
		t.Fatalf("%s is empty", name)
	}
	must(t, os.WriteFile(path, make([]byte, info.Size()), info.Mode()))
}

// Exec runs a statement as the owner of a database.
func (c *Cluster) Exec(t testing.TB, database, sql string) {
	t.Helper()
	if err := c.admin(database, sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func (c *Cluster) admin(database, sql string) error {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, fmt.Sprintf("host=%s port=%d user=%s database=%s", c.dir, c.port, owner, database))
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, sql)
	return err
}

// run runs one of PostgreSQL's programs.
func (c *Cluster) run(t testing.TB, program string, args ...string) {
	t.Helper()
	if out, err := c.command(filepath.Join(c.bin, program), args...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", program, err, bytes.TrimSpace(out))
	}
}

func (c *Cluster) command(program string, args ...string) *exec.Cmd {
	cmd := exec.Command(program, args...)
	cmd.Dir = c.dir
	unprivileged(cmd)
	return cmd
}

// programs returns the directory of PostgreSQL's programs, empty if there is none.
func programs() string {
	if path, err := exec.LookPath("postgres"); err == nil {
		if path, err = filepath.EvalSymlinks(path); err == nil {
			return filepath.Dir(path)
		}
	}
	// Debian keeps the programs of each version apart.
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
	if len(found) == 0 {
		return ""
	}
	major := func(path string) int {
		n, _ := strconv.Atoi(strings.Split(path, "/")[4])
		return n
	}
	return filepath.Dir(slices.MaxFunc(found, func(a, b string) int { return major(a) - major(b) }))
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
