// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/cache/store/storetest"
	"github.com/feedpollard/pollard/internal/disk"
)

func mustOpen(t testing.TB, dir string) *Store {
	t.Helper()
	s, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// storeOf makes a store of feeds with bodies, and closes it.
func storeOf(t testing.TB, dir string, feeds int) {
	t.Helper()
	s := mustOpen(t, dir)
	for n := range feeds {
		c := store.Claim{ID: numbered(n), URL: urlOf(n), Hold: time.Hour}
		o := storetest.Outcome(storetest.Grant(t, s, c), storetest.Text(1, strings.Repeat("content ", 200)))
		o.In, o.PollState = time.Hour, bytes.Repeat([]byte("facts"), 100)
		storetest.Commit(t, s, o)
	}
	mustDo(t, s.Close())
}

func TestOpenIsPrivate(t *testing.T) {
	dir := filepath.Join(directory(t), "a", "store")
	storeOf(t, dir, 1)
	for path, want := range map[string]os.FileMode{dir: 0o700, filepath.Join(dir, fileName): 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v, want %v", path, info.Mode(), err, want)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	change := func(sql ...string) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			c, err := connect(filepath.Join(dir, fileName))
			mustDo(t, err)
			for _, s := range sql {
				mustDo(t, c.exec(s))
			}
			mustDo(t, c.close())
		}
	}
	for _, c := range []struct {
		name    string
		prepare func(*testing.T, string)
		want    string
	}{
		{"another program", change("create table theirs (n)"), "belongs to another program"},
		{"a file that cannot be written", func(t *testing.T, dir string) {
			mustDo(t, os.Mkdir(filepath.Join(dir, fileName+".lock"), 0o700))
		}, "change its owner, or name another one"},
		{"a newer schema", func(t *testing.T, dir string) {
			storeOf(t, dir, 1)
			change("pragma user_version = 99")(t, dir)
		}, "install a newer Pollard"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := directory(t)
			c.prepare(t, dir)
			for range 2 { // it leaves all as it is
				if _, err := Open(dir, Options{}); err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("Open: %v, want %q", err, c.want)
				}
			}
		})
	}
}

// TestDamagedPages damages each page of a store in several ways, after a crash. The store
// opens, perhaps empty, goes on working, and opens again. It grants no poll too early,
// and serves no body that is not the feed's. Damage of bodies alone costs these. A short test damages
// every sixteenth page.
func TestDamagedPages(t *testing.T) {
	const feeds, page = 30, pageSize
	dir, made := directory(t), time.Now()
	storeOf(t, dir, feeds)
	crashed := mustOpen(t, dir)
	mustDo(t, crashed.SaveCounters(t.Context(), "a node", []byte("counters")))
	bodies, records := pagesOf(t, crashed, "body", "sqlite_autoindex_body_1"), pagesOf(t, crashed, "feed")
	crashed.kill()
	file := filepath.Join(dir, fileName)
	good, err := os.ReadFile(file)
	mustDo(t, err)
	random := rand.New(rand.NewPCG(2026, 11))
	outcomes := make(map[string]int)
	try := func(at int, name string, bad []byte) {
		left, err := filepath.Glob(file + "*")
		mustDo(t, err)
		for _, f := range left {
			mustDo(t, os.Remove(f))
		}
		mustDo(t, os.WriteFile(file, bad, 0o600))
		outcome := survive(t, dir, feeds, made, name == "a bit of a record")
		outcomes[name+": "+outcome]++
		if bodies[at/page+1] && name != "cut off" && strings.Contains(outcome, "set aside") {
			t.Errorf("damage of bodies alone: %s", outcome)
		}
		if t.Failed() {
			t.Fatalf("page %d: %s (%s)", at/page, name, outcome)
		}
	}
	for at := 0; at < len(good); at += page {
		if testing.Short() && at/page%16 != 1 {
			continue
		}
		bad := bytes.Clone(good)
		for i := range page {
			bad[at+i] = byte(random.Uint32()) * byte(at/page%2) // or zero
		}
		try(at, "noise", bad)
		bad = bytes.Clone(good)
		copy(bad[at:], good[random.IntN(len(good)/page)*page:][:page])
		try(at, "another page", bad)
		if at/page%4 == 3 { // nothing is an empty file, as a new store is
			try(at, "cut off", good[:at])
		}
		for range 8 {
			if records[at/page+1] {
				bad = bytes.Clone(good)
				bad[at+random.IntN(page)] ^= 1 << random.IntN(8)
				try(at, "a bit of a record", bad)
			}
		}
	}
	t.Logf("%d pages: %v", len(good)/page, outcomes)
}

