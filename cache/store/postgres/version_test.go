// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package postgres_test

import (
	"compress/gzip"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/cache/store/postgres"
	"github.com/feedpollard/pollard/cache/store/sqlite"
	"github.com/feedpollard/pollard/cache/store/storetest"
)

// ofVersion makes a database that has an earlier version of the tables, as a dump holds them.
func ofVersion(t *testing.T, version int) (url string) {
	t.Helper()
	url = server(t).Database(t)
	packed, err := os.Open(fmt.Sprintf("testdata/version%d.sql.gz", version))
	must(t, err)
	defer packed.Close()
	z, err := gzip.NewReader(packed)
	must(t, err)
	dump, err := io.ReadAll(z)
	must(t, err)
	lines := slices.DeleteFunc(strings.Split(string(dump), "\n"), func(line string) bool { return strings.HasPrefix(line, `\`) }) // commands of psql
	exec(t, url, strings.Join(lines, "\n"))
	return url
}

// rowsOf reads the tables as other programs do, by statements for their version.
func rowsOf(t *testing.T, url string, statements []string) (rows []string) {
	t.Helper()
	conn := connect(t, url+"&search_path=pollard")
	for _, sql := range statements {
		found, err := conn.Query(t.Context(), sql)
		for err == nil && found.Next() {
			var values []any
			values, err = found.Values()
			rows = append(rows, fmt.Sprintf("%x", values))
		}
		if err != nil || found.Err() != nil {
			t.Fatal(err, found.Err())
		}
	}
	return rows
}

// TestBringUp opens a database of version 1, by two nodes at once, while a backup holds a lock. Rows are as they were, but for
// the names of columns.
func TestBringUp(t *testing.T) {
	if testing.Short() {
		t.Skip("the step waits for its lock five seconds at a time")
	}
	url := ofVersion(t, 1)
	t.Parallel()
	before := rowsOf(t, url, storetest.RowsOfVersion1)
	backup := connect(t, url)
	tx, err := backup.Begin(t.Context())
	if err == nil {
		_, err = tx.Exec(t.Context(), `lock table pollard.feed in access share mode`)
	}
	must(t, err)
	log, lines := observer.New(zap.InfoLevel)
	nodes := make(chan *store.Database)
	for range 2 {
		go func() {
			s, err := postgres.Open(context.Background(), postgres.Options{URL: url, Log: zap.New(log)})
			if err != nil {
				t.Error(err)
			}
			nodes <- s
		}()
	}
	eventually(t, "it says that it waits", func() bool { return lines.FilterMessageSnippet("another session holds locks").Len() > 0 })
	if early := lines.FilterMessage("the tables are brought up").All(); len(early) > 0 {
		t.Errorf("while it waits it says: %v", early)
	}
	if _, err := connect(t, url).Exec(t.Context(), `set statement_timeout = '20s'; select facts from pollard.feed limit 1`, pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Errorf("a node of version 1 cannot read meanwhile: %v", err)
	}
	must(t, tx.Rollback(t.Context()))
	for range 2 {
		s := <-nodes
		if s == nil {
			t.FailNow()
		}
		defer s.Close()
		if after := rowsOf(t, url, storetest.RowsOfNow); fmt.Sprint(after) != fmt.Sprint(before) {
			t.Error("rows have changed")
		}
	}
	s := open(t, url)
	storetest.CheckBroughtUp(t, s)
	// Statements of version 1 fail, so that its nodes take the store as away.
	for _, sql := range []string{`select f.sum from pollard.feed f`, `update pollard.feed set facts = null`, `insert into pollard.feed (id, until, sum) values ('', 0, 0)`} {
		if _, err := connect(t, url).Exec(t.Context(), sql); err == nil {
			t.Errorf("%s works", sql)
		}
	}

	// A later program brings them up further: this one grants nothing any more, and can read.
	exec(t, url, `update pollard.meta set value = '99' where key = 'version'`)
	if _, err := s.Claim(t.Context(), []store.Claim{configured(1)}); err == nil || !strings.Contains(err.Error(), "upgrade this node") {
		t.Errorf("Claim: %v", err)
	}
	if records, err := s.Records(t.Context(), store.ID{}, 10, false); err != nil || len(records) != 10 {
		t.Errorf("Records: %d, %v", len(records), err)
	}
}

// TestBringUpFromVersion2 opens a database that a program of version 2 used, with its polls under way. Rows are as they
// were, but for the names of columns, and that program can claim and commit no more.
func TestBringUpFromVersion2(t *testing.T) {
	url := ofVersion(t, 2)
	t.Parallel()
	before := slices.Clone(storetest.RowsOfNow)
	before[0] = strings.NewReplacer(" site,", " host,", fmt.Sprint("tables_", store.Version), "unused").Replace(before[0])
	more := []string{
		`select id, moment, followed, waiting, configured_until, taken from feed order by id`,
		`select name, served_4, served_5, free_new, free_public, plain from host order by name`,
		`select scope, url, token from pause order by scope`,
	}
	was := rowsOf(t, url, append(before, more...))
	s := open(t, url)
	if is := rowsOf(t, url, append(slices.Clone(storetest.RowsOfNow), more...)); len(was) < 80 || !slices.Equal(is, was) {
		t.Errorf("of %d rows some have changed", len(was))
	}
	pauses := make(map[string]time.Duration) // between polls
	found, err := connect(t, url+"&search_path=pollard").Query(t.Context(), `select url, next - last from feed where url is not null and next is not null and last is not null`)
	for err == nil && found.Next() {
		var of string
		var pause int64
		err = found.Scan(&of, &pause)
		pauses[of] = time.Duration(pause)
	}
	must(t, err)
	feeds := 0
	for page, err := range store.Pages(t.Context(), s, 100, false) {
		must(t, err)
		for _, r := range page {
			feeds++
			if want, ok := pauses[r.URL]; !ok || r.In+r.Polled != want {
				t.Errorf("%s is polled in %v, %v after its last poll, want %v", r.URL, r.In, r.In+r.Polled, want)
			}
			if b, err := store.ReadBody(t.Context(), s, r.ID); err != nil || b.Version != r.Version || r.Version == 0 {
				t.Errorf("%s has version %d, and its body is of version %d: %v", r.URL, r.Version, b.Version, err)
			}
		}
	}
	if feeds != 21 {
		t.Errorf("%d feeds are known", feeds)
	}
	for _, sql := range append(storetest.EarlierWrites(), `select host from feed`) {
		if _, err := connect(t, url+"&search_path=pollard").Exec(t.Context(), sql); err == nil {
			t.Errorf("%s works", sql)
		}
	}
}

var update = flag.Bool("update", false, "make the golden dump of the present version of the tables again")

// makeDump makes the golden dump of the present version: the feeds of the golden SQLite store, with a poll under way.
func makeDump(t *testing.T) {
	dir := t.TempDir()
	unpack := func(from, to string) {
		packed, err := os.Open(from)
		must(t, err)
		defer packed.Close()
		z, err := gzip.NewReader(packed)
		must(t, err)
		data, err := io.ReadAll(z)
		must(t, err, os.WriteFile(to, data, 0o600))
	}
	unpack(fmt.Sprintf("../sqlite/testdata/version%d-closed.sqlite.gz", store.Version), filepath.Join(dir, "feeds.sqlite"))
	from, err := sqlite.Open(dir, sqlite.Options{})
	must(t, err)
	defer from.Close()
	url := server(t).Database(t)
	s := open(t, url)
	for _, forgotten := range []bool{false, true} {
		for page, err := range store.Pages(t.Context(), from, 100, forgotten) {
			must(t, err)
			var saved []store.Saved
			for _, r := range page {
				one := store.Saved{Record: r}
				if r.Version != 0 {
					b, err := store.ReadBody(t.Context(), from, r.ID)
					must(t, err)
					one.Body = &b
				}
				saved = append(saved, one)
			}
			must(t, s.Restore(t.Context(), saved))
		}
	}
	pauses, err := from.Pauses(t.Context())
	must(t, err)
	for _, p := range pauses {
		must(t, s.Restore(t.Context(), []store.Saved{{Pause: &p}}))
	}
	storetest.Grant(t, s, configured(1))
	dump, err := os.ReadFile(server(t).Dump(t, url, "--inserts"))
	must(t, err)
	f, err := os.Create(fmt.Sprintf("testdata/version%d.sql.gz", store.Version))
	must(t, err)
	z, err := gzip.NewWriterLevel(f, gzip.BestCompression)
	must(t, err)
	_, err = z.Write(dump)
	must(t, err, z.Close(), f.Close())
}

// TestGoldenDump opens the dump of the present version. Nothing has changed: each feed that has a version has its body, and the
// poll that was under way keeps its lease.
func TestGoldenDump(t *testing.T) {
	if *update {
		makeDump(t)
	}
	if _, err := os.Stat(fmt.Sprintf("testdata/version%d.sql.gz", store.Version)); err != nil {
		t.Fatalf("there is no golden dump of the present version: run .ci/golden, which runs this with -update (%v)", err)
	}
	url := ofVersion(t, store.Version)
	t.Parallel()
	before := rowsOf(t, url, storetest.RowsOfNow)
	s := open(t, url)
	if after := rowsOf(t, url, storetest.RowsOfNow); !slices.Equal(after, before) {
		t.Error("rows have changed")
	}
	feeds, points := 0, 0
	for page, err := range store.Pages(t.Context(), s, 100, false) {
		must(t, err)
		for _, r := range page {
			if r.Points != "" {
				points++
			}
			if r.Version == 0 {
				continue
			}
			feeds++
			if b, err := store.ReadBody(t.Context(), s, r.ID); err != nil || b.Version != r.Version {
				t.Errorf("%s has version %d, and its body is of version %d: %v", r.URL, r.Version, b.Version, err)
			}
		}
	}
	if feeds < 10 || points != 1 {
		t.Errorf("%d feeds have a version, %d point to another one", feeds, points)
	}
	under := configured(1) // its lease is over, an hour after the dump was made
	r, err := s.Lookup(t.Context(), []store.ID{under.ID})
	if err != nil || len(r) != 1 || r[0].In+r[0].Polled != under.Hold || r[0].Token == 0 {
		t.Errorf("of a poll that was under way, the lease was of %v: %+v, %v", under.Hold, r, err)
	}
}

// TestBringUpFails has a step fail. The tables are as they were, and are brought up when the cause is gone.
func TestBringUpFails(t *testing.T) {
	url := ofVersion(t, 1)
	t.Parallel()
	exec(t, url, `create index feed_owner on pollard.feed (id)`)
	before := rowsOf(t, url, storetest.RowsOfVersion1)
	if _, err := postgres.Open(t.Context(), postgres.Options{URL: url}); err == nil || !strings.Contains(err.Error(), ": nothing was changed") {
		t.Errorf("Open: %v", err)
	}
	if after := rowsOf(t, url, storetest.RowsOfVersion1); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Error("rows have changed")
	}
	exec(t, url, `drop index pollard.feed_owner`)
	open(t, url)
}
