// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package bolt

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/feedpollard/pollard/cache"
)

// oneFeed is a store with one feed, reserved once, and its directory.
func oneFeed(t *testing.T) (*Store, cache.ID) {
	t.Helper()
	s, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	id := cache.ID{0x7f, 1}
	if _, err := s.Reserve(t.Context(), []cache.Claim{{ID: id, URL: "https://example.com/"}}); err != nil {
		t.Fatal(err)
	}
	return s, id
}

// version is an outcome of the first grant with that version of the body.
func version(id cache.ID, v uint64) cache.Outcome {
	return cache.Outcome{ID: id, Token: 1, Body: &cache.Body{
		Version: v, Coded: map[string][]byte{"": bytes.Repeat([]byte{byte(v)}, 1000)},
	}}
}

func commitVersions(t *testing.T, s *Store, id cache.ID, versions ...uint64) {
	t.Helper()
	for _, v := range versions {
		if err := s.Commit(t.Context(), version(id, v)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestVersionsAlternateBetweenSlots(t *testing.T) {
	s, id := oneFeed(t)
	for v, want := range []byte{slotA, slotB, slotA, slotB} {
		commitVersions(t, s, id, uint64(v+1))
		p, _, err := s.poll(id)
		if err != nil || p.slot != want {
			t.Errorf("version %d is in slot %q, %v, want %q", v+1, p.slot, err, want)
		}
	}
	files, _ := filepath.Glob(filepath.Join(s.dir, "bodies", "*", "*"))
	if len(files) != 2 {
		t.Errorf("body files are %q, want two", files)
	}
}

// TestBadBodyFile expects ErrNoBody with the path for every kind of bad file, and
// that the next version cures it.
func TestBadBodyFile(t *testing.T) {
	for name, spoil := range map[string]func(path string) error{
		"missing":   os.Remove,
		"empty":     func(path string) error { return os.Truncate(path, 0) },
		"short":     func(path string) error { return os.Truncate(path, 500) },
		"damaged":   func(path string) error { return flip(path, 600) },
		"directory": func(path string) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o700)) },
		"no directory": func(path string) error {
			return errors.Join(os.RemoveAll(filepath.Dir(path)), os.WriteFile(filepath.Dir(path), nil, 0o600))
		},
		"the version before": func(path string) error {
			return os.Rename(strings.TrimSuffix(path, ".b")+".a", path)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, id := oneFeed(t)
			commitVersions(t, s, id, 1, 2)
			path := s.bodies.path(id, slotB)
			if err := spoil(path); err != nil {
				t.Fatal(err)
			}
			_, err := s.Body(t.Context(), id)
			if !errors.Is(err, cache.ErrNoBody) || !strings.Contains(err.Error(), path) {
				t.Fatalf("Body: error %v, want %v and the path", err, cache.ErrNoBody)
			}
			if r, err := s.Load(t.Context(), id); err != nil || r.Version != 2 {
				t.Errorf("Load: version %d, %v, want 2", r.Version, err)
			}
			if name == "no directory" {
				return
			}
			commitVersions(t, s, id, 3)
			if b, err := s.Body(t.Context(), id); err != nil || b.Version != 3 {
				t.Errorf("Body after the next commit: version %d, %v, want 3", b.Version, err)
			}
		})
	}
}

// flip changes a bit of a file.
func flip(path string, at int) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	content[at] ^= 1
	return os.WriteFile(path, content, 0o600)
}

// TestBodyCannotBeWritten puts a file where the directory of the body should be.
func TestBodyCannotBeWritten(t *testing.T) {
	s, id := oneFeed(t)
	dir := filepath.Dir(s.bodies.path(id, slotA))
	if err := os.WriteFile(dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	before, _ := s.Load(t.Context(), id)
	err := s.Commit(t.Context(), version(id, 1))
	if err == nil || !strings.Contains(err.Error(), s.bodies.path(id, slotA)) || !strings.Contains(err.Error(), "polls stop") {
		t.Fatalf("Commit: error %v, want one with the path and what it means", err)
	}
	if after, err := s.Load(t.Context(), id); err != nil || after.Version != 0 || !after.Next.Equal(before.Next) {
		t.Errorf("after the failure: %+v, %v, want %+v", after, err, before)
	}
	if left, _ := os.ReadDir(s.bodies.temporary()); len(left) != 0 {
		t.Errorf("temporary files are left: %v", left)
	}
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	commitVersions(t, s, id, 1)
}

// TestBodyOfOldRecord reads with a record that commits have overtaken since.
func TestBodyOfOldRecord(t *testing.T) {
	s, id := oneFeed(t)
	commitVersions(t, s, id, 1)
	old, _, err := s.poll(id)
	if err != nil {
		t.Fatal(err)
	}
	for v := uint64(2); v <= 4; v++ {
		commitVersions(t, s, id, v)
		b, err := s.bodyNamed(id, old)
		// As long as the old version is in its slot, it is as good an answer.
		if err != nil || b.Version != v && (v != 2 || b.Version != 1) {
			t.Errorf("after version %d: version %d, %v", v, b.Version, err)
		}
	}
	if err := s.Forget(t.Context(), []cache.ID{id}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.bodyNamed(id, old); !errors.Is(err, cache.ErrNoBody) {
		t.Errorf("after Forget: error %v, want %v", err, cache.ErrNoBody)
	}
}

func TestForgetRemovesFiles(t *testing.T) {
	s, id := oneFeed(t)
	commitVersions(t, s, id, 1, 2)
	for range 2 {
		if err := s.Forget(t.Context(), []cache.ID{id}); err != nil {
			t.Fatal(err)
		}
		if files, _ := filepath.Glob(filepath.Join(s.dir, "bodies", "*", "*")); len(files) != 0 {
			t.Errorf("body files are left: %q", files)
		}
		// A crash in Forget may leave a file without a record: again, then.
		if err := s.bodies.write(id, slotA, *version(id, 3).Body); err != nil {
			t.Fatal(err)
		}
	}
}

// TestFencedCommitWritesNoFile expects the check of the token before the body is written.
func TestFencedCommitWritesNoFile(t *testing.T) {
	s, id := oneFeed(t)
	late := version(id, 1)
	late.Token = 9
	if err := s.Commit(t.Context(), late); !errors.Is(err, cache.ErrFenced) {
		t.Fatalf("Commit: error %v, want %v", err, cache.ErrFenced)
	}
	if files, _ := filepath.Glob(filepath.Join(s.dir, "bodies", "*", "*")); len(files) != 0 {
		t.Errorf("body files: %q", files)
	}
}

// TestFencedWhileBodyIsWritten expects the second check: a reservation that came
// between the first one and the transaction.
func TestFencedWhileBodyIsWritten(t *testing.T) {
	s, id := oneFeed(t)
	commitVersions(t, s, id, 1)
	late := version(id, 2)
	if err := s.bodies.write(id, slotB, *late.Body); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Reserve(t.Context(), []cache.Claim{{ID: id, Token: 1}}); err != nil {
		t.Fatal(err)
	}
	if err := s.settle(t.Context(), late, slotB); !errors.Is(err, cache.ErrFenced) {
		t.Fatalf("settle: error %v, want %v", err, cache.ErrFenced)
	}
	if b, err := s.Body(t.Context(), id); err != nil || b.Version != 1 {
		t.Errorf("Body: version %d, %v, want 1", b.Version, err)
	}
}