// pagesOf returns the pages of tables and indexes.
func pagesOf(t *testing.T, s *Store, names ...string) map[int]bool {
	t.Helper()
	pages := make(map[int]bool)
	for _, name := range names {
		mustDo(t, s.database.writer.query(t.Context(), `select pageno from dbstat where name = ?1`, []any{name}, func(r row) error {
			pages[int(r[0].(int64))] = true
			return nil
		}))
	}
	if len(pages) < 4 {
		t.Fatalf("%d pages of %v", len(pages), names)
	}
	return pages
}

// TestDamagedIndex damages an ID in the index of feeds, after a clean stop. It is found, and no feed
// is polled as a new one then.
func TestDamagedIndex(t *testing.T) {
	dir := directory(t)
	const feeds = 400
	storeOf(t, dir, feeds)
	id := numbered(feeds / 2)
	flipIn(t, dir, "sqlite_autoindex_feed_1", id[:])
	log, lines := observer.New(zap.ErrorLevel)
	s, err := Open(dir, Options{Log: zap.New(log)})
	mustDo(t, err)
	defer s.Close()
	s.database.background.Wait()
	if lines.FilterMessageSnippet("an index of the store is damaged").Len() != 1 {
		t.Errorf("logged %v", lines.All())
	}
	for n := range feeds + 1 {
		id := numbered(n)
		if l := storetest.Ask(t, s, store.Claim{ID: id, URL: urlOf(n), Hold: time.Hour}); l.Denied != store.DeniedNotDue {
			t.Errorf("feed %d: %+v", n, l)
		}
	}
}

// TestDamagedName damages the name of a site: a bit in its row or in the index, or all of it. All feeds are polled all the same, but
// for that of a site that is paused.
func TestDamagedName(t *testing.T) {
	damages := []string{"host", "sqlite_autoindex_host_1", "x'32'", "null"}
	if testing.Short() {
		damages = damages[:2]
	}
	for _, damage := range damages {
		dir := directory(t)
		const feeds = 400
		s := mustOpen(t, dir)
		claim := func(n int, site string) store.Claim {
			return store.Claim{ID: numbered(n), URL: urlOf(n), Hold: time.Hour, Configured: true, Host: store.Host{Site: site, Spacing: time.Second}}
		}
		for n := range feeds {
			storetest.Commit(t, s, storetest.Outcome(storetest.Grant(t, s, claim(n, fmt.Sprint("site", n))), nil))
		}
		paused := claim(feeds, "paused")
		storetest.Commit(t, s, storetest.Outcome(storetest.Grant(t, s, paused), nil))
		mustDo(t, s.Restore(t.Context(), []store.Saved{{Pause: &store.Pause{Site: "paused", For: 24 * time.Hour}}}), s.Close())
		if strings.Contains(damage, "host") {
			flipIn(t, dir, damage, []byte("site200"))
		} else {
			c, err := connect(filepath.Join(dir, fileName))
			mustDo(t, err, c.exec("update host set name = "+damage+" where name = 'site200'"), c.close())
		}
		m := newFake()
		m.wall = time.Duration(time.Now().Add(3 * time.Hour).UnixNano())
		s, err := Open(dir, Options{Clocks: m.moment})
		mustDo(t, err)
		defer s.Close()
		if polled := len(storetest.Poll(t, s, time.Second)); polled != feeds {
			t.Errorf("%s: %d feeds are polled, want %d", damage, polled, feeds)
		}
		if l := storetest.Ask(t, s, paused); l.Denied != store.DeniedPaused {
			t.Errorf("%s: the pause does not count: %+v", damage, l)
		}
	}
}

// flipIn flips a bit of a text in the pages of a table or index of a store that is closed.
func flipIn(t *testing.T, dir, name string, text []byte) {
	t.Helper()
	s := mustOpen(t, dir)
	pages := pagesOf(t, s, name)
	mustDo(t, s.Close())
	file := filepath.Join(dir, fileName)
	data, err := os.ReadFile(file)
	mustDo(t, err)
	for page := range pages {
		if at := bytes.Index(data[(page-1)*pageSize:page*pageSize], text); at >= 0 {
			data[(page-1)*pageSize+at] ^= 0x80
		}
	}
	mustDo(t, os.WriteFile(file, data, 0o600))
}

