// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	lib "modernc.org/sqlite/lib"

	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/cache/store/storetest"
)

// TestFullDisk fills a tmpfs of 8 MB, in a mount namespace of its own.
func TestFullDisk(t *testing.T) {
	if dir := os.Getenv(childDirectory); dir != "" {
		if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=8m"); err != nil {
			fmt.Println("no tmpfs:", err)
			return
		}
		ballast := filepath.Join(dir, "ballast")
		if err := os.WriteFile(ballast, make([]byte, 2<<20), 0o600); err != nil {
			t.Fatal(err)
		}
		fillUp(t, filepath.Join(dir, "store"), lib.SQLITE_FULL, func() error { return os.Remove(ballast) })
		// Another program fills the disk while the store is closed.
		if err := os.WriteFile(ballast, make([]byte, 8<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("filling the disk: %v", err)
		}
		s, err := Open(filepath.Join(dir, "store"), Options{})
		if err != nil {
			t.Fatalf("opening on a disk that others have filled: %v", err)
		}
		if records, err := s.Lookup(t.Context(), []store.ID{longID(0)}); err != nil || len(records) != 1 {
			t.Errorf("on a disk that others have filled: %d records, %v", len(records), err)
		}
		if err := s.Close(); err != nil && !noRoom(err) {
			t.Error(err)
		}
		if _, err := Open(filepath.Join(dir, "new"), Options{}); err == nil || !strings.Contains(err.Error(), "make room") {
			t.Errorf("a new store on a full disk: error %v, want one that says to make room", err)
		}
		mustDo(t, os.Remove(ballast))
		const again = syscall.MS_REMOUNT
		mustDo(t, syscall.Mount("tmpfs", dir, "tmpfs", again|syscall.MS_RDONLY, "size=8m"))
		if _, err := Open(filepath.Join(dir, "store"), Options{}); !errors.Is(err, syscall.EROFS) || !strings.Contains(err.Error(), dir) {
			t.Errorf("Open where nothing may be written: %v", err)
		}
		mustDo(t, syscall.Mount("tmpfs", dir, "tmpfs", again, "size=8m"))
		mustOpen(t, filepath.Join(dir, "store")).Close()
		return
	}
	c := child(t, directory(t))
	c.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	out, err := c.CombinedOutput()
	switch {
	case errors.Is(err, syscall.EPERM), errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EINVAL), errors.Is(err, syscall.EACCES):
		t.Skipf("no namespace for a small tmpfs: %v", err)
	case strings.Contains(string(out), "no tmpfs:"):
		t.Skipf("%s", out)
	case err != nil || !strings.Contains(string(out), "--- PASS"):
		t.Errorf("%v\n%s", err, out)
	}
}

// TestFileSizeLimit lets no file grow beyond 1 MB, which needs no privilege.
func TestFileSizeLimit(t *testing.T) {
	if dir := os.Getenv(childDirectory); dir != "" {
		fillUp(t, dir, lib.SQLITE_IOERR, limitFiles(t, 1<<20))
		return
	}
	passes(t, directory(t))
}

// TestBringUpOnAFullDisk has no room for what a step writes. The file is as it was, and is brought up when there is room.
func TestBringUpOnAFullDisk(t *testing.T) {
	if dir := os.Getenv(childDirectory); dir != "" {
		c, err := connect(filepath.Join(dir, fileName)) // its indexes take more
		mustDo(t, err, c.exec(`insert into feed (id, host, due, sum) with recursive row(n) as (select 1 union all select n + 1 from row where n < 3000)
			select randomblob(16), 'host', n, 0 from row`), c.close())
		before := rowsOf(t, dir, storetest.RowsOfVersion1)
		makeRoom := limitFiles(t, 32<<10) // SQLite needs so much to open it
		for range 2 {
			_, err := Open(dir, Options{})
			if err == nil || !strings.Contains(err.Error(), "the file is as it was; see that its disk has room") {
				t.Fatalf("Open: %v", err)
			}
		}
		if after := rowsOf(t, dir, storetest.RowsOfVersion1); fmt.Sprint(after) != fmt.Sprint(before) {
			t.Error("rows have changed")
		}
		mustDo(t, makeRoom())
		s := mustOpen(t, dir)
		storetest.CheckBroughtUp(t, s)
		return
	}
	passes(t, unpackStore(t, 1, "closed"))
}

