// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package postgres_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/cache/store/postgres"
	"github.com/feedpollard/pollard/cache/store/postgres/postgrestest"
	"github.com/feedpollard/pollard/cache/store/storetest"
)

// shared is the server of most tests, or why there is none.
var (
	shared    *postgrestest.Cluster
	sharedErr error
)

func TestMain(m *testing.M) {
	// A walk through the model takes ten times as long here as in an embedded store. A flag asks for more.
	if err := flag.Set("rapid.checks", "25"); err != nil {
		panic(err)
	}
	// A server that writes late unless it is told otherwise: a crash of it shows what the store
	// has made durable. That the machine does not crash saves time.
	shared, sharedErr = postgrestest.New("fsync = off", "synchronous_commit = off", "wal_writer_delay = 10s")
	code := m.Run()
	if shared != nil {
		shared.Remove()
	}
	os.Exit(code)
}

// server returns the server of most tests, which do not run at the same time.
func server(t testing.TB) *postgrestest.Cluster {
	t.Helper()
	if errors.Is(sharedErr, postgrestest.ErrMissing) {
		t.Skip(sharedErr)
	}
	if sharedErr != nil {
		t.Fatal(sharedErr)
	}
	return shared
}

// open opens a store for the length of a test.
func open(t testing.TB, url string) *postgres.Store {
	t.Helper()
	s, err := postgres.Open(t.Context(), postgres.Options{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func TestContract(t *testing.T) {
	server(t)
	var opened []*postgres.Store
	storetest.Run(t, func(t *testing.T) storetest.Harness {
		for _, s := range opened { // or the test of a thousand stores has as many connections
			s.Close()
		}
		opened = nil
		url := server(t).Database(t)
		return storetest.Harness{
			Open: func() store.Store {
				s := open(t, url)
				opened = append(opened, s)
				return s
			},
			Sleep: func(d time.Duration) { sleep(t, url, d) },
			Kill: func(s store.Store) {
				s.Close()
				server(t).Crash()
				if err := server(t).Start(); err != nil {
					t.Fatal(err)
				}
			},
			Shared: true,
		}
	})
}

// sleep moves all moments that a store keeps back, which is as if its clock went on.
func sleep(t testing.TB, url string, d time.Duration) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	by := fmt.Sprintf("interval '%d microseconds'", d.Microseconds())
	for _, sql := range []string{
		`update pollard.epoch set since = since - ` + by,
		`update pollard.feeds set next = next - ` + by + `, turn = turn - ` + by + `, polled = polled - ` + by + `, asked = asked - ` + by,
		`update pollard.hosts set at = at - ` + by + `, turn = turn - ` + by,
		`update pollard.pauses set until = until - ` + by,
		`update pollard.hops set at = at - ` + by,
		`update pollard.changes set made = made - ` + by,
	} {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
}
