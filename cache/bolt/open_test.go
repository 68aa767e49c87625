// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package bolt_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/bbolt"

	"github.com/feedpollard/pollard/cache"
	"github.com/feedpollard/pollard/cache/bolt"
)

func TestOpenMakesPrivateDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	open(t, dir)
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
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) { // Open waits a second for the lock
		first := open(t, dir)
		_, err := bolt.Open(dir)
		if !errors.Is(err, cache.ErrLocked) {
			t.Fatalf("second Open: error %v, want %v", err, cache.ErrLocked)
		}
		for _, part := range []string{dir, "store bolt <directory>"} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("error %q does not mention %q", err, part)
			}
		}
		if err := first.Close(); err != nil {
			t.Fatal(err)
		}
		open(t, dir)
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

// setLayout changes the layout of a store to one that this version does not know.
func setLayout(layout string) func(*bbolt.Tx) error {
	return func(tx *bbolt.Tx) error {
		return tx.Bucket([]byte("store")).Put([]byte("layout"), []byte(layout))
	}
}

// TestOpenRefuses opens files that are not, or no longer, a store.
func TestOpenRefuses(t *testing.T) {
	for _, c := range []struct {
		name    string
		spoil   func(t *testing.T, file string)
		message string
	}{
		{"a short text", func(t *testing.T, file string) { write(t, file, []byte("hello")) }, "move it away"},
		{"a long text", func(t *testing.T, file string) { write(t, file, bytes.Repeat([]byte("hello "), 10_000)) }, "move it away"},
		{"zeroes", func(t *testing.T, file string) { write(t, file, make([]byte, 64<<10)) }, "move it away"},
		{"a directory", func(t *testing.T, file string) { replace(t, file, os.Mkdir(file+".new", 0o700)) }, "feeds.db"},
		{"a truncated store", func(t *testing.T, file string) { truncate(t, file, 12<<10) }, "move it away"},
		{"a store of one page", func(t *testing.T, file string) { truncate(t, file, 4<<10) }, "feeds.db"},
		{"damaged pages", func(t *testing.T, file string) { overwrite(t, file, 2*int64(os.Getpagesize())) }, "move it away"},
		{"another program's", func(t *testing.T, file string) {
			os.Remove(file)
			bboltFile(t, file, func(tx *bbolt.Tx) error { _, err := tx.CreateBucket([]byte("acme")); return err })
		}, "another program"},
		{"another program's with a store bucket", func(t *testing.T, file string) {
			os.Remove(file)
			bboltFile(t, file, func(tx *bbolt.Tx) error { _, err := tx.CreateBucket([]byte("store")); return err })
		}, "another program"},
		{"a later layout", func(t *testing.T, file string) { bboltFile(t, file, setLayout("pollard feeds 2")) }, "pollard feeds 2"},
		{"a missing bucket", func(t *testing.T, file string) {
			bboltFile(t, file, func(tx *bbolt.Tx) error { return tx.DeleteBucket([]byte("meta")) })
		}, "bucket is missing"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			file := filepath.Join(dir, "feeds.db")
			storeOf(t, dir, 50)
			c.spoil(t, file)
			before, _ := os.ReadFile(file)

			for range 2 { // the second time because the first might leave it locked
				s, err := bolt.Open(dir)
				if err == nil {
					s.Close()
					t.Fatal("Open took it")
				}
				if errors.Is(err, cache.ErrLocked) || !strings.Contains(err.Error(), c.message) || !strings.Contains(err.Error(), dir) {
					t.Errorf("error %q, want one with %q and %q", err, c.message, dir)
				}
			}
			if after, _ := os.ReadFile(file); !bytes.Equal(before, after) {
				t.Error("the file was changed")
			}
		})
	}
}

