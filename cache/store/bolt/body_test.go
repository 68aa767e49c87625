// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package bolt

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/bbolt"

	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/cache/store/internal/schedule"
)

// content commits a version of a feed.
func content(t *testing.T, s *Store, n int, version uint64, data string) {
	t.Helper()
	c := store.Claim{ID: numbered(n), URL: "https://example.com/", Hold: time.Hour, Floor: time.Nanosecond}
	leases, err := s.Claim(t.Context(), []store.Claim{c})
	mustDo(t, err)
	o := store.Outcome{ID: c.ID, Token: leases[0].Token, In: time.Hour, Hold: time.Hour, State: store.StateFresh}
	o.Body = &store.Body{Version: version, Coding: "gzip", Data: []byte(data)}
	mustDo(t, s.Commit(t.Context(), o))
}

// files are the body files of a store.
func files(t *testing.T, s *Store) []string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(s.bodies.dir, "*", "*"))
	mustDo(t, err)
	return all
}

// TestOldBodiesAreRemoved expects one file per version in the records, whatever removes
// or replaces a version.
func TestOldBodiesAreRemoved(t *testing.T) {
	s := mustOpen(t, directory(t))
	want := func(what string, n int) {
		t.Helper()
		if got := files(t, s); len(got) != n {
			t.Errorf("%s: %d files, want %d: %q", what, len(got), n, got)
		}
	}
	for n := range 4 {
		content(t, s, n, 1, "old")
		content(t, s, n, 2, "new")
	}
	want("new versions", 4)
	mustDo(t, s.Forget(t.Context(), numbered(0)))
	want("Forget", 3)
	saved := store.Saved{Record: store.Record{ID: numbered(1), URL: "x"}, Body: &store.Body{Version: 3, Data: []byte("restored")}}
	mustDo(t, s.Restore(t.Context(), []store.Saved{saved}))
	want("Restore", 3)
	_, err := s.Trim(t.Context(), int64(len("new")+len("restored")))
	mustDo(t, err)
	want("Trim", 2)
	c := store.Claim{ID: numbered(3), URL: "x", Hold: time.Hour, Floor: time.Nanosecond}
	leases, err := s.Claim(t.Context(), []store.Claim{c})
	mustDo(t, err)
	late := store.Outcome{ID: c.ID, Token: leases[0].Token - 1, Body: &store.Body{Version: 9}}
	if err := s.Commit(t.Context(), late); !errors.Is(err, store.ErrFenced) {
		t.Errorf("Commit: error %v, want %v", err, store.ErrFenced)
	}
	want("a fenced commit", 2)
	mustDo(t, s.Commit(t.Context(), store.Outcome{ID: c.ID, Token: leases[0].Token, Withdraw: true}))
	want("a version withdrawn", 1)
	_, err = s.Sweep(t.Context(), store.SweepQuery{Idle: 1, Unread: 1, MaxUnread: 1})
	mustDo(t, err)
	want("Sweep", 0)
}

// TestOrphans expects that files without a record are found, and no others.
func TestOrphans(t *testing.T) {
	dir := directory(t)
	synctest.Test(t, func(t *testing.T) {
		s := mustOpen(t, dir)
		content(t, s, 1, 1, "content")
		named := files(t, s)
		orphan, err := s.bodies.write(numbered(1), store.Body{Version: 2})
		mustDo(t, err)
		mustDo(t, os.MkdirAll(filepath.Join(s.bodies.dir, "tmp"), 0o700))
		write(t, filepath.Join(s.bodies.dir, "tmp", "left by an earlier edition"), nil)
		s.clean()
		if got := files(t, s); len(got) != 2 {
			t.Errorf("%q, want %q and the file that is being written", got, named)
		}
		s.bodies.named(orphan)
		time.Sleep(cleanAfter + time.Minute)
		synctest.Wait()
		if got := files(t, s); len(got) != 1 || got[0] != named[0] {
			t.Errorf("%q, want %q", got, named)
		}
		mustDo(t, s.Close())
	})
}

