// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"compress/gzip"
	"database/sql/driver"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/cache/store/storetest"
)

// unpackStore writes a store of a version of the tables into a directory, as that Pollard has left it when it
// was closed, or killed.
func unpackStore(t *testing.T, version int, how string) (dir string) {
	t.Helper()
	dir = directory(t)
	for _, part := range []string{"", "-wal"} {
		packed, err := os.Open(filepath.Join("testdata", fmt.Sprint("version", version, "-", how, ".sqlite", part, ".gz")))
		if how == "closed" && part == "-wal" {
			continue
		}
		mustDo(t, err)
		defer packed.Close()
		z, err := gzip.NewReader(packed)
		mustDo(t, err)
		data, err := io.ReadAll(z)
		mustDo(t, err, os.WriteFile(filepath.Join(dir, fileName+part), data, 0o600))
	}
	return dir
}

// rowsOf reads a file as other programs do, by statements for version 1 of its tables.
func rowsOf(t *testing.T, dir string, statements []string) (rows []string) {
	t.Helper()
	c, err := connect(filepath.Join(dir, fileName))
	mustDo(t, err)
	defer c.close()
	for _, sql := range statements {
		mustDo(t, c.query(t.Context(), sql, nil, func(r row) error {
			rows = append(rows, fmt.Sprintf("%x", []driver.Value(r)))
			return nil
		}))
	}
	return rows
}

// TestBringUp opens stores of version 1. Their rows are as they were, but for the names of columns, and a feed whose
// record is damaged starts afresh.
func TestBringUp(t *testing.T) {
	for _, how := range []string{"closed", "killed"} {
		dir := unpackStore(t, 1, how)
		before := rowsOf(t, dir, storetest.RowsOfVersion1)
		if len(before) < 40 {
			t.Fatalf("%s: %d rows", how, len(before))
		}
		log, lines := observer.New(zap.InfoLevel)
		s, err := Open(dir, Options{Log: zap.New(log)})
		mustDo(t, err)
		if lines.FilterMessageSnippet("brought up").Len() != 2 {
			t.Errorf("%s: logged %v", how, lines.All())
		}
		mustDo(t, s.Close())
		after := rowsOf(t, dir, storetest.RowsOfNow)
		for i := range max(len(before), len(after)) {
			if i >= len(before) || i >= len(after) || before[i] != after[i] {
				t.Fatalf("%s: row %d was %s, is %s", how, i, before[min(i, len(before)-1)], after[min(i, len(after)-1)])
			}
		}
		s, err = Open(dir, Options{Log: zap.New(log)})
		mustDo(t, err)
		if lines.FilterMessageSnippet("brought up").Len() != 2 {
			t.Errorf("%s: brought up twice: %v", how, lines.All())
		}
		storetest.CheckBroughtUp(t, s)
		mustDo(t, s.Close())
	}
}

// TestBringUpFromVersion2 opens stores that a program of version 2 used. Next polls, owners and pauses are as they were.
func TestBringUpFromVersion2(t *testing.T) {
	for _, how := range []string{"closed", "killed"} {
		dir := unpackStore(t, 2, how)
		c, err := connect(filepath.Join(dir, fileName))
		mustDo(t, err)
		type feed struct{ next, last, owner, configured, version int64 }
		rows := make(map[string]feed)
		mustDo(t, c.query(t.Context(), `select url, next, last, owner, configured, version from feed where url is not null`, nil, func(found row) error {
			var url string
			var r feed
			err := found.Scan(&url, &r.next, &r.last, &r.owner, &r.configured, &r.version)
			rows[url] = r
			return err
		}))
		scale, err := c.number(`select scale from process`)
		mustDo(t, err, c.close())
		s, err := Open(dir, Options{Clocks: func() Reading { return Reading{Wall: time.Unix(0, scale), Boot: "another"} }})
		mustDo(t, err)
		defer s.Close()
		now := s.database.scale.now()
		records, err := s.Records(t.Context(), store.ID{}, 100, false)
		if err != nil || len(records) != len(rows) || len(rows) < 12 {
			t.Fatalf("%s: %d records of %d, %v", how, len(records), len(rows), err)
		}
		for _, r := range records {
			was := rows[r.URL]
			if in := store.Time(was.next).Sub(now); r.In != in && (was.next != 0 || r.In != store.Ended) {
				t.Errorf("%s: %s is polled in %v, want %v", how, r.URL, r.In, in)
			}
			if int64(r.Owner) != was.owner || r.Configured != (was.configured == 1) || int64(r.Version) != was.version || r.Polled != now.Sub(store.Time(was.last)) {
				t.Errorf("%s: %s is %+v, and was %+v", how, r.URL, r, was)
			}
		}
		for url, want := range map[string]time.Duration{
			"https://www.paused.test/refused.xml": 10 * time.Hour, "https://www.paused.test/other.xml": time.Hour, "https://limit.test/b.xml": 10 * time.Minute,
		} {
			site := strings.TrimPrefix(strings.Split(url, "/")[2], "www.")
			l := storetest.Ask(t, s, store.Claim{ID: store.IDOf(url), URL: url, Hold: time.Hour, Host: store.Host{Site: site}})
			if l.Denied == "" || l.Wait > want || l.Wait < want/2 {
				t.Errorf("%s: %s is denied %q for %v, want %v", how, url, l.Denied, l.Wait, want)
			}
		}
	}
}

