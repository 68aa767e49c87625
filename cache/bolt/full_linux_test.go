// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package bolt_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/feedpollard/pollard/cache"
	"github.com/feedpollard/pollard/cache/bolt"
)

// TestFullDisk fills a tmpfs of 2 MB, in a mount namespace of its own.
func TestFullDisk(t *testing.T) {
	if dir := os.Getenv(childDirectory); dir != "" {
		if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=2m"); err != nil {
			fmt.Println("no tmpfs:", err)
			return
		}
		ballast := filepath.Join(dir, "ballast")
		write(t, ballast, make([]byte, 512<<10))
		fillUp(t, filepath.Join(dir, "store"), syscall.ENOSPC, func() error { return os.Remove(ballast) })
		return
	}
	c := child(t, t.TempDir())
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

// TestFileSizeLimit lets no file grow beyond 64 KB, which needs no privilege.
func TestFileSizeLimit(t *testing.T) {
	if dir := os.Getenv(childDirectory); dir != "" {
		var limit syscall.Rlimit
		if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
			t.Fatal(err)
		}
		set := func(size uint64) error {
			return syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: size, Max: limit.Max})
		}
		if err := set(64 << 10); err != nil {
			t.Fatal(err)
		}
		fillUp(t, dir, syscall.EFBIG, func() error { return set(limit.Max) })
		return
	}
	out, err := child(t, t.TempDir()).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS") {
		t.Errorf("%v\n%s", err, out)
	}
}

// fillUp stores bodies, then records, until the disk takes no more of either,
// with the error want at least once. Then it expects that reads go on, that
// nothing acknowledged is lost, and that after makeRoom writes go on.
func fillUp(t *testing.T, dir string, want error, makeRoom func() error) {
	s, err := bolt.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	stored := make(map[int]bool) // whether the feed has a body
	if err := pollOnce(t, s, 0, 10_000, stored); err != nil {
		t.Fatal(err)
	}
	bodies := untilFull(t, dir, func(n int) error { return pollOnce(t, s, 1+n, 100_000, stored) })
	records := untilFull(t, dir, func(n int) error { return pollOnce(t, s, 1000+n, 0, stored) })
	if !errors.Is(bodies, want) && !errors.Is(records, want) {
		t.Errorf("errors %q and %q, want one with %q", bodies, records, want)
	}
	check(t, s, stored)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	s, err = bolt.Open(dir)
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
	check(t, open(t, dir), stored)
}

// pollOnce reserves and commits the first poll of a feed, with a body of so many
// bytes, and notes what was acknowledged.
func pollOnce(t *testing.T, s *bolt.Store, n, size int, stored map[int]bool) error {
	id := cache.ID(idOf(n))
	if _, known := stored[n]; !known {
		claim := cache.Claim{ID: id, URL: "https://example.com/" + strings.Repeat("x", 2000)}
		if _, err := s.Reserve(t.Context(), []cache.Claim{claim}); err != nil {
			return err
		}
		stored[n] = false
	}
	o := cache.Outcome{ID: id, Token: 1, Memo: []byte("memo")}
	if size > 0 {
		o.Body = &cache.Body{Version: 1, Coded: map[string][]byte{"": []byte(strings.Repeat("x", size))}}
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
		for _, part := range []string{"writing " + dir, "polls stop until there is room"} {
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
func check(t *testing.T, s *bolt.Store, stored map[int]bool) {
	t.Helper()
	visited := make(map[cache.ID]bool)
	if err := s.Scan(t.Context(), func(r cache.Record) error { visited[r.ID] = true; return nil }); err != nil {
		t.Errorf("Scan: %v", err)
	}
	for n, body := range stored {
		id := cache.ID(idOf(n))
		r, err := s.Load(t.Context(), id)
		if err != nil || !visited[id] || r.Token != 1 || (r.Version == 1) != body {
			t.Errorf("feed %d: %+v, %v, visited %v, want a body: %v", n, r.Schedule, err, visited[id], body)
		}
		if !body {
			continue
		}
		if b, err := s.Body(t.Context(), id); err != nil || b.Version != 1 || len(b.Coded[""]) == 0 {
			t.Errorf("feed %d: body of version %d, %v", n, b.Version, err)
		}
	}
}