// survive opens a damaged store, which was made at a moment, works with it, and opens it again. If no more than
// a bit of a record is damaged, one feed may be polled too early or late.
func survive(t *testing.T, dir string, feeds int, made time.Time, bit bool) (outcome string) {
	t.Helper()
	log, lines := observer.New(zap.ErrorLevel)
	s, err := Open(dir, Options{Log: zap.New(log)})
	if err != nil {
		if !strings.Contains(err.Error(), "belongs to another program") && !strings.Contains(err.Error(), "install a newer") {
			t.Errorf("refused: %v", err)
		}
		return "refused" // its first page is damaged
	}
	outcome = "unharmed"
	if lines.FilterMessageSnippet("set aside").Len() > 0 {
		outcome = "set aside"
		// It may have had this feed, whose last poll it does not know any more.
		mustDo(t, s.Restore(t.Context(), []store.Saved{{New: true, Hold: time.Hour, Record: store.Record{
			ID: numbered(7000), URL: urlOf(7000), Polled: -1, Configured: true, State: store.StateCold}}}))
		if due, err := s.Due(t.Context(), store.DueQuery{Limit: 10}); err == nil && len(due.Feeds) > 0 {
			t.Errorf("due at once after the file was set aside: %+v", due)
		}
	}
	odd := 0
	for n := range feeds {
		id := numbered(n)
		records, err := s.Lookup(t.Context(), []store.ID{id})
		if err != nil || len(records) == 0 {
			continue
		}
		if in := records[0].In; in > time.Hour || in < 59*time.Minute-time.Since(made) {
			if odd++; !bit || odd > 1 {
				t.Errorf("feed %d is due in %v", n, in)
			}
		}
		body, err := store.ReadBody(t.Context(), s, id)
		if err != nil {
			outcome = "lost bodies"
		} else if string(body.Data) != strings.Repeat("content ", 200) {
			t.Errorf("feed %d has the body %q", n, body.Data)
		}
	}
	for n := range feeds {
		leases, err := s.Claim(t.Context(), []store.Claim{{ID: numbered(n), URL: urlOf(n), Hold: time.Hour}})
		if err == nil && leases[0].Denied == "" && (!bit || odd == 0) {
			t.Errorf("feed %d is polled again within the hour: %s", n, outcome)
		}
	}
	mustWork := func(s *Store, n int) error {
		id := numbered(n)
		leases, err := s.Claim(t.Context(), []store.Claim{{ID: id, URL: urlOf(n), Hold: time.Hour}})
		if err != nil || leases[0].Denied != "" {
			return err
		}
		return s.Commit(t.Context(), store.Outcome{ID: id, Token: leases[0].Token, In: time.Hour, Body: &store.Body{Version: 1, Coding: "identity", Data: []byte("new")}})
	}
	if mustWork(s, 5000) != nil {
		outcome += ", found when it was written"
	}
	s.Close()
	for range 3 { // each may find something
		if s, err = Open(dir, Options{}); err != nil {
			t.Errorf("opening it again: %v", err)
			return outcome
		}
		err = mustWork(s, 6000)
		s.Close()
		if err == nil {
			return outcome
		}
	}
	t.Errorf("it never works again: %v", err)
	return outcome
}