// TestBodyErrors expects ErrNoBody where a body is lost, and only there.
func TestBodyErrors(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(t *testing.T, file string)
		lost  bool
	}{
		{"missing", func(t *testing.T, file string) { mustDo(t, os.Remove(file)) }, true},
		{"empty", func(t *testing.T, file string) { write(t, file, nil) }, true},
		{"cut off", func(t *testing.T, file string) { mustDo(t, os.Truncate(file, 80)) }, true},
		{"one bit", func(t *testing.T, file string) {
			v, err := os.ReadFile(file)
			mustDo(t, err)
			v[len(v)-1] ^= 1
			write(t, file, v)
		}, true},
		{"that of another feed", func(t *testing.T, file string) {
			write(t, file, encodeBody(numbered(2), store.Body{Version: 1, Coding: "gzip", Data: []byte("content")}))
		}, true},
		{"that of another version", func(t *testing.T, file string) {
			write(t, file, encodeBody(numbered(1), store.Body{Version: 2, Coding: "gzip", Data: []byte("content")}))
		}, true},
		{"not readable as a file", func(t *testing.T, file string) { mustDo(t, os.Remove(file), os.Mkdir(file, 0o700)) }, false},
		{"in a loop of links", func(t *testing.T, file string) { mustDo(t, os.Remove(file), os.Symlink(file, file)) }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := mustOpen(t, directory(t))
			content(t, s, 1, 1, "content")
			c.spoil(t, files(t, s)[0])
			_, err := s.Body(t.Context(), numbered(1), 1)
			if err == nil || errors.Is(err, store.ErrNoBody) != c.lost {
				t.Errorf("error %v, want that it is lost: %v", err, c.lost)
			}
			// The next version mends it.
			for _, file := range files(t, s) {
				mustDo(t, os.RemoveAll(file))
			}
			content(t, s, 1, 2, "content")
			if b, err := s.Body(t.Context(), numbered(1), 1); err != nil || string(b.Data) != "content" {
				t.Errorf("after a new version: %q, %v", b.Data, err)
			}
		})
	}
}

// TestOutcomesAreWritten expects that what was not durable at once is so after a moment,
// and a note of a reader with Close at the latest.
func TestOutcomesAreWritten(t *testing.T) {
	dir := directory(t)
	synctest.Test(t, func(t *testing.T) {
		s := mustOpen(t, dir)
		id := numbered(1)
		leases, err := s.Claim(t.Context(), []store.Claim{{ID: id, URL: "https://example.com/", Hold: time.Hour}})
		mustDo(t, err)
		before := transactions(t, s)
		mustDo(t, s.Commit(t.Context(), store.Outcome{ID: id, Token: leases[0].Token, In: 5 * time.Hour, Facts: []byte("facts")}))
		mustDo(t, s.Touch(t.Context(), map[store.ID]time.Duration{id: 0}))
		if n := transactions(t, s) - before; n != 0 {
			t.Errorf("%d transactions of their own", n)
		}
		time.Sleep(2 * soon)
		synctest.Wait()
		if n := transactions(t, s) - before; n != 1 {
			t.Errorf("%d transactions after a moment, want 1", n)
		}
		s.kill()

		s = mustOpen(t, dir)
		records, err := s.Lookup(t.Context(), []store.ID{id})
		mustDo(t, err)
		if r := records[0]; string(r.Facts) != "facts" || r.In < 4*time.Hour {
			t.Errorf("after a kill: %+v", r)
		}
		mustDo(t, s.Touch(t.Context(), map[store.ID]time.Duration{id: 0}))
		mustDo(t, s.Close())
		s = mustOpen(t, dir)
		records, err = s.Lookup(t.Context(), []store.ID{id})
		mustDo(t, err)
		if r := records[0]; r.Asked < 0 {
			t.Errorf("nobody knows that a reader asked: %+v", r)
		}
		mustDo(t, s.Close())
	})
}

// TestCallsShare expects that calls that wait for a transaction are carried out
// together in the next.
func TestCallsShare(t *testing.T) {
	dir := directory(t)
	synctest.Test(t, func(t *testing.T) {
		s := mustOpen(t, dir)
		before := transactions(t, s)
		gate := make(chan struct{})
		go s.run(t.Context(), func(schedule.Time) (bool, error) { <-gate; return false, nil })
		synctest.Wait()
		for n := range 20 {
			go func() {
				if _, err := s.Claim(t.Context(), []store.Claim{{ID: numbered(n), Hold: time.Hour}}); err != nil {
					t.Error(err)
				}
			}()
		}
		synctest.Wait()
		close(gate)
		synctest.Wait()
		if n := transactions(t, s) - before; n != 1 {
			t.Errorf("%d transactions, want 1", n)
		}
		mustDo(t, s.Close())
	})
}

// transactions is the number of transactions that the file has seen.
func transactions(t *testing.T, s *Store) (n int) {
	t.Helper()
	mustDo(t, s.db.View(func(tx *bbolt.Tx) error {
		n = tx.ID()
		return nil
	}))
	return n
}
