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
		var limit syscall.Rlimit
		if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
			t.Fatal(err)
		}
		set := func(size uint64) error {
			return syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: size, Max: limit.Max})
		}
		if err := set(1 << 20); err != nil {
			t.Fatal(err)
		}
		fillUp(t, dir, lib.SQLITE_IOERR, func() error { return set(limit.Max) })
		return
	}
	out, err := child(t, directory(t)).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS") {
		t.Errorf("%v\n%s", err, out)
	}
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
	lease, err := s.Claim(t.Context(), c)
	if err != nil {
		return err
	}
	if _, known := stored[n]; !known {
		stored[n] = false
	}
	o := store.Outcome{ID: c.ID, Token: lease.Token, In: time.Hour, Hold: time.Hour, State: store.StateFresh, FeedState: []byte("memo")}
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
