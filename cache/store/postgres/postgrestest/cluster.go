// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

// Package postgrestest runs PostgreSQL servers for tests, each with its own data on a
// port that the system picks.
package postgrestest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// timeout is how long a server may take to start or to stop. Nothing is asserted about it.
const timeout = time.Minute

// ErrMissing reports that PostgreSQL is not installed here.
var ErrMissing = errors.New("no PostgreSQL server is installed: neither in PATH nor under /usr/lib/postgresql")

// Cluster is a running server.
type Cluster struct {
	dir  string // of the data, the log and the socket
	bin  string
	port int

	mu     sync.Mutex
	server *exec.Cmd
	stdin  io.Closer // its end stops the server
	made   atomic.Int64
}

// Start starts a server for the length of a test, which is skipped if there is no PostgreSQL
// on this machine. settings are lines of postgresql.conf.
func Start(t testing.TB, settings ...string) *Cluster {
	t.Helper()
	c, err := New(settings...)
	if errors.Is(err, ErrMissing) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Remove)
	return c
}

// New starts a server. The caller removes it.
func New(settings ...string) (*Cluster, error) {
	c, err := prepare()
	if err != nil {
		return nil, err
	}
	if err := c.initialize(settings); err != nil {
		c.Remove()
		return nil, err
	}
	return c, nil
}

// Standby starts a server that follows this one, asynchronously.
func (c *Cluster) Standby() (*Cluster, error) {
	s, err := prepare()
	if err != nil {
		return nil, err
	}
	err = s.run("pg_basebackup", "--pgdata", s.data(), "--host", c.dir, "--port", strconv.Itoa(c.port), "--username", owner,
		"--checkpoint", "fast", "--no-sync", "--write-recovery-conf")
	if err == nil {
		err = s.Start()
	}
	if err != nil {
		s.Remove()
		return nil, err
	}
	return s, nil
}

// prepare makes a directory for a server.
func prepare() (*Cluster, error) {
	bin, err := find()
	if err != nil {
		return nil, err
	}
	// The path of a socket may have about a hundred bytes, which that of a test's own
	// directory may exceed.
	dir, err := os.MkdirTemp("", "postgres")
	if err != nil {
		return nil, err
	}
	c := &Cluster{dir: dir, bin: bin}
	if err := own(dir); err != nil {
		c.Remove()
		return nil, err
	}
	if c.port, err = freePort(); err != nil {
		c.Remove()
		return nil, err
	}
	return c, nil
}

const (
	owner    = "pollard"
	password = "secret/with:signs"
)