// TestShortOfSpace has the disk run low. Until there is space again, nothing is dropped because of it, and nothing grows but
// feeds of the operator and those that have a version: what is remembered of strangers takes an eighth of what is left.
func TestShortOfSpace(t *testing.T) {
	free, all := uint64(100<<30), uint64(1000<<30)
	s, err := Open(directory(t), Options{Space: func(string) (uint64, uint64) { return free, all }})
	mustDo(t, err)
	defer s.Close()
	feeds, now := 0, time.Nanosecond
	token, stranger := store.OwnerOf(store.KindNamed, "a"), store.Any
	commit := func(n, size int, by store.Owner) error {
		c := store.Claim{ID: numbered(n), URL: urlOf(n), Hold: time.Hour, By: []store.Owner{by}, Configured: by == store.Operator, Floor: now}
		return s.Commit(t.Context(), storetest.Outcome(storetest.Grant(t, s, c), storetest.Text(uint64(size), string(make([]byte, size)))))
	}
	grow := func(by store.Owner) (err error) {
		for range 20 {
			feeds++
			err = errors.Join(err, commit(feeds, 20_000, by))
		}
		return err
	}
	for _, step := range []struct {
		name      string
		free, all uint64
		by        store.Owner
		short     bool
		crowded   bool
		bytes     int64 // of bodies, in units of 20 feeds
	}{
		{"there is space", 100 << 30, 1000 << 30, token, false, false, 1},
		{"a small disk is nearly empty", 531 << 20, 574 << 20, token, false, false, 2},
		{"less than a twentieth of a large disk is free", 49 << 30, 1000 << 30, token, false, false, 3},
		{"less than 1 GiB of a large disk is free", 1<<30 - 1, 1000 << 30, token, true, false, 3},
		{"a small disk is nearly full", 5 << 20, 574 << 20, stranger, true, false, 3},
		{"others fill it", 20 << 10, 574 << 20, stranger, true, true, 3},
		{"it is full", 0, 574 << 20, token, true, true, 3},
		{"the operator's feeds come", 20 << 10, 574 << 20, store.Operator, true, true, 4},
		{"there is space again", 51 << 30, 1000 << 30, token, false, false, 5},
	} {
		free, all = step.free, step.all
		if err := grow(step.by); errors.Is(err, store.ErrShort) != (step.short && step.by != store.Operator) || err != nil && !step.short {
			t.Errorf("%s: Commit: %v", step.name, err)
		}
		trimmed, err := s.Sweep(t.Context(), store.SweepQuery{Disk: 1 << 40})
		mustDo(t, err)
		totals, err := s.Totals(t.Context())
		mustDo(t, err)
		if totals.Short != step.short || totals.Crowded != step.crowded || len(trimmed) > 0 || totals.Bytes != step.bytes*20*20_000 {
			t.Errorf("%s: %d feeds gave way, %+v", step.name, len(trimmed), totals)
		}
	}
	free, all = 20<<10, 574<<20
	if err := commit(1, 30_000, token); err != nil {
		t.Errorf("a longer version in place of a stored one: %v", err)
	}
	if err := commit(61, 20_000, token); !errors.Is(err, store.ErrShort) {
		t.Errorf("a feed that was not stored comes again: %v", err)
	}
	free, all = 51<<30, 1000<<30
	mustDo(t, commit(61, 20_001, token))
}

// TestPlans expects of each statement of a claim, a commit and a read that it finds its
// rows by an index, however many there are.
func TestPlans(t *testing.T) {
	s := mustOpen(t, directory(t))
	c := store.Claim{ID: numbered(1), URL: urlOf(1), Hold: time.Hour, Configured: true, Host: store.Host{Site: "one"}}
	o := storetest.Outcome(storetest.Grant(t, s, c), storetest.Text(1, ""))
	o.Pauses = []store.Pause{{Site: "three", For: time.Hour}}
	storetest.Commit(t, s, o)
	mustDo(t, s.Touch(t.Context(), map[store.ID]store.Asked{c.ID: {}}))
	hop := c
	hop.Hop = true
	storetest.Ask(t, s, hop)
	_, err := s.Due(t.Context(), store.DueQuery{Limit: 9, Idle: time.Hour})
	mustDo(t, err)
	_, err = s.Lookup(t.Context(), []store.ID{c.ID})
	mustDo(t, err)
	_, err = s.Records(t.Context(), store.ID{}, 10, false)
	mustDo(t, err)

	texts := make(map[string]bool)
	for text := range s.database.writer.statements {
		texts[text] = true
	}
	for range readers {
		c := <-s.database.readers
		for text := range c.statements {
			texts[text] = true
		}
		s.database.readers <- c
	}
	explained := 0
	ofFewRows := map[string]bool{"SCAN CONSTANT ROW": true, "SCAN rows": true}
	for text := range texts {
		if strings.HasPrefix(text, "pragma") || strings.Contains(text, "process") || strings.Contains(text, "sqlite_master") ||
			strings.Contains(text, "alter table") || strings.HasPrefix(text, "create") || strings.Contains(text, "drop index") || strings.HasPrefix(text, "begin") || text == "commit" {
			continue
		}
		explained++
		err := s.database.writer.query(t.Context(), "explain query plan "+text, make([]any, 40),
			func(r row) error {
				if plan := r[3].(string); strings.HasPrefix(plan, "SCAN") && !strings.Contains(plan, "USING") && !ofFewRows[plan] || strings.Contains(plan, "TEMP B-TREE") {
					t.Errorf("%s\nhas the plan %q", text, plan)
				}
				return nil
			})
		mustDo(t, err)
	}
	if explained < 12 {
		t.Errorf("only %d statements were explained", explained)
	}
}

