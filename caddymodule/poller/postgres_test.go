// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package poller

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/jackc/pgx/v5"
	"go.uber.org/zap"

	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/cache/store/postgres/postgrestest"
)

// A database has one key for all users and passwords, and provisioning does not connect.
func TestPostgresKey(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("s%2Fcret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("POLLARD_TEST_PASSWORD", "s%2Fcret")
	for _, url := range []string{
		"postgres://one:s%2Fcret@db.invalid/feeds?sslmode=disable",
		"postgres://two:{env.POLLARD_TEST_PASSWORD}@db.invalid:5432/feeds?sslmode=require",
		"postgres://two:{file." + secret + "}@db.invalid/feeds",
	} {
		p := &Postgres{URL: url}
		if err := p.Provision(caddy.Context{}); err != nil {
			t.Errorf("%s: %v", url, err)
			continue
		}
		if p.Key() != "postgres:db.invalid:5432/feeds" || p.String() != "postgres db.invalid:5432/feeds" {
			t.Errorf("%s is %s, by the key %s", url, p, p.Key())
		}
		if !strings.Contains(p.resolved, "s%2Fcret@") {
			t.Errorf("%s: the placeholder became %s", url, p.resolved)
		}
	}
}

func TestPostgresURLThatCannotBeMeant(t *testing.T) {
	for _, tt := range []struct{ url, want string }{
		{"", "the URL of the database is missing"},
		{"postgres://u:{env.POLLARD_TEST_UNSET}@db.invalid/feeds", "{env.POLLARD_TEST_UNSET}"},
		{"postgres://u:pass/word@db.invalid/feeds", "the URL cannot be read"},
	} {
		err := (&Postgres{URL: tt.url}).Provision(caddy.Context{})
		if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "word") && !strings.Contains(err.Error(), "password@host") {
			t.Errorf("%s: got %v, want %s", tt.url, err, tt.want)
		}
	}
}

// open opens a database as the app does, with notes in a file.
func openPostgres(url, notes string) (store.Store, error) {
	p := &Postgres{URL: url}
	if err := p.Provision(caddy.Context{}); err != nil {
		return nil, err
	}
	return p.open(context.Background(), zap.NewNop(), notes)
}

// An error that keeps a node from starting is one line, with a remedy.
func TestPostgresThatCannotBeUsed(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a server")
	}
	cluster := postgrestest.Start(t)
	good := cluster.Database(t)
	foreign, earlier := cluster.Database(t), cluster.Database(t)
	exec(t, earlier, `create schema pollard; create table pollard.epoch (); create table pollard.memos ()`)
	exec(t, foreign, `create schema pollard; create table pollard.migrations (id int)`)
	newer := cluster.Database(t)
	notes := filepath.Join(t.TempDir(), "known.json")
	db, err := openPostgres(newer, notes)
	if err != nil {
		t.Fatal(err)
	}
	db.Close()
	exec(t, newer, `update pollard.meta set value = '1000' where key = 'version'`)

	for _, tt := range []struct{ name, url, want string }{
		{"wrong password", strings.Replace(good, "secret", "wrong", 1), "correct the user or the password"},
		{"no such database", cluster.URL("nowhere"), "create it with createdb"},
		{"nobody there", "postgres://u:secret@127.0.0.1:1/feeds", "see whether the database runs"},
		{"another program's", foreign, "belongs to another program"},
		{"an earlier edition's", earlier, "is of an earlier edition"},
		{"newer", newer, "upgrade this node"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := openPostgres(tt.url, notes)
			if err == nil {
				t.Fatal("it was opened")
			}
			if text := err.Error(); !strings.Contains(text, tt.want) || strings.Contains(text, "\n") || strings.Contains(text, "secret") {
				t.Errorf("got %q, want %q", text, tt.want)
			}
		})
	}
}

// A database that was lost and made again is recognized by what the node has recorded.
func TestPostgresMadeAnew(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a server")
	}
	cluster := postgrestest.Start(t)
	url := cluster.Database(t)
	notes := filepath.Join(t.TempDir(), "below", "known.json")
	granted := func() bool {
		db, err := openPostgres(url, notes)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		leases, err := db.Claim(t.Context(), []store.Claim{{ID: store.ID{1}, URL: "https://example.com/", Hold: 3600e9}})
		if err != nil {
			t.Fatal(err)
		}
		return leases[0].Denied == ""
	}
	if !granted() {
		t.Fatal("a claim in a new database was denied")
	}
	exec(t, url, `drop schema pollard cascade`)
	if granted() {
		t.Error("a claim was granted, though the feed may have been polled before the database was lost")
	}
	if err := os.WriteFile(notes, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	exec(t, url, `drop schema pollard cascade`)
	if !granted() {
		t.Error("damaged notes keep a node from its work")
	}
	if _, err := os.Stat(notes); errors.Is(err, os.ErrNotExist) {
		t.Error("nothing was noted")
	}
}

func exec(t *testing.T, url, sql string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if _, err := conn.Exec(t.Context(), sql, pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Fatal(err)
	}
}