func (c *Cluster) initialize(settings []string) error {
	passwords := filepath.Join(c.dir, "password")
	if err := os.WriteFile(passwords, []byte(password), 0o644); err != nil {
		return err
	}
	err := c.run("initdb", "--pgdata", c.data(), "--username", owner, "--pwfile", passwords, "--auth-local", "trust",
		"--auth-host", "scram-sha-256", "--encoding", "UTF8", "--no-locale", "--no-sync")
	if err != nil {
		return err
	}
	settings = append([]string{
		"listen_addresses = '127.0.0.1'",
		"shared_buffers = 32MB",
		"max_connections = 50",
		"log_min_messages = warning",
	}, settings...)
	conf, err := os.OpenFile(filepath.Join(c.data(), "postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer conf.Close()
	if _, err := io.WriteString(conf, strings.Join(settings, "\n")+"\n"); err != nil {
		return err
	}
	return c.Start()
}

func (c *Cluster) data() string { return filepath.Join(c.dir, "data") }

// Start starts a server that has been stopped.
func (c *Cluster) Start() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	log, err := os.OpenFile(c.logFile(), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	// The shell stops the server when this process ends, however that happens: it holds
	// the other end of the pipe. It reads the signal to send.
	c.server = c.command("/bin/sh", "-c", `"$@" & server=$!
		read signal || signal=INT
		kill -s "$signal" $server
		wait $server`, "sh",
		filepath.Join(c.bin, "postgres"), "-D", c.data(), "-k", c.dir, "-p", strconv.Itoa(c.port))
	c.server.Stdout, c.server.Stderr = log, log
	if c.stdin, err = c.server.StdinPipe(); err != nil {
		return err
	}
	if err := c.server.Start(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	for {
		err := c.admin(ctx, "postgres", "select 1")
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("server does not start: %w\n%s", err, c.Log())
		case <-time.After(20 * time.Millisecond):
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
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.server == nil {
		return
	}
	io.WriteString(c.stdin.(io.Writer), signal+"\n")
	c.stdin.Close()
	c.server.Wait()
	c.server = nil
}

// Remove stops the server and removes its data.
func (c *Cluster) Remove() {
	c.stop("QUIT")
	os.RemoveAll(c.dir)
}

// Promote makes a standby take over.
func (c *Cluster) Promote() error {
	return c.admin(context.Background(), "postgres", "select pg_promote()")
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
	dump := filepath.Join(c.dir, "dump.sql")
	if err := c.run("pg_dump", "--file", dump, url); err != nil {
		t.Fatal(err)
	}
	if err := c.run("psql", "--quiet", "--set", "ON_ERROR_STOP=1", "--file", dump, to); err != nil {
		t.Fatal(err)
	}
	return to
}

// WriteFile writes a file of the server, such as its pg_hba.conf, and has the server
// read its configuration again. The name may stand in settings.
func (c *Cluster) WriteFile(t testing.TB, name string, data []byte) {
	t.Helper()
	path := filepath.Join(c.data(), name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := own(path); err != nil {
		t.Fatal(err)
	}
	c.Exec(t, "postgres", "select pg_reload_conf()")
}

// Blank overwrites a file of the data directory with zeros, while the server is stopped.
func (c *Cluster) Blank(t testing.TB, name string) {
	t.Helper()
	path := filepath.Join(c.data(), name)
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Size() == 0 {
		t.Fatalf("%s is empty", name)
	}
	if err := os.WriteFile(path, make([]byte, info.Size()), info.Mode()); err != nil {
		t.Fatal(err)
	}
}

// Exec runs a statement as the owner of a database.
func (c *Cluster) Exec(t testing.TB, database, sql string, args ...any) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	if err := c.admin(ctx, database, sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func (c *Cluster) connect(ctx context.Context, database string) (*pgx.Conn, error) {
	return pgx.Connect(ctx, fmt.Sprintf("host=%s port=%d user=%s database=%s", c.dir, c.port, owner, database))
}

func (c *Cluster) admin(ctx context.Context, database, sql string, args ...any) error {
	conn, err := c.connect(ctx, database)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, sql, args...)
	return err
}

// run runs one of PostgreSQL's programs.
func (c *Cluster) run(program string, args ...string) error {
	cmd := c.command(filepath.Join(c.bin, program), args...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", program, err, bytes.TrimSpace(out))
	}
	return nil
}

func (c *Cluster) command(program string, args ...string) *exec.Cmd {
	cmd := exec.Command(program, args...)
	cmd.Dir = c.dir
	unprivileged(cmd)
	return cmd
}

// find returns the directory of PostgreSQL's programs.
func find() (string, error) {
	if path, err := exec.LookPath("postgres"); err == nil {
		if path, err = filepath.EvalSymlinks(path); err == nil {
			return filepath.Dir(path), nil
		}
	}
	// Debian keeps the programs of each version apart.
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
	if len(found) == 0 {
		return "", ErrMissing
	}
	return filepath.Dir(slices.MaxFunc(found, func(a, b string) int { return major(a) - major(b) })), nil
}

func major(path string) int {
	n, _ := strconv.Atoi(strings.Split(path, "/")[4])
	return n
}

// freePort returns a port that is free. If another program takes it first, the server does
// not start.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}
