// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package bolt

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/bbolt"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/feedpollard/pollard/cache/store"
)

// mustOpen opens a store for the length of a test.
func mustOpen(t *testing.T, dir string) *Store {
	t.Helper()
	s, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// storeOf makes a store with so many feeds, the first with a version, and closes it.
func storeOf(t *testing.T, dir string, feeds int) {
	t.Helper()
	s := mustOpen(t, dir)
	var saved []store.Saved
	for n := range feeds {
		r := store.Saved{Record: store.Record{
			ID: numbered(n), URL: "https://example.com/" + strings.Repeat("x", 200), In: time.Hour, Hold: time.Hour,
			State: store.StateFresh, Memo: []byte("memo"),
		}}
		if n < 3 {
			r.Body = &store.Body{Version: 1, Coding: "identity", Data: []byte("content")}
		}
		saved = append(saved, r)
	}
	if err := errors.Join(s.Restore(t.Context(), saved), s.Close()); err != nil {
		t.Fatal(err)
	}
}

func TestOpenMakesPrivateDirectory(t *testing.T) {
	dir := filepath.Join(directory(t), "a", "b")
	mustOpen(t, dir)
	for path, want := range map[string]fs.FileMode{
		dir:                            0o700,
		filepath.Join(dir, "feeds.db"): 0o600,
		filepath.Join(dir, "bodies"):   0o700,
	} {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != want {
			t.Errorf("%s has mode %o, want %o", path, got, want)
		}
	}
}

func TestOpenTwice(t *testing.T) {
	dir := directory(t)
	synctest.Test(t, func(t *testing.T) { // Open waits a second for the lock
		first := mustOpen(t, dir)
		_, err := Open(dir, Options{})
		if !errors.Is(err, store.ErrLocked) {
			t.Fatalf("second Open: error %v, want %v", err, store.ErrLocked)
		}
		for _, part := range []string{dir, "store bolt <directory>"} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("error %q does not mention %q", err, part)
			}
		}
		if err := first.Close(); err != nil {
			t.Fatal(err)
		}
		mustOpen(t, dir)
	})
}