// passes runs this test as a process of its own.
func passes(t *testing.T, dir string) {
	t.Helper()
	out, err := child(t, dir).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS") {
		t.Errorf("%v\n%s", err, out)
	}
}

// limitFiles lets no file of this process grow beyond a size, until the function that it returns is called.
func limitFiles(t *testing.T, size uint64) (end func() error) {
	t.Helper()
	var limit syscall.Rlimit
	mustDo(t, syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit))
	mustDo(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: size, Max: limit.Max}))
	return func() error { return syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit) }
}

// fillUp stores bodies, then records, until the disk takes no more of either,
// with an error of the code want at least once. Then it expects that reads go on, that
// nothing acknowledged is lost, and that after makeRoom writes go on.
func fillUp(t *testing.T, dir string, want int, makeRoom func() error) {
	s, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	stored := make(map[int]bool) // whether the feed has a body
	if err := pollOnce(t, s, 0, 10_000, stored); err != nil {
		t.Fatal(err)
	}
	bodies := untilFull(t, dir, func(n int) error { return pollOnce(t, s, 1+n, 100_000, stored) })
	records := untilFull(t, dir, func(n int) error { return pollOnce(t, s, 1000+n, 0, stored) })
	if code(bodies) != want && code(records) != want {
		t.Errorf("errors %q and %q, want one with code %d", bodies, records, want)
	}
	check(t, s, stored)
	if err := s.Close(); err != nil && code(err) != want {
		t.Fatal(err)
	}

	s, err = Open(dir, Options{})
	if err != nil {
		t.Fatalf("opening on a full disk: %v", err)
	}
	check(t, s, stored)
	if err := makeRoom(); err != nil {
		t.Fatal(err)
	}
	for n := range 3 {
		if err := pollOnce(t, s, 20_000+n, 100_000, stored); err != nil {
			t.Errorf("after making room: %v", err)
		}
	}
	check(t, s, stored)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s, err = Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	check(t, s, stored)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// longURL is a URL of a feed, long enough to fill a page.
func longURL(n int) string { return urlOf(n) + "/" + strings.Repeat("x", 2000) }

func longID(n int) store.ID { return store.IDOf(longURL(n)) }

// pollOnce claims and commits the first poll of a feed, with a body of so many
// bytes, and notes what was acknowledged.
func pollOnce(t *testing.T, s *Store, n, size int, stored map[int]bool) error {
	c := store.Claim{ID: longID(n), URL: longURL(n), Hold: time.Hour, Floor: time.Nanosecond}
	leases, err := s.Claim(t.Context(), []store.Claim{c})
	if err != nil {
		return err
	}
	if _, known := stored[n]; !known {
		stored[n] = false
	}
	o := store.Outcome{ID: c.ID, Token: leases[0].Token, In: time.Hour, State: store.StateFresh, FeedState: []byte("memo")}
	if size > 0 {
		o.Body = &store.Body{Version: 1, Coding: "identity", Data: []byte(strings.Repeat("x", size))}
	}
	if err := s.Commit(t.Context(), o); err != nil {
		return err
	}
	stored[n] = size > 0
	return nil
}

// untilFull repeats do until it fails, and once more on the full disk.
func untilFull(t *testing.T, dir string, do func(n int) error) error {
	t.Helper()
	for n := range 5000 {
		err := do(n)
		if err == nil {
			continue
		}
		if again := do(n); again == nil {
			continue
		}
		for _, part := range []string{dir, "polls stop until "} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("error %q does not say %q", err, part)
			}
		}
		return err
	}
	t.Fatal("the disk never got full")
	return nil
}

// check expects the records and bodies that were acknowledged.
func check(t *testing.T, s *Store, stored map[int]bool) {
	t.Helper()
	for n, body := range stored {
		records, err := s.Lookup(t.Context(), []store.ID{longID(n)})
		if err != nil || len(records) != 1 || records[0].In <= 0 || (records[0].Version == 1) != body {
			t.Errorf("feed %d: %+v, %v, want a body: %v", n, records, err, body)
			continue
		}
		if !body {
			continue
		}
		if b, err := store.ReadBody(t.Context(), s, longID(n)); err != nil || b.Version != 1 || len(b.Data) == 0 {
			t.Errorf("feed %d: body of version %d, %v", n, b.Version, err)
		}
	}
}