// TestDamagedRecord expects errors, and neither a panic nor wrong data, where
// pages of the file are overwritten after it was opened.
func TestDamagedRecord(t *testing.T) {
	dir := t.TempDir()
	storeOf(t, dir, 500)
	file := filepath.Join(dir, "feeds.db")
	bboltFile(t, file, func(tx *bbolt.Tx) error {
		return tx.Bucket([]byte("poll")).Put(idOf(1), []byte("nonsense"))
	})
	s := open(t, dir)
	if _, err := s.Load(t.Context(), cache.ID(idOf(1))); err == nil || errors.Is(err, cache.ErrNoRecord) {
		t.Errorf("Load of a damaged record: error %v", err)
	}
	claims := []cache.Claim{{ID: cache.ID(idOf(2)), Token: 1}, {ID: cache.ID(idOf(1)), Token: 1}}
	if _, err := s.Reserve(t.Context(), claims); err == nil {
		t.Error("a damaged record was reserved")
	}
	if r, err := s.Load(t.Context(), cache.ID(idOf(2))); err != nil || r.Token != 1 {
		t.Errorf("the claim beside it: token %d, %v, want 1", r.Token, err)
	}
	if err := s.Scan(t.Context(), func(cache.Record) error { return nil }); err == nil {
		t.Error("Scan went over a damaged record")
	}

	truncate(t, file, 8<<10)
	if err := s.Scan(t.Context(), func(cache.Record) error { return nil }); err == nil {
		t.Error("Scan of a truncated file succeeded")
	}
}

// TestVisitorPanics expects that a visitor's panic is not taken for damage and
// leaves the store usable.
func TestVisitorPanics(t *testing.T) {
	dir := t.TempDir()
	storeOf(t, dir, 3)
	s := open(t, dir)
	func() {
		defer func() {
			if got := recover(); got != "visitor" {
				t.Errorf("recovered %v, want the visitor's panic", got)
			}
		}()
		s.Scan(t.Context(), func(cache.Record) error { panic("visitor") })
	}()
	if _, err := s.Load(t.Context(), cache.ID(idOf(1))); err != nil {
		t.Error(err)
	}
}

func TestOpenRemovesTemporaryFiles(t *testing.T) {
	dir := t.TempDir()
	storeOf(t, dir, 1)
	left := filepath.Join(dir, "bodies", "tmp", "0123.456")
	write(t, left, []byte("half a bo"))
	open(t, dir)
	if _, err := os.Stat(left); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("temporary file is still there: %v", err)
	}
}

// TestOpenAfterCrashInTheFirst opens a file that was made and not yet filled.
func TestOpenAfterCrashInTheFirst(t *testing.T) {
	for name, make := range map[string]func(t *testing.T, file string){
		"empty file":   func(t *testing.T, file string) { write(t, file, nil) },
		"empty bbolt":  func(t *testing.T, file string) { bboltFile(t, file, func(*bbolt.Tx) error { return nil }) },
		"nothing":      func(*testing.T, string) {},
		"only a store": func(t *testing.T, file string) { storeOf(t, filepath.Dir(file), 0) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			make(t, filepath.Join(dir, "feeds.db"))
			storeOf(t, dir, 2)
		})
	}
}

// idOf is the ID of the nth feed of storeOf.
func idOf(n int) []byte { return bytes.Repeat([]byte{byte(n), byte(n >> 8)}, 8) }

// storeOf reserves the first poll of so many feeds and closes the store.
func storeOf(t *testing.T, dir string, feeds int) {
	t.Helper()
	s := open(t, dir)
	claims := make([]cache.Claim, feeds)
	for n := range claims {
		claims[n] = cache.Claim{ID: cache.ID(idOf(n)), URL: "https://example.com/" + strings.Repeat("x", 200)}
	}
	if _, err := s.Reserve(t.Context(), claims); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, file string, content []byte) {
	t.Helper()
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

func truncate(t *testing.T, file string, size int64) {
	t.Helper()
	if err := os.Truncate(file, size); err != nil {
		t.Fatal(err)
	}
}

// replace puts file+".new" into the place of file.
func replace(t *testing.T, file string, err error) {
	t.Helper()
	if err := errors.Join(err, os.Remove(file), os.Rename(file+".new", file)); err != nil {
		t.Fatal(err)
	}
}

// overwrite puts noise over everything in file after its first bytes.
func overwrite(t *testing.T, file string, after int64) {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for i := after; i < int64(len(content)); i++ {
		content[i] = byte(i*7 + 3)
	}
	write(t, file, content)
}