// bboltFile writes a bbolt file with fill.
func bboltFile(t *testing.T, path string, fill func(*bbolt.Tx) error) {
	t.Helper()
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{Timeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(db.Update(fill), db.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestOpenRefuses opens files of others, which have to stay as they are.
func TestOpenRefuses(t *testing.T) {
	for _, c := range []struct {
		name    string
		spoil   func(t *testing.T, file string)
		message string
	}{
		{"a directory", func(t *testing.T, file string) { mustDo(t, os.Remove(file), os.Mkdir(file, 0o700)) }, "feeds.db"},
		{"another program's", func(t *testing.T, file string) {
			mustDo(t, os.Remove(file))
			bboltFile(t, file, func(tx *bbolt.Tx) error { _, err := tx.CreateBucket([]byte("acme")); return err })
		}, "another program"},
		{"another program's with a store bucket", func(t *testing.T, file string) {
			mustDo(t, os.Remove(file))
			bboltFile(t, file, func(tx *bbolt.Tx) error { _, err := tx.CreateBucket([]byte("store")); return err })
		}, "another program"},
		{"a later layout", func(t *testing.T, file string) {
			bboltFile(t, file, func(tx *bbolt.Tx) error {
				return tx.Bucket([]byte(bucketStore)).Put([]byte(keyLayout), []byte("pollard feeds 3"))
			})
		}, "pollard feeds 3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := directory(t)
			file := filepath.Join(dir, fileName)
			storeOf(t, dir, 50)
			c.spoil(t, file)
			before, _ := os.ReadFile(file)
			for range 2 { // the second time because the first might leave it locked
				s, err := Open(dir, Options{})
				if err == nil {
					s.Close()
					t.Fatal("Open took it")
				}
				if errors.Is(err, store.ErrLocked) || !strings.Contains(err.Error(), c.message) || !strings.Contains(err.Error(), dir) {
					t.Errorf("error %q, want one with %q and %q", err, c.message, dir)
				}
			}
			if after, _ := os.ReadFile(file); !bytes.Equal(before, after) {
				t.Error("the file was changed")
			}
		})
	}
}

// TestOpenSetsAside opens files that are of no use, and expects an empty store that
// works, and the file beside it.
func TestOpenSetsAside(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(t *testing.T, file string)
	}{
		{"a short text", func(t *testing.T, file string) { write(t, file, []byte("hello")) }},
		{"a long text", func(t *testing.T, file string) { write(t, file, bytes.Repeat([]byte("hello "), 10_000)) }},
		{"zeroes", func(t *testing.T, file string) { write(t, file, make([]byte, 64<<10)) }},
		{"a truncated store", func(t *testing.T, file string) { mustDo(t, os.Truncate(file, 12<<10)) }},
		{"a store of one page", func(t *testing.T, file string) { mustDo(t, os.Truncate(file, 4<<10)) }},
		{"damaged pages", func(t *testing.T, file string) { overwrite(t, file, 2*int64(os.Getpagesize())) }},
		{"a missing bucket", func(t *testing.T, file string) {
			bboltFile(t, file, func(tx *bbolt.Tx) error { return tx.DeleteBucket([]byte(bucketTexts)) })
		}},
		{"the first edition's", func(t *testing.T, file string) {
			bboltFile(t, file, func(tx *bbolt.Tx) error {
				return tx.Bucket([]byte(bucketStore)).Put([]byte(keyLayout), []byte(firstLayout))
			})
		}},
		{"no time of the last write", func(t *testing.T, file string) {
			bboltFile(t, file, func(tx *bbolt.Tx) error { return tx.Bucket([]byte(bucketStore)).Delete([]byte(keyClock)) })
		}},
		{"found damaged by the last process", func(t *testing.T, file string) {
			write(t, filepath.Join(filepath.Dir(file), condemned), nil)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := directory(t)
			file := filepath.Join(dir, fileName)
			write(t, file+".aside-20200101T000000Z", []byte("an older one"))
			storeOf(t, dir, 50)
			c.spoil(t, file)
			before, _ := os.ReadFile(file)

			log, lines := observer.New(zap.ErrorLevel)
			s, err := Open(dir, Options{Log: zap.New(log)})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			aside, _ := filepath.Glob(file + ".aside-*")
			if len(aside) != 1 || lines.Len() != 1 || lines.All()[0].ContextMap()["file"] != aside[0] {
				t.Fatalf("set aside as %q, with %+v", aside, lines.All())
			}
			if after, _ := os.ReadFile(aside[0]); !bytes.Equal(before, after) {
				t.Error("the file was changed")
			}
			if records, err := s.Lookup(t.Context(), []store.ID{numbered(1)}); err != nil || len(records) != 0 {
				t.Errorf("Lookup = %+v, %v", records, err)
			}
			s.clean()
			if left, _ := filepath.Glob(filepath.Join(dir, "bodies", "*", "*")); len(left) != 0 {
				t.Errorf("bodies without a record: %q", left)
			}
			mustDo(t, s.Close())
			storeOf(t, dir, 3)
			mustDo(t, mustOpen(t, dir).Close())
		})
	}
}

// TestDamagedRecord expects that a record that cannot be read loses one feed, which
// counts as polled just now.
func TestDamagedRecord(t *testing.T) {
	dir := directory(t)
	storeOf(t, dir, 500)
	bboltFile(t, filepath.Join(dir, fileName), func(tx *bbolt.Tx) error {
		id, text := numbered(1), numbered(2)
		return errors.Join(
			tx.Bucket([]byte(bucketFeeds)).Put(id[:], []byte("nonsense")),
			tx.Bucket([]byte(bucketTexts)).Put(text[:], []byte("nonsense")),
			tx.Bucket([]byte(bucketFeeds)).Put([]byte("no ID"), []byte("nonsense")),
		)
	})
	for range 2 { // the second time finds it repaired
		s := mustOpen(t, dir)
		records, err := s.Lookup(t.Context(), []store.ID{numbered(0), numbered(1), numbered(2)})
		if err != nil || len(records) != 3 {
			t.Fatalf("Lookup = %+v, %v", records, err)
		}
		if r := records[1]; r.Version != 0 || r.In < 50*time.Minute || r.In > time.Hour || r.URL == "" {
			t.Errorf("the damaged record became %+v", r)
		}
		if r := records[2]; r.Version != 1 || len(r.Memo) != 0 {
			t.Errorf("the record with a damaged text became %+v", r)
		}
		if all, err := s.Records(t.Context(), store.ID{}, 1000); err != nil || len(all) != 500 {
			t.Errorf("Records = %d, %v", len(all), err)
		}
		leases, err := s.Claim(t.Context(), []store.Claim{
			{ID: numbered(1), URL: "https://example.com/1"}, {ID: numbered(2), URL: "https://example.com/2"},
		})
		if err != nil || leases[0].Denied != store.DeniedNotDue || leases[1].URL == "" {
			t.Errorf("Claim = %+v, %v", leases, err)
		}
		mustDo(t, s.Close())
	}
}

// TestUnsealedRecords opens a store that was written before records had seals.
func TestUnsealedRecords(t *testing.T) {
	dir := directory(t)
	storeOf(t, dir, 5)
	bboltFile(t, filepath.Join(dir, fileName), func(tx *bbolt.Tx) error {
		for _, name := range []string{bucketFeeds, bucketTexts} {
			b := tx.Bucket([]byte(name))
			for n := range 5 {
				id := numbered(n)
				value, ok := unseal(id[:], b.Get(id[:]))
				bare := append([]byte{bareLayout}, value[1:]...)
				if err := b.Put(id[:], bare); !ok || err != nil {
					return fmt.Errorf("feed %d has a seal: %v, %w", n, ok, err)
				}
			}
		}
		b := tx.Bucket([]byte(bucketStore))
		return b.Put([]byte(keyClock), get(b, keyClock, stampSize))
	})
	s := mustOpen(t, dir)
	for n := range 5 {
		records, err := s.Lookup(t.Context(), []store.ID{numbered(n)})
		mustDo(t, err)
		if r := records[0]; r.URL == "" || string(r.Memo) != "memo" || r.State != store.StateFresh || (r.Version == 1) != (n < 3) {
			t.Errorf("%+v", r)
		}
	}
}

// TestFlippedBits damages stores at random places, and expects that each opens and
// works, or says what is wrong, but neither panics nor hangs.
func TestFlippedBits(t *testing.T) {
	dir := directory(t)
	storeOf(t, dir, 200)
	file := filepath.Join(dir, fileName)
	good, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(2026, 11))
	for range 40 {
		bad := bytes.Clone(good)
		page := random.IntN(len(bad)/4096) * 4096
		at := page + random.IntN(64) // mostly in its header
		bad[at] ^= 1 << random.IntN(8)
		write(t, file, bad)
		s, err := Open(dir, Options{})
		if err != nil {
			if !strings.Contains(err.Error(), "layout") && !strings.Contains(err.Error(), "another program") {
				t.Errorf("byte %d: %v", at, err)
			}
			continue
		}
		// What is damaged may show later only. It is told, as an error.
		s.Records(t.Context(), store.ID{}, 1000)
		s.Claim(t.Context(), []store.Claim{{ID: numbered(1000), URL: "https://example.com/", Hold: time.Hour}})
		if body, err := s.Body(t.Context(), numbered(1), 1); err == nil && string(body.Data) != "content" {
			t.Errorf("byte %d: body %q", at, body.Data)
		}
		s.Close()
		os.Remove(filepath.Join(dir, condemned))
	}
}

// TestOpenAfterCrashInTheFirst opens a file that was made and not yet filled.
func TestOpenAfterCrashInTheFirst(t *testing.T) {
	for name, begin := range map[string]func(t *testing.T, file string){
		"empty file":   func(t *testing.T, file string) { write(t, file, nil) },
		"empty bbolt":  func(t *testing.T, file string) { bboltFile(t, file, func(*bbolt.Tx) error { return nil }) },
		"nothing":      func(*testing.T, string) {},
		"only a store": func(t *testing.T, file string) { storeOf(t, filepath.Dir(file), 0) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := directory(t)
			begin(t, filepath.Join(dir, fileName))
			storeOf(t, dir, 2)
		})
	}
}

func mustDo(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, file string, content []byte) {
	t.Helper()
	mustDo(t, os.WriteFile(file, content, 0o600))
}

// overwrite puts noise over everything in file after its first bytes.
func overwrite(t *testing.T, file string, after int64) {
	t.Helper()
	content, err := os.ReadFile(file)
	mustDo(t, err)
	for i := after; i < int64(len(content)); i++ {
		content[i] = byte(i*7 + 3)
	}
	write(t, file, content)
}
