// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package postgres_test

import (
	"context"
	"errors"
	"net"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/cache/store/postgres"
	"github.com/feedpollard/pollard/cache/store/postgres/postgrestest"
	"github.com/feedpollard/pollard/cache/store/storetest"
)

// TestAway crashes the server and starts it again under an open store.
func TestAway(t *testing.T) {
	t.Parallel()
	c := postgrestest.Start(t)
	s := open(t, c.Database(t))
	l := storetest.Grant(t, s, storetest.Claim(1))
	storetest.Commit(t, s, outcome(l, 1))
	storetest.Grant(t, s, storetest.Claim(2))
	changes := storetest.Watch(t, s)

	c.Crash()
	for range 5 {
		if lease, err := s.Claim(t.Context(), []store.Claim{storetest.Claim(3)}); err == nil {
			t.Fatalf("without a server: %+v", lease)
		} else if strings.Contains(err.Error(), "\n") {
			t.Errorf("an error of several lines: %v", err)
		}
	}
	_, err := store.ReadBody(t.Context(), s, l.ID)
	if err == nil || errors.Is(err, store.ErrNoBody) {
		t.Errorf("Body without a server: %v, which must not look like a body that is lost", err)
	}

	c.Start(t)
	// Nothing that was acknowledged is lost.
	eventually(t, "the store is back", func() bool {
		_, err := s.Lookup(t.Context(), []store.ID{l.ID})
		return err == nil
	})
	for n := 1; n <= 2; n++ {
		if l := storetest.Ask(t, s, storetest.Claim(n)); l.Denied != store.DeniedNotDue || l.Wait < 50*time.Minute {
			t.Errorf("feed %d: %+v", n, l)
		}
	}
	if _, err := store.ReadBody(t.Context(), s, l.ID); err != nil {
		t.Error(err)
	}
	storetest.Commit(t, s, outcome(storetest.Grant(t, s, storetest.Claim(3)), 5))
	eventually(t, "the change is seen", func() bool {
		select {
		case c := <-changes:
			return c.Version == 5
		default:
			return false
		}
	})
}

// TestSilence has a server that takes connections and says nothing.
func TestSilence(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes the 5 s that a server may take")
	}
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	began := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	_, err = postgres.Open(ctx, postgres.Options{URL: "postgres://u:secret@" + l.Addr().String() + "/feeds?sslmode=disable"})
	if err == nil || ctx.Err() != nil {
		t.Fatalf("Open = %v after %v", err, time.Since(began))
	}
}

// Of several servers one may be silent, as its machine has lost its power.
func TestSilentServerOfSeveral(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes the seconds that a server may take, twice")
	}
	url := server(t).Database(t)
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer silent.Close()
	s := open(t, strings.Replace(url, "@", "@"+silent.Addr().String()+",", 1))
	exec(t, url, `select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'pollard' and datname = current_database()`)
	eventually(t, "the other one is used", func() bool {
		_, err := s.Lookup(t.Context(), []store.ID{{}})
		return err == nil
	})
}

// TestClose ends everything that a store does.
func TestClose(t *testing.T) {
	url := server(t).Database(t)
	open(t, url).Close() // so that nothing of the first connection counts
	before := runtime.NumGoroutine()
	s := open(t, url)
	done := make(chan error, 2)
	for range 2 {
		go func() { done <- s.Watch(t.Context(), func(store.Change) error { return nil }) }()
	}
	storetest.Grant(t, s, storetest.Claim(1))
	s.Close()
	for range 2 {
		if err := <-done; !errors.Is(err, os.ErrClosed) {
			t.Errorf("Watch: %v, want %v", err, os.ErrClosed)
		}
	}
	eventually(t, "all goroutines end", func() bool { return runtime.NumGoroutine() <= before })
	var sessions int
	eventually(t, "all sessions end", func() bool {
		err := connect(t, url).QueryRow(t.Context(), `select count(*) from pg_stat_activity
			where application_name = 'pollard' and datname = current_database()`).Scan(&sessions)
		return err == nil && sessions == 0
	})
}