// TestBringUpFails has a step fail. The file is as it was, the error says what to do, and the file
// is brought up when the cause is gone.
func TestBringUpFails(t *testing.T) {
	dir := unpackStore(t, 1, "closed")
	change := func(sql string) {
		c, err := connect(filepath.Join(dir, fileName))
		mustDo(t, err, c.exec(sql), c.close())
	}
	change(`create index feed_owner on feed (id)`) // that the last statement makes
	before := rowsOf(t, dir, storetest.RowsOfVersion1)
	for range 2 {
		_, err := Open(dir, Options{})
		if err == nil || !strings.Contains(err.Error(), "the file is as it was") {
			t.Fatalf("Open: %v", err)
		}
	}
	if after := rowsOf(t, dir, storetest.RowsOfVersion1); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Error("rows have changed")
	}
	change(`drop index feed_owner`)
	s := mustOpen(t, dir)
	storetest.CheckBroughtUp(t, s)
}

// TestEarlierProgram has statements of earlier versions fail, so that such a program writes nothing.
func TestEarlierProgram(t *testing.T) {
	dir := directory(t)
	storeOf(t, dir, 1)
	for _, sql := range append(storetest.EarlierWrites(),
		`select f.sum from feed f`, `update feed set facts = null, memo = null where n = 1`, `insert into feed (id, until, sum) values (x'00', 0, 0)`,
		`select f.unused from feed f`, `insert into feed (id, until, unused) values (x'00', 0, 0)`,
	) {
		c, err := connect(filepath.Join(dir, fileName))
		mustDo(t, err)
		if err := c.exec(sql); err == nil {
			t.Errorf("%s works", sql)
		}
		mustDo(t, c.close())
	}
}

// TestPausesOfVersion2 has a pause of a host hold for the feeds of that host, and for its site for an hour at most.
func TestPausesOfVersion2(t *testing.T) {
	s := NewMemory(nil)
	defer s.Close()
	var feeds []store.Claim
	for _, host := range []string{"www.a.test", "www.a.test", "blog.a.test"} {
		url := fmt.Sprintf("https://%s/%d.xml", host, len(feeds))
		feeds = append(feeds, store.Claim{ID: store.IDOf(url), URL: url, Hold: time.Minute, Host: store.Host{Site: host}})
		storetest.Grant(t, s, feeds[len(feeds)-1])
	}
	mustDo(t, s.database.writer.exec(fmt.Sprintf(`update feed set tables_%d = 0`, store.Version))) // as that version leaves it
	mustDo(t, s.database.writer.exec(`insert into pause (scope, until, why, step) values ('host www.a.test 3', ?1, 'host-cooldown', 1)`, int64(s.database.scale.now().Add(6*time.Hour))))
	for i, wait := range []time.Duration{6 * time.Hour, 6 * time.Hour, time.Hour} {
		c := feeds[i]
		c.Host.Site = "a.test"
		if l := storetest.Ask(t, s, c); l.Denied == "" || l.Wait > wait || l.Wait < wait-time.Minute {
			t.Errorf("%s: %q for %v, want %v", c.URL, l.Denied, l.Wait, wait)
		}
	}
	if p, err := s.Pauses(t.Context()); err != nil || len(p) != 1 || p[0].Site != "a.test" || p[0].For > time.Hour {
		t.Errorf("Pauses = %+v, %v, want one of an hour", p, err)
	}
}
