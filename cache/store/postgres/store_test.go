// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package postgres_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/cache/store/postgres"
	"github.com/feedpollard/pollard/cache/store/postgres/postgrestest"
	"github.com/feedpollard/pollard/cache/store/storetest"
)

// shared is the server of most tests, once one of them has asked for it.
var shared *postgrestest.Cluster

func TestMain(m *testing.M) {
	flag.Parse()
	// A walk through the model takes ten times as long here as in an embedded store, which holds the
	// same rules to a hundred and thirty of them. Tests wait for servers more than they compute.
	flags := map[string]string{"rapid.checks": "6", "test.parallel": "8"}
	if testing.Short() {
		flags["rapid.checks"] = "2"
	}
	for name, value := range flags {
		if err := flag.Set(name, value); err != nil {
			panic(err)
		}
	}
	code := m.Run()
	if shared != nil {
		shared.Remove()
	}
	os.Exit(code)
}

// lazy are the settings of a server that writes late unless it is asked to write at once: a crash of it shows
// what the store has made durable. That the machine does not crash saves time.
var lazy = []string{"fsync = off", "synchronous_commit = off", "wal_writer_delay = 10s"}

// server returns the server of most tests. A test asks for it before it runs in parallel.
func server(t testing.TB) *postgrestest.Cluster {
	t.Helper()
	if shared == nil {
		shared = postgrestest.New(t, lazy...)
	}
	return shared
}

// open opens a store for the length of a test.
func open(t testing.TB, url string) *store.Database {
	t.Helper()
	s, err := postgres.Open(t.Context(), postgres.Options{URL: url})
	must(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

func TestContract(t *testing.T) {
	server(t)
	t.Parallel()
	c := shared // which a short test does not kill
	if !testing.Short() {
		c = postgrestest.New(t, lazy...)
		t.Cleanup(c.Remove)
	}
	url := c.Database(t)
	var opened []*store.Database
	storetest.Run(t, func(t *testing.T) storetest.Harness {
		for _, s := range opened { // or the test of a thousand stores has as many connections
			s.Close()
		}
		opened = nil
		// A new database takes longer.
		exec(t, url, `drop schema if exists pollard cascade`)
		var conn *pgx.Conn // damage takes thousands of statements
		return storetest.Harness{
			Open: func() storetest.Handle {
				opened = append(opened, open(t, url))
				return opened[len(opened)-1]
			},
			Sleep: func(d time.Duration) { sleep(t, url, d) },
			Kill: func(s storetest.Handle) {
				s.Close()
				c.Crash()
				c.Start(t)
			},
			Exec: func(sql string, args ...any) {
				if conn == nil {
					conn = connect(t, url+"&search_path=pollard")
				}
				_, err := conn.Exec(t.Context(), strings.ReplaceAll(sql, "?", "$"), args...)
				must(t, err)
			},
			Shared: true,
		}
	})
}

// sleep moves the clock of a store on.
func sleep(t testing.TB, url string, d time.Duration) {
	t.Helper()
	setServer(t, url, `wall = clock_timestamp(), scale = scale + `+fmt.Sprint(int64(d))+` + (1e9 * extract(epoch from clock_timestamp() - wall))::bigint`)
}

// setServer changes the row of the table server, with its sum.
func setServer(t testing.TB, url, set string) {
	t.Helper()
	exec(t, url, `begin; update pollard.server set `+set+`; update pollard.server set sum = `+postgres.SumOfServer("era", "since", "scale", "wall")+`; commit`)
}