// TestLostLog damages the write-ahead log of a store after a kill: all of it, its end, its header, a bit in it. What was polled last is not known to
// the file then, and no feed is polled again within its interval.
func TestLostLog(t *testing.T) {
	const feeds, noIndex = 12, "removed with its index, after a checkpoint"
	damages := map[string]func(log []byte) []byte{
		"none":       func(log []byte) []byte { return log },
		"removed":    func([]byte) []byte { return nil },
		noIndex:      func([]byte) []byte { return nil },
		"empty":      func([]byte) []byte { return []byte{} },
		"its header": func(log []byte) []byte { log[3] ^= 8; return log },
		"its sum":    func(log []byte) []byte { log[25] ^= 8; return log },
		"zeros":      func(log []byte) []byte { clear(log[:len(log)/2]); return log },
	}
	damages["its last byte"] = func(log []byte) []byte { log[len(log)-1] ^= 1; return log }
	damages["cut in its header"] = func(log []byte) []byte { return log[:20] }
	for part := range 6 {
		damages[fmt.Sprint("cut after ", part, " sixths")] = func(log []byte) []byte { return log[:max(walHeader, len(log)*part/6)] }
	}
	for part := range 6 {
		damages[fmt.Sprint("a bit after ", part, " sixths")] = func(log []byte) []byte { log[len(log)*part/6+40] ^= 1; return log }
	}
	for name, damage := range damages {
		for _, fresh := range []bool{true, false} { // the file itself has nothing yet, or feeds that were polled before
			dir, m := directory(t), newFake()
			open := func() *Store {
				s, err := Open(dir, Options{Clocks: m.moment})
				mustDo(t, err)
				return s
			}
			claim := func(s *Store, n int) store.Lease {
				return storetest.Ask(t, s, store.Claim{ID: numbered(n), URL: urlOf(n), Hold: time.Hour})
			}
			poll := func(feeds int) *Store {
				s := open()
				for n := range feeds {
					if name == noIndex && n == feeds-1 {
						mustDo(t, s.database.outside(t.Context(), func(c *connection) error { return c.exec("pragma wal_checkpoint") }))
					}
					o := storetest.Outcome(claim(s, n), storetest.Text(1, "x"))
					o.In = time.Hour
					storetest.Commit(t, s, o)
				}
				return s
			}
			if !fresh {
				mustDo(t, poll(feeds/2).Close())
				m.pass(3 * time.Hour)
			}
			s := poll(feeds)
			again := copied(t, dir) // as it is after a kill
			mustDo(t, s.Close())
			dir = again
			path := filepath.Join(dir, fileName+"-wal")
			log, err := os.ReadFile(path)
			mustDo(t, err)
			if name == noIndex {
				mustDo(t, os.Remove(filepath.Join(dir, fileName+"-shm")))
			}
			if log = damage(log); log == nil {
				mustDo(t, os.Remove(path))
			} else {
				mustDo(t, os.WriteFile(path, log, 0o600))
			}
			for try := range 2 {
				s = open()
				for n := range feeds {
					if l := claim(s, n); l.Denied == "" {
						t.Errorf("%s, a new file: %v, opened %d times: feed %d is polled again", name, fresh, try+1, n)
					}
				}
				if ago, err := s.Lost(t.Context()); err != nil || (ago >= 0) != (name != "none") {
					t.Errorf("%s: records were lost %v ago, %v", name, ago, err)
				}
				again := copied(t, dir)
				mustDo(t, s.Close())
				dir = again
			}
			m.pass(3 * time.Hour)
			s = open()
			for n := range feeds {
				if l := claim(s, n); l.Denied != "" {
					t.Errorf("%s, three hours later: %+v", name, l)
				}
			}
			mustDo(t, s.Close())
		}
	}
}

// TestSecondAttempt has the first attempt to open a store fail, after a kill, as on a full disk. It brings the log into the file, and the
// second one does not take the log for lost.
func TestSecondAttempt(t *testing.T) {
	s := mustOpen(t, directory(t))
	storetest.Grant(t, s, storetest.Claim(1))
	d := &database{path: filepath.Join(copied(t, filepath.Dir(s.database.path)), fileName), log: zap.NewNop(), scale: newScale(nil), space: disk.Space, lost: store.Never}
	for range 2 {
		mustDo(t, d.openFile())
		for range readers {
			mustDo(t, (<-d.readers).close())
		}
		if mustDo(t, d.writer.close()); exists(d.path+"-wal") || !exists(d.openMark()) {
			t.Fatal("the log is there, or the mark is not")
		}
		if d.lost != store.Never {
			t.Error("records are said to be lost")
		}
	}
}

// copied copies the files of a store that is in use into another directory.
func copied(t *testing.T, dir string) string {
	t.Helper()
	to := directory(t)
	mustDo(t, os.CopyFS(to, os.DirFS(dir)))
	return to
}
