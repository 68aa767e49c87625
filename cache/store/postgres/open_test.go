// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package postgres_test

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/cache/store/postgres"
	"github.com/feedpollard/pollard/cache/store/postgres/postgrestest"
	"github.com/feedpollard/pollard/cache/store/storetest"
)

// TestOpenErrors holds what can be wrong to one line that says what to do.
func TestOpenErrors(t *testing.T) {
	c := server(t)
	good := c.Database(t)
	c.Exec(t, "postgres", "drop role if exists guest")
	c.Exec(t, "postgres", `create role guest login password 'guest'`)
	for name, test := range map[string]struct{ url, want string }{
		"no URL":           {"postgres://u:hunter2@[/feeds", "it looks like postgres://"},
		"odd port":         {"postgres://u:hunter2@h:odd/feeds", "it looks like postgres://"},
		"nobody listens":   {"postgres://u:hunter2@127.0.0.1:1/feeds?sslmode=disable", "see whether the database runs"},
		"no such host":     {"postgres://u:hunter2@nowhere.invalid/feeds", "see whether the database runs"},
		"wrong password":   {strings.Replace(good, "secret", "hunter2", 1), "correct the user or the password"},
		"no database":      {c.URL("missing"), "create it with createdb"},
		"no TLS":           {strings.Replace(good, "sslmode=disable", "sslmode=require", 1), "turn on ssl in the server"},
		"no privilege":     {strings.Replace(good, "pollard:secret%2Fwith%3Asigns", "guest:guest", 1), "own the database"},
		"unknown role":     {strings.Replace(good, "pollard:", "nobody:", 1), "correct the user or the password"},
		"unknown setting":  {good + "&no_such_setting=1", "no_such_setting"},
		"sslmode mistaken": {good + "&sslmode=verify-ful", "it looks like postgres://"},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := postgres.Open(t.Context(), postgres.Options{URL: test.url})
			if err == nil {
				s.Close()
				t.Fatal("opened")
			}
			if text := err.Error(); strings.Contains(text, "\n") || !strings.Contains(text, test.want) || !strings.HasPrefix(text, "store postgres") {
				t.Errorf("error is %q, want %q", text, test.want)
			}
			for _, secret := range []string{"hunter2", "secret", "guest:guest"} {
				if strings.Contains(err.Error(), secret) {
					t.Errorf("a password is in %q", err)
				}
			}
			t.Log(err)
		})
	}
}

// TestOpenTLS has a server that insists on TLS.
func TestOpenTLS(t *testing.T) {
	t.Parallel()
	c := postgrestest.Start(t)
	url := c.Database(t)
	certificate, key := selfSigned(t)
	c.WriteFile(t, "server.crt", certificate)
	c.WriteFile(t, "server.key", key)
	c.WriteFile(t, "pg_hba.conf", []byte("local all all trust\nhostssl all all 127.0.0.1/32 scram-sha-256\n"))
	c.Exec(t, "postgres", "alter system set ssl = on")
	c.Exec(t, "postgres", "select pg_reload_conf()")
	authority := filepath.Join(t.TempDir(), "authority.pem")
	must(t, os.WriteFile(authority, certificate, 0o600))
	for mode, want := range map[string]string{
		"disable":                                "add sslmode=verify-full",
		"verify-full":                            "add sslrootcert=",
		"verify-full&sslrootcert=" + authority:   "",
		"verify-full&sslrootcert=/missing/a.pem": "it looks like postgres://",
	} {
		with := strings.Replace(url, "sslmode=disable", "sslmode="+mode, 1)
		var s *store.Database
		var err error
		// The server takes a moment to read its configuration.
		eventually(t, mode, func() bool {
			if s, err = postgres.Open(t.Context(), postgres.Options{URL: with}); err == nil {
				s.Close()
				return want == ""
			}
			return want != "" && strings.Contains(err.Error(), want)
		})
		t.Log(err)
	}
}

// selfSigned returns a certificate for 127.0.0.1 and its key.
func selfSigned(t *testing.T) (certificate, key []byte) {
	t.Helper()
	s := httptest.NewTLSServer(nil)
	defer s.Close()
	encoded, err := x509.MarshalPKCS8PrivateKey(s.TLS.Certificates[0].PrivateKey)
	must(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded})
}

// TestWarnings names settings that put the promise at risk.
func TestWarnings(t *testing.T) {
	t.Parallel()
	c := postgrestest.Start(t, "fsync = off", "full_page_writes = off", "synchronous_commit = off")
	core, logs := observer.New(zap.WarnLevel)
	s, err := postgres.Open(t.Context(), postgres.Options{URL: c.Database(t), Log: zap.New(core)})
	must(t, err)
	defer s.Close()
	for _, setting := range []string{"fsync = off", "full_page_writes = off", "synchronous_commit = off"} {
		if logs.FilterMessageSnippet(setting).Len() != 1 {
			t.Errorf("no warning of %s in %v", setting, logs.All())
		}
	}
}

// TestOpenTogether starts several nodes on an empty database at the same time.
func TestOpenTogether(t *testing.T) {
	url := server(t).Database(t)
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() {
			s, err := postgres.Open(context.Background(), postgres.Options{URL: url})
			if err != nil {
				t.Error(err)
				return
			}
			s.Close()
		})
	}
	wg.Wait()
}

// TestOpenRefuses leaves the tables of others as they are. An empty schema may have been made for us.
func TestOpenRefuses(t *testing.T) {
	url := server(t).Database(t)
	t.Parallel()
	for want, sql := range map[string]string{
		"":                           `create schema pollard`,
		"belongs to another program": `create schema pollard; create table pollard.feeds (title text)`,
		"upgrade this node":          `update pollard.meta set value = '1000' where key = 'version'`,
	} {
		exec(t, url, `drop schema if exists pollard cascade`)
		if strings.HasPrefix(sql, "update") {
			open(t, url).Close()
		}
		exec(t, url, sql)
		before := tables(t, url)
		s, err := postgres.Open(t.Context(), postgres.Options{URL: url})
		switch {
		case want == "" && err == nil:
			s.Close()
		case want == "" || err == nil || !strings.Contains(err.Error(), want) || tables(t, url) != before:
			t.Errorf("Open: %v, want %q", err, want)
		}
	}
}

// tables returns how many tables the schema has.
func tables(t *testing.T, url string) int64 {
	return statistic(t, url, `select count(*) from pg_tables where schemaname = 'pollard'`)
}

// TestPlanted has other schemas with functions and tables of the names that are used here,
// and a role that looks into them first.
func TestPlanted(t *testing.T) {
	url := server(t).Database(t)
	exec(t, url, `
		create function public.clock_timestamp() returns timestamptz language sql as $f$ select now() + interval '1 year' $f$;
		create function public.nextval(text) returns bigint language sql as 'select 1';
		create table public.feed (id bytea);
		create table public.server (scale bigint);
		do $$ begin execute format('alter database %I set search_path = public, pg_catalog', current_database()); end $$`)
	s := open(t, url)
	storetest.Commit(t, s, outcome(storetest.Grant(t, s, storetest.Claim(1)), 1))
	if l := storetest.Ask(t, s, storetest.Claim(1)); l.Denied != store.DeniedNotDue || l.Wait < time.Hour {
		t.Errorf("a second claim: %+v", l)
	}
	storetest.Grant(t, s, storetest.Claim(2))
}
